//! The same election without a model of it: every candidate is the product's machine, every step of the store the embedded store's, and
//! every gate the real one. What is explored is the world between them.
//!
//! A lease lasts 3 or 4 units; margin, operation and renewal are 1, a retry comes a unit later. Timers come in time or late, so that every
//! pause is among the steps; requests and answers come in any order, late, twice never, or not at all, and a request may be executed long
//! after its sender gave it up, stepped down or died. A fault that is not counted has no end, and time has one only where it is said.
//!
//! Taken as given: what the engine does for a machine (`driver`: it executes commands in order, and claims the next due tick of the cursor
//! that it was told). Left out: signs of life of runs, the roster, several groups in one round trip, what people ask for, a store that loses
//! data, and the scripts of Redis, which the contract suite holds against the embedded steps.

mod canon;
mod config;
mod driver;
mod search;
mod state;
mod steps;
mod store;

use std::time::Instant;

use config::{ANY, Config, Fault, Mutant, Property};
use search::Found;

use crate::full;

const TTLS: [u64; 2] = [3, 4];
/// How many states one configuration may have in the long run, for the sake of memory.
const MOST: usize = 4_000_000;

/// One row of the table.
fn explore(config: &Config) -> Found {
    let began = Instant::now();
    let found = search::search(config);
    let end = match &found.broken {
        Some((property, _)) => format!("BROKEN {property:?}"),
        None if !found.complete => "capped".to_owned(),
        None if config.calm_within.is_some() => format!("complete, led within {}", found.longest),
        None => "complete".to_owned(),
    };
    println!(
        "real: {:<52} {}x TTL {}, {} msg{} {:>9} states {:>10} transitions {:>3} deep {:>6.1} s  {end}",
        config.name,
        config.instances,
        config.ttl,
        config.messages,
        if config.late { ", late" } else { "" },
        found.states,
        found.transitions,
        found.depth,
        began.elapsed().as_secs_f64(),
    );
    found
}

/// Nothing breaks, whatever the order of steps.
fn holds(config: Config) {
    let config = config.cap(MOST);
    let found = explore(&config);
    if let Some((property, trace)) = found.broken {
        panic!("{}: {property:?} is broken\n{trace}", config.name);
    }
    assert!(
        found.complete || full(),
        "{}: too large for an ordinary run",
        config.name
    );
}

/// The same with leases of each length, and with more under way in the long run.
fn holds_at_length(name: &'static str, build: impl Fn(Config) -> Config) {
    holds(build(Config::new(name, 3)));
    if full() {
        holds(build(Config::new(name, 4)));
        holds(build(Config::new(name, 3)).messages(2));
    }
}

/// The same with leases of each length.
fn holds_with_each(name: &'static str, build: impl Fn(Config) -> Config) {
    for ttl in TTLS {
        holds(build(Config::new(name, ttl)));
    }
}

/// The same, in the long run only.
fn holds_in_the_long_run(name: &'static str, build: impl Fn(Config) -> Config) {
    if full() {
        holds_with_each(name, build);
    }
}

/// How many faults of a kind: as many as one likes in the long run.
fn times(ordinary: u8) -> u8 {
    if full() { ANY } else { ordinary }
}

#[test]
fn requests_in_any_order() {
    holds_with_each("no faults but the network's", |config| config);
    holds_at_length("requests told to have failed", Config::errors);
    holds_in_the_long_run("answers may be late", Config::late);
    holds_in_the_long_run("the network's faults, more under way", |config| config.messages(2));
    holds_in_the_long_run("each yields 1 or 2", |config| {
        config.yields([1, 2, 0]).fault(Fault::StepDown, ANY)
    });
}

