//! The rules of the election, explored: every order of steps of a small fleet under every fault, by a model of the scripts
//! `campaign`, `renew` and `release` and of the election's machine.
//!
//! A lease lasts 3 or 4 units, the margin and an operation's time-out are 1, and a request may be delayed, lost, executed after its
//! caller gave up, or lose its answer. Time is relative and terms are ranks, so that runs have no end unless faults are counted.
//! What is not modelled: claims, the roster, hints of a release, the exact moment of a retry.
//!
//! `real` explores the same without such a model: the product's own machine, gate and steps.
//!
//! `LEADER_MODEL=full cargo test --release -p leader-tests --test model -- --nocapture` explores further, and prints the table.

mod config;
mod real;
mod rules;
mod search;
mod state;
mod steps;

use std::time::Instant;

use config::{ANY, Config, Fault, Mutant, Property, Young};
use search::Found;

const TTLS: [u8; 2] = [3, 4];
/// How many states one configuration may have in the long run.
const MOST: usize = 10_000_000;

fn full() -> bool {
    std::env::var_os("LEADER_MODEL").is_some_and(|value| value == "full")
}

/// One row of the table.
fn explore(config: &Config) -> Found {
    let began = Instant::now();
    let found = search::search(config);
    let end = match &found.broken {
        Some((property, _)) => format!("BROKEN {property:?}"),
        None if !found.complete => "capped".to_owned(),
        None if config.timers() => format!("complete, led within {}", found.longest),
        None => "complete".to_owned(),
    };
    let fleet = format!(
        "{}x TTL {:?}, {} msg",
        config.instances,
        &config.ttl[..2],
        config.messages
    );
    println!(
        "{:<58} {fleet:<22} {:>8} states {:>9} transitions {:>6.1} s  {end}",
        config.name,
        found.states,
        found.transitions,
        began.elapsed().as_secs_f64(),
    );
    found
}

/// With leases of each length nothing breaks; the long run has more requests in flight.
fn holds(name: &'static str, build: impl Fn(Config) -> Config) {
    for ttl in TTLS {
        let base = Config::new(name, ttl);
        let few = build(base.clone().messages(1));
        let more = build(base.messages(2));
        if full() && more.messages > 1 {
            holds_once(more);
        }
        holds_once(few);
    }
}

/// The same; too large with the longer lease for an ordinary run.
fn holds_at_length(name: &'static str, build: impl Fn(Config) -> Config) {
    if full() {
        holds(name, build);
    } else {
        holds_once(build(Config::new(name, 3).messages(1)));
    }
}

/// How many faults of a kind: none in an ordinary run.
fn up_to(most: u8) -> u8 {
    if full() { most } else { 0 }
}