#[test]
fn step_downs() {
    holds_with_each("any step-downs", |config| config.fault(Fault::StepDown, ANY));
    holds_at_length("1 step-down or any, releases are told of", |config| {
        config.fault(Fault::StepDown, times(1)).hints()
    });
    holds_in_the_long_run("any step-downs, told of, answers may be late", |config| {
        config.fault(Fault::StepDown, ANY).hints().late()
    });
    holds_in_the_long_run("any step-downs, told of, in order", |config| {
        config.fault(Fault::StepDown, ANY).hints().in_order()
    });
    holds_in_the_long_run("any shutdowns and step-downs", |config| {
        config.fault(Fault::Shutdown, ANY).fault(Fault::StepDown, ANY)
    });
}

#[test]
fn crashes_slow_clocks_and_wedges() {
    holds_at_length("any crashes, any step-downs", |config| {
        config.fault(Fault::Crash, ANY).fault(Fault::StepDown, ANY)
    });
    holds_at_length("any slow clocks (and step-downs)", |config| {
        config.fault(Fault::Slip, ANY).fault(Fault::StepDown, times(0))
    });
    holds_at_length("1 wedge or any (and step-downs)", |config| {
        config.fault(Fault::Wedge, times(1)).fault(Fault::StepDown, times(0))
    });
    if full() {
        let every = [
            Fault::StepDown,
            Fault::Shutdown,
            Fault::Wedge,
            Fault::Crash,
            Fault::Slip,
        ];
        for times in [1, ANY] {
            let config = Config::new(if times == 1 { "each fault once" } else { "any faults" }, 3);
            holds(
                every
                    .into_iter()
                    .fold(config, |config, fault| config.fault(fault, times)),
            );
        }
    }
}

#[test]
fn three_instances() {
    holds_in_the_long_run("no faults but the network's", |config| config.instances(3));
    if full() {
        for (name, fault) in [
            ("1 crash", Fault::Crash),
            ("1 step-down", Fault::StepDown),
            ("1 slow clock", Fault::Slip),
        ] {
            holds(Config::new(name, 3).instances(3).fault(fault, 1));
        }
    }
}

/// Within a TTL and a unit after the last fault, whatever it was.
#[test]
fn somebody_leads_again() {
    let within = |config: Config| {
        let units = u8::try_from(config.ttl).expect("few") + 1;
        config.calm_within(units)
    };
    let holds_within = |name, build: fn(Config) -> Config| {
        holds(within(build(Config::new(name, 3))));
        if full() {
            holds(within(build(Config::new(name, 4))));
        }
    };
    holds_within("led again: the network's faults", |config| config);
    holds_within("led again: 1 step-down", |config| config.fault(Fault::StepDown, 1));
    if full() {
        holds_within("led again: 1 crash", |config| config.fault(Fault::Crash, 1));
        holds_within("led again: any step-downs, told of", |config| {
            config.fault(Fault::StepDown, ANY).hints()
        });
        holds_within("led again: 1 step-down, answers may be late", |config| {
            config.fault(Fault::StepDown, 1).late()
        });
        holds_within("led again: 1 wedge, 1 step-down", |config| {
            config.fault(Fault::Wedge, 1).fault(Fault::StepDown, 1)
        });
    }
}

/// Time ends two units after the first lease can.
#[test]
fn ticks_are_claimed_once() {
    holds(Config::new("1 tick", 3).ticks(1, 5));
    if full() {
        holds(Config::new("1 tick, without an end of time", 3).ticks(1, 0));
        holds(Config::new("1 tick, more under way", 3).ticks(1, 5).messages(2));
        for (name, fault) in [
            ("2 ticks, 1 crash", Fault::Crash),
            ("2 ticks, 1 step-down", Fault::StepDown),
            ("2 ticks, 1 slow clock", Fault::Slip),
        ] {
            holds(Config::new(name, 3).ticks(2, 5).fault(fault, 1));
        }
    }
    holds_in_the_long_run("2 ticks", |config| {
        let end = config.ttl + 2;
        config.ticks(2, end)
    });
    holds_in_the_long_run("1 tick, answers may be late", |config| {
        let end = config.ttl + 2;
        config.ticks(1, end).late()
    });
}

/// What is visited once stands for all that is alike.
#[test]
fn states_of_one_form_go_on_alike() {
    let compare = |config: Config| match search::compare_forms(&config) {
        Ok(compared) => println!("real: {}: {compared} pairs of states are alike", config.name),
        Err(pair) => panic!("{}: one form, and not alike\n{pair}", config.name),
    };
    compare(Config::new("no faults but the network's", 3));
    if full() {
        let config = Config::new("slow clocks, step-downs, crashes, told of", 3).hints();
        let config = config.fault(Fault::Slip, 1).fault(Fault::StepDown, 1);
        compare(config.fault(Fault::Crash, 1));
        compare(Config::new("answers late, yields", 3).late().yields([1, 2, 0]));
        compare(Config::new("1 tick", 3).ticks(1, 5));
        compare(
            Config::new("wedges and shutdowns", 4)
                .fault(Fault::Wedge, 1)
                .fault(Fault::Shutdown, 1),
        );
    }
}

type Build = fn(Config) -> Config;

/// What each wrong rule breaks, and where that is seen.
const MUTANTS: &[(Mutant, Property, Build)] = &[
    (Mutant::RenewIgnoresHolder, Property::OneBeliever, |config| {
        config.messages(2)
    }),
    (Mutant::RenewAcquires, Property::NoGhost, |config| {
        config.messages(2).fault(Fault::StepDown, 1)
    }),
    (Mutant::ReleaseIgnoresTerm, Property::OneBeliever, |config| {
        config.messages(2).fault(Fault::StepDown, 1)
    }),
    (Mutant::ReleaseIgnoresHolder, Property::OneBeliever, |config| {
        config.fault(Fault::StepDown, 1)
    }),
    (Mutant::NeverStale, Property::NoGhost, |config| {
        config.messages(2).fault(Fault::StepDown, 1)
    }),
    (Mutant::OwnLeaseKeepsTerm, Property::OneBeliever, |config| {
        config.messages(2).fault(Fault::StepDown, 1)
    }),
    (Mutant::ClaimOfAnyTerm, Property::ClaimUnderLease, |config| {
        config.ticks(1, 6)
    }),
    (Mutant::ClaimIgnoresCursor, Property::TickOnce, |config| {
        config.messages(2).ticks(1, 6)
    }),
    // The shorter lease has no room between the end of an operation and the margin.
    (Mutant::TrustFromReply, Property::OneBeliever, |config| {
        Config::new(config.name, 4).late()
    }),
    (Mutant::TrustHasNoEnd, Property::OneBeliever, |config| config),
    (Mutant::ReleaseBeforeBelief, Property::OneBeliever, |config| {
        config.fault(Fault::StepDown, 1)
    }),
    (Mutant::AnswersMixedUp, Property::OneBeliever, |config| {
        config.messages(2).late()
    }),
    (Mutant::GrantAfterStepDown, Property::OneBeliever, |config| {
        config.fault(Fault::Wedge, 1)
    }),
    (Mutant::StartsWithoutLook, Property::StartInTrust, |config| {
        config.late().ticks(1, 6)
    }),
    (Mutant::NoMargin, Property::OneBeliever, |config| {
        config.fault(Fault::Slip, 1)
    }),
    (Mutant::CoolDownForEver, Property::LedAgain, |config| {
        config.fault(Fault::StepDown, 2).calm_within(4)
    }),
];

/// A search that finds nothing says something only where it finds what is wrong.
#[test]
fn wrong_rules_are_seen() {
    for (mutant, property, build) in MUTANTS {
        let config = build(Config::new("", 3)).mutant(*mutant, *property).cap(MOST);
        let found = explore(&Config {
            name: "a wrong rule",
            ..config
        });
        let Some((broken, trace)) = found.broken else {
            panic!("{mutant:?}: {property:?} was not seen to break");
        };
        println!("{mutant:?} breaks {broken:?}:\n{trace}");
        assert_eq!(broken, *property, "{mutant:?}");
    }
}