fn holds_once(config: Config) {
    let config = Config { cap: MOST, ..config };
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

/// The model sees that this property breaks.
fn breaks(config: &Config, expected: Property) {
    let found = explore(config);
    let Some((property, trace)) = found.broken else {
        panic!("{}: {expected:?} was not seen to break", config.name);
    };
    println!("{trace}");
    assert_eq!(property, expected, "{}", config.name);
}

#[test]
fn requests_in_any_order() {
    holds("no faults but the network's", |config| config);
}

#[test]
fn step_downs() {
    holds("any step-downs", |config| config.fault(Fault::StepDown, ANY));
    if full() {
        holds("any step-downs, answers may be late", |config| {
            config.fault(Fault::StepDown, ANY).late_replies()
        });
    }
}

/// That an answer comes at once or never loses nothing.
#[test]
fn late_answers() {
    holds("step-downs, any DEL, answers may be late", |config| {
        let steps = if full() { ANY } else { 1 };
        config
            .messages(1)
            .fault(Fault::StepDown, steps)
            .fault(Fault::Del, ANY)
            .late_replies()
    });
}

#[test]
fn crashes_and_slow_clocks() {
    holds("any crashes, any step-downs", |config| {
        config.fault(Fault::Crash, ANY).fault(Fault::StepDown, ANY)
    });
    holds_at_length("any slow clocks, any step-downs", |config| {
        config.fault(Fault::Slip, ANY).fault(Fault::StepDown, ANY)
    });
    if full() {
        holds("any crashes, slow clocks and step-downs", |config| {
            config
                .messages(1)
                .fault(Fault::Crash, ANY)
                .fault(Fault::Slip, ANY)
                .fault(Fault::StepDown, ANY)
        });
    }
}

#[test]
fn wedged_job_runtimes() {
    holds("any wedges, any step-downs", |config| {
        config.fault(Fault::Wedge, ANY).fault(Fault::StepDown, ANY)
    });
}

#[test]
fn lease_keys_deleted() {
    holds("any DEL, any step-downs, any crashes", |config| {
        config
            .fault(Fault::Del, ANY)
            .fault(Fault::StepDown, ANY)
            .fault(Fault::Crash, ANY)
    });
    holds_at_length("any DEL, any slow clocks", |config| {
        config.fault(Fault::Del, ANY).fault(Fault::Slip, ANY)
    });
    holds_at_length("any DEL, any PERSIST, 1 step-down", |config| {
        let config = config.fault(Fault::Del, ANY).fault(Fault::Persist, ANY);
        config.fault(Fault::StepDown, 1)
    });
    holds_at_length("any DEL of lease and state, any PERSIST", |config| {
        let config = config.fault(Fault::Del, ANY).fault(Fault::DelState, ANY);
        // A state that is gone has forgotten to whom it granted what.
        let config = config.fault(Fault::Persist, ANY);
        config.only(&[Property::P1, Property::P3, Property::Inv, Property::Keep])
    });
}

#[test]
fn everything_once() {
    let slow_ones = [Fault::Crash, Fault::Slip, Fault::Persist];
    holds_at_length("1 each: step-down, wedge, DEL (crash, slow clock, PERSIST)", |config| {
        let config = config.messages(1).fault(Fault::StepDown, 1);
        let config = config.fault(Fault::Wedge, 1).fault(Fault::Del, 1);
        slow_ones
            .into_iter()
            .fold(config, |config, fault| config.fault(fault, up_to(1)))
    });
}

#[test]
fn all_data_lost() {
    for (name, fault) in [
        ("1 FLUSHALL, 1 step-down, 1 crash", Fault::Flush),
        ("1 restart empty, 1 step-down, 1 crash", Fault::Empty),
        ("1 restart with all data, 1 step-down, 1 crash", Fault::Restart),
    ] {
        holds_at_length(short(name), |config| {
            let config = config
                .fault(fault, 1)
                .fault(Fault::StepDown, 1)
                .fault(Fault::Crash, up_to(1));
            // What was granted once is granted again to a ghost: the store has forgotten.
            config.only(&[Property::P1, Property::P3, Property::Inv, Property::Keep])
        });
    }
    holds("any FLUSHALL", |config| {
        config
            .fault(Fault::Flush, ANY)
            .only(&[Property::P1, Property::P3, Property::Inv])
    });
}

/// The name of what an ordinary run leaves of it.
fn short(name: &'static str) -> &'static str {
    if full() {
        name
    } else {
        name.trim_end_matches(", 1 crash")
    }
}

/// A server that restarts with its data as of an earlier fsync.
#[test]
fn data_rolled_back() {
    let properties = [Property::P1, Property::P3, Property::Inv];
    holds_at_length(short("young by age: 1 rollback, 1 step-down, 1 crash"), |config| {
        let config = config.fault(Fault::Rollback, 1).fault(Fault::StepDown, 1);
        config
            .fault(Fault::Crash, up_to(1))
            .young(Young::ByAge)
            .only(&properties)
    });
    // What was acquired after a vacancy was written to disk is forgotten, and nothing that is remembered tells when it will have
    // ended: why the script goes by the last renewal only where no more than the last moments of a machine's crash can be lost.
    let by_seen = |name| {
        let config = Config::new(name, 3).messages(1).fault(Fault::Rollback, 1);
        config.young(Young::BySeen).only(&properties)
    };
    breaks(&by_seen("young by seen: 1 rollback"), Property::P1);
    // A lease that was written to disk may have been renewed at its very end, and that may be forgotten.
    let held = by_seen("young by seen, held on disk: 1 rollback, 1 step-down").held_on_disk();
    let held = held.fault(Fault::StepDown, 1);
    holds_once(held.clone());
    breaks(&held.mutant(Mutant::LateRenewalForgotten), Property::P1);
}

#[test]
fn server_clock_set_back() {
    holds_at_length("1 step back, 1 DEL", |config| {
        config.messages(1).fault(Fault::Back, 1).fault(Fault::Del, 1)
    });
    if full() {
        holds("1 step back, any DEL, 1 crash", |config| {
            let config = config.messages(1).fault(Fault::Back, 1);
            config.fault(Fault::Del, ANY).fault(Fault::Crash, 1)
        });
        holds("2 steps back, 1 DEL, 1 step-down", |config| {
            let config = config.messages(1).fault(Fault::Back, 2);
            config.fault(Fault::Del, 1).fault(Fault::StepDown, 1)
        });
        holds("young by age: 1 step back, 1 rollback, 1 step-down", |config| {
            let config = config.messages(1).fault(Fault::Back, 1).fault(Fault::Rollback, 1);
            config
                .fault(Fault::StepDown, 1)
                .young(Young::ByAge)
                .only(&[Property::P1, Property::Inv])
        });
        holds("1 step back, 1 restart with all data", |config| {
            config.messages(1).fault(Fault::Back, 1).fault(Fault::Restart, 1)
        });
        holds("1 step back, 1 FLUSHALL", |config| {
            let config = config.messages(1).fault(Fault::Back, 1).fault(Fault::Flush, 1);
            config.only(&[Property::P1, Property::Inv])
        });
    }
}

/// A clock that jumps forward ends leases early: two may believe, for less than a TTL, and terms rise all the same.
#[test]
fn server_clock_set_forward() {
    let config = Config::new("1 step forward", 3).messages(1).fault(Fault::Forward, 1);
    breaks(&config, Property::P1);
    holds("any steps forward, 1 step-down: P3, bound", |config| {
        let config = config.fault(Fault::Forward, ANY).fault(Fault::StepDown, 1);
        config.only(&[Property::P3, Property::Bound])
    });
}

#[test]
fn vacancies_left_to_others() {
    holds("any step-downs, each yields 2 or nothing", |config| {
        config.fault(Fault::StepDown, ANY).yields([2; 3])
    });
    holds_at_length("any DEL, 1 step-down, each yields a TTL or nothing", |config| {
        let ttl = config.ttl[0];
        config.fault(Fault::Del, ANY).fault(Fault::StepDown, 1).yields([ttl; 3])
    });
}

#[test]
fn the_only_process_of_an_id() {
    holds("exclusive ids, any crashes, any DEL, any step-downs", |config| {
        let config = config.only_one().fault(Fault::Crash, ANY);
        config.fault(Fault::Del, ANY).fault(Fault::StepDown, ANY)
    });
    // The promise is broken: two live processes of one id.
    let broken = |name| Config::new(name, 3).messages(1).only_one().one_id();
    breaks(
        &broken("exclusive id, promise broken").only(&[Property::P1]),
        Property::P1,
    );
    holds("exclusive id, promise broken, any DEL: P3, bound", |config| {
        let config = config.only_one().one_id().fault(Fault::Del, ANY);
        config.only(&[Property::P3, Property::Bound])
    });
}

#[test]
fn leases_of_different_length() {
    let mixed = |name, longer| Config::new(name, 3).messages(1).ttls([longer, 3, 3]);
    holds_once(
        mixed("any DEL, any PERSIST, 1 step-down", 5)
            .fault(Fault::Del, ANY)
            .fault(Fault::Persist, ANY)
            .fault(Fault::StepDown, 1),
    );
    holds_once(
        mixed("1 FLUSHALL, longer by the margin", 4)
            .fault(Fault::Flush, 1)
            .only(&[Property::P1, Property::P3]),
    );
    // A store that has forgotten the longer lease does not wait for its end.
    let forgotten = mixed("1 FLUSHALL, longer by more", 5).fault(Fault::Flush, 1);
    breaks(&forgotten.clone().only(&[Property::P1]), Property::P1);
    holds_once(forgotten.only(&[Property::P3, Property::Bound]));
}

#[test]
fn three_instances() {
    let three = |name| Config::new(name, 3).messages(1).instances(3);
    if full() {
        holds_once(
            three("any step-downs, 1 crash, 1 DEL")
                .fault(Fault::StepDown, ANY)
                .fault(Fault::Crash, 1)
                .fault(Fault::Del, 1),
        );
        holds_once(
            three("1 FLUSHALL")
                .fault(Fault::Flush, 1)
                .only(&[Property::P1, Property::P3]),
        );
        holds_once(three("any slow clocks").fault(Fault::Slip, ANY));
    } else {
        holds_once(three("no faults but the network's"));
    }
}

/// After the last fault somebody leads within a bound that is known.
#[test]
fn somebody_leads_again() {
    holds("P8: ghosts only", |config| {
        let ttl = config.ttl[0];
        config.calm_within(ttl)
    });
    holds("P8: first start, no promise", |config| {
        let ttl = config.ttl[0];
        config.fresh().calm_within(ttl)
    });
    for (name, fault) in [
        ("P8: 1 step-down", Fault::StepDown),
        ("P8: 1 wedge", Fault::Wedge),
        ("P8: 1 DEL", Fault::Del),
        ("P8: 1 crash", Fault::Crash),
    ] {
        holds(name, |config| {
            let ttl = config.ttl[0];
            config.fault(fault, 1).calm_within(ttl)
        });
    }
    holds_at_length("P8: 1 DEL, 1 crash", |config| {
        let ttl = config.ttl[0];
        config.fault(Fault::Del, 1).fault(Fault::Crash, 1).calm_within(ttl)
    });
    holds_at_length("P8, each yields 2: 1 step-down", |config| {
        let ttl = config.ttl[0];
        config.fault(Fault::StepDown, 1).yields([2; 3]).calm_within(ttl + 2)
    });
    holds_at_length(short("P8, each yields 2: 1 DEL, 1 crash"), |config| {
        let ttl = config.ttl[0];
        let config = config.messages(1).fault(Fault::Del, 1).fault(Fault::Crash, up_to(1));
        config.yields([2; 3]).calm_within(ttl + 2)
    });
    holds_at_length("P8, one yields a TTL: 1 crash", |config| {
        let ttl = config.ttl[0];
        config
            .messages(1)
            .fault(Fault::Crash, 1)
            .yields([ttl, 0, 0])
            .calm_within(2 * ttl)
    });
}

/// What a standby cannot see costs it one look more: it looks when the lease it saw should have ended.
#[test]
fn somebody_leads_again_after_faults_of_the_store() {
    for (name, fault) in [
        ("P8: 1 FLUSHALL, 1 crash", Fault::Flush),
        ("P8: 1 restart empty, 1 crash", Fault::Empty),
        ("P8: 1 PERSIST, 1 crash", Fault::Persist),
        ("P8: 1 restart with all data, 1 crash", Fault::Restart),
    ] {
        holds_at_length(name, |config| {
            let ttl = config.ttl[0];
            config
                .messages(1)
                .fault(fault, 1)
                .fault(Fault::Crash, 1)
                .calm_within(2 * ttl)
        });
    }
    if full() {
        holds("P8: 1 step back, 1 DEL, 1 crash", |config| {
            let ttl = config.ttl[0];
            let config = config
                .messages(1)
                .fault(Fault::Back, 1)
                .fault(Fault::Del, 1)
                .fault(Fault::Crash, 1);
            config.calm_within(2 * ttl + 1)
        });
        holds("P8, young by age: 1 rollback, 1 crash", |config| {
            let ttl = config.ttl[0];
            let config = config.messages(1).fault(Fault::Rollback, 1).fault(Fault::Crash, 1);
            config.young(Young::ByAge).calm_within(2 * ttl)
        });
        holds("P8, young by age: 1 restart, 1 crash", |config| {
            let ttl = config.ttl[0];
            let config = config.messages(1).fault(Fault::Restart, 1).fault(Fault::Crash, 1);
            config.young(Young::ByAge).calm_within(2 * ttl)
        });
    }
}

fn mutant(name: &'static str, mutant: Mutant, property: Property) -> Config {
    Config::new(name, 3).messages(1).mutant(mutant).only(&[property])
}

/// The rule of old, with its shortest trace.
#[test]
fn a_lease_that_vanished_is_not_vacant() {
    let config = mutant(
        "a lease that vanished is vacant",
        Mutant::VanishedIsVacant,
        Property::P1,
    );
    breaks(&config.fault(Fault::Del, 1), Property::P1);
}

#[test]
fn wrong_rules_of_the_store_are_seen() {
    use Property::{Ghost, Inv, P1, P8};
    // A lease that goes with the release of an earlier term was not given back: the quarantine keeps others out, as a second wall.
    let config = mutant("release of any term", Mutant::ReleaseOfAnyTerm, Inv);
    breaks(&config.messages(2).fault(Fault::StepDown, 1), Inv);
    let config = mutant("the same, vanished is vacant", Mutant::ReleaseOfAnyTerm, P1);
    let config = config.mutant(Mutant::VanishedIsVacant);
    breaks(&config.messages(2).fault(Fault::StepDown, 1), P1);
    // It prolongs what it does not mean: a lease given back and taken again, or the one of a rollback.
    let config = mutant("renewal of any term", Mutant::RenewOfAnyTerm, Ghost);
    breaks(&config.messages(2).fault(Fault::StepDown, 1), Ghost);
    let config = mutant("renewal of any term, rollback", Mutant::RenewOfAnyTerm, Inv);
    breaks(&config.fault(Fault::Rollback, 1).fault(Fault::StepDown, 1), Inv);
    let config = mutant("renewal acquires", Mutant::RenewAcquires, Ghost);
    breaks(&config.messages(2).fault(Fault::StepDown, 1), Ghost);
    breaks(
        &mutant("a campaign is never stale", Mutant::NeverStale, Inv).messages(2),
        Inv,
    );
    let config = mutant("clamp shorter than granted", Mutant::ClampTooShort, Inv);
    breaks(&config.fault(Fault::Persist, 1), Inv);
    let config = mutant("clamp to the finder's TTL", Mutant::ClampToOwnTtl, Inv);
    breaks(&config.ttls([5, 3, 3]).fault(Fault::Persist, 1), Inv);
    let config = mutant("never clamp", Mutant::NeverClamp, P8).calm_within(9);
    breaks(&config.fault(Fault::Persist, 1).fault(Fault::Crash, 1), P8);
    let config = mutant("seen in the future is long past", Mutant::SeenInFutureIsOld, P1);
    breaks(&config.fault(Fault::Back, 1).fault(Fault::Del, 1), P1);
    breaks(
        &mutant("no birth mark", Mutant::NoBirthMark, P1).fault(Fault::Flush, 1),
        P1,
    );
    let config = mutant("a young server is like an old one", Mutant::NeverYoung, P1);
    breaks(&config.young(Young::ByAge).fault(Fault::Rollback, 1), P1);
    let config = mutant("a vacancy is left for ever", Mutant::YieldForEver, P8);
    breaks(&config.yields([2; 3]).calm_within(9), P8);
    if full() {
        let config = mutant("seen stays in the future", Mutant::SeenStaysInFuture, P8).calm_within(7);
        breaks(
            &config.fault(Fault::Back, 1).fault(Fault::Del, 1).fault(Fault::Crash, 1),
            P8,
        );
    }
}

#[test]
fn wrong_rules_of_the_machine_are_seen() {
    use Property::{P1, Wedge};
    let config = Config::new("no margin", 3).messages(1).margin(0).only(&[P1]);
    breaks(&config.fault(Fault::Slip, 1), P1);
    let config = mutant("step-down keeps attempts outstanding", Mutant::StepDownKeepsFlight, P1);
    breaks(&config.messages(2).fault(Fault::StepDown, 1), P1);
    let config = mutant("belief is cleared after the release", Mutant::ReleaseBeforeBelief, P1);
    breaks(&config.fault(Fault::StepDown, 1), P1);
    let config = mutant("a wedged instance leads", Mutant::WedgedLeads, Wedge);
    breaks(&config.fault(Fault::Wedge, 1), Wedge);
    // Without a pause the margin hides it.
    let config = mutant("trust from the answer", Mutant::TrustFromReply, P1).late_replies();
    breaks(&config, P1);
    holds_once(config.pauses(false));
}

/// The recorded holder is exempt from the quarantine of a vanished lease if it knows the recorded term. Whoever does not know it is
/// refused as stale anyhow, so that nothing breaks without that clause: either check will do.
#[test]
fn the_exemption_needs_no_term_of_its_own() {
    holds("exempt without the term: any DEL, 1 step-down, 1 crash", |config| {
        let config = config.mutant(Mutant::ExemptWithoutTerm).fault(Fault::Del, ANY);
        config.fault(Fault::StepDown, 1).fault(Fault::Crash, 1)
    });
}
