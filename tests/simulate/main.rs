//! Simulates fleets for so many seconds, each from a seed, on all cores: prints how long they lived, what happened to them, and what
//! should not have.
//!
//! `simulate [--seconds 60] [--seed N] [--one [--log]]`: seeds are taken from N on, which is random unless given; `--one` runs that seed alone
//! and prints its report, after all that was seen with `--log`. First each fault of `leader_core::mutants` is planted in turn, if the feature
//! `mutants` is on, in a fleet that is sound without it unless it is to be `--brief`; `--mutants` does nothing else, and `--year` simulates one.
#![allow(clippy::unwrap_used, reason = "a suite fails by panic")]

mod exact;
mod jobs;
#[cfg(feature = "mutants")]
mod mutants;
mod swarm;
mod tasks;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leader_core::testing::{FaultKind, Faults, Report, Simulation};
use leader_tests::say;

const USAGE: &str = "\
usage: simulate [--seconds N] [--seed S] [--brief]
       simulate --one [--seed S] [--log]
       simulate --mutants [NAME]
       simulate --year

  --seconds N   how long fleets are simulated after the mutants; 60 unless said
  --seed S      the first seed; one by chance unless said
  --brief       does not look whether the fleets of the mutants are sound without them
  --one         runs the fleet of one seed, and finds the fewest faults that bring about what was wrong with it
  --log         prints everything that was seen of it: when, by the seconds of virtual time, and what";

/// The longest that fleets are simulated for.
const LONGEST: u64 = 366 * 86_400;

struct Wish {
    seconds: u64,
    seed: u64,
    one: bool,
    log: bool,
    brief: bool,
}

/// What is asked for by itself, without anything beside it.
enum Alone {
    Help,
    Mutants(Option<String>),
    Year,
}

/// `None` where the first word asks for nothing of that kind.
fn alone() -> Option<Result<Alone, String>> {
    let mut words = std::env::args().skip(1);
    let wish = match words.next()?.as_str() {
        "--help" | "-h" => Alone::Help,
        "--mutants" => Alone::Mutants(words.next()),
        "--year" => Alone::Year,
        _ => return None,
    };
    Some(match words.next() {
        Some(word) => Err(format!("`{word}` is not understood here\n{USAGE}")),
        None => Ok(wish),
    })
}

fn wish() -> Result<Wish, String> {
    let mut wish = Wish {
        seconds: 60,
        seed: leader_tests::dice::seed(),
        one: false,
        log: false,
        brief: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or(format!("{word} wants a number"))?;
            text.parse().map_err(|_| format!("{word} wants a number, not `{text}`"))
        };
        match word.as_str() {
            "--seconds" => wish.seconds = number()?,
            "--seed" => wish.seed = number()?,
            "--one" => wish.one = true,
            "--log" => wish.log = true,
            "--brief" => wish.brief = true,
            _ => return Err(format!("`{word}` is not understood\n{USAGE}")),
        }
    }
    if wish.log && !wish.one {
        return Err("--log is for --one".to_owned());
    }
    if !(1..=LONGEST).contains(&wish.seconds) {
        return Err(format!("--seconds wants 1 to {LONGEST}"));
    }
    Ok(wish)
}

/// What all runs came to.
#[derive(Default)]
struct Total {
    runs: u64,
    hours: f64,
    elections: u64,
    bodies: u64,
    polls: u64,
    faults: BTreeMap<FaultKind, u64>,
    unsound: Vec<(Report, Vec<String>)>,
}

impl Total {
    fn add(&mut self, report: Report, wrong: Vec<String>) {
        self.runs += 1;
        self.hours += report.span.as_secs_f64() / 3_600.0;
        self.elections += report.elections;
        self.bodies += report.runs;
        self.polls += report.polls;
        for (kind, count) in &report.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        if !report.is_sound() || !wrong.is_empty() {
            self.unsound.push((report, wrong));
        }
    }
}

/// Runs seeds from the first on until the time is up.
fn roam(first: u64, until: Instant) -> Total {
    let next = AtomicU64::new(first);
    let total = Mutex::new(Total::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                // One at least: a run that has simulated nothing has shown nothing.
                loop {
                    let report = swarm::simulation(next.fetch_add(1, Ordering::SeqCst)).run();
                    let wrong = exact::wrong(&report, false);
                    total.lock().unwrap().add(report, wrong);
                    if Instant::now() >= until {
                        break;
                    }
                }
            });
        }
    });
    total.into_inner().unwrap()
}

/// How many of the mutants were killed, and how many there are.
#[cfg(feature = "mutants")]
fn planted(only: Option<&str>, brief: bool) -> (usize, usize) {
    mutants::run(only, brief)
}

#[cfg(not(feature = "mutants"))]
fn planted(_only: Option<&str>, _brief: bool) -> (usize, usize) {
    say!("no mutants: they take the feature `mutants` of this package");
    (0, 0)
}

/// A year of a job of each minute on three instances, as users would run it.
fn a_year() -> ExitCode {
    let (_, add) = jobs::ALL[0];
    for faults in [Faults::none(), Faults::realistic()] {
        let began = Instant::now();
        let report = add(Simulation::new().instances(3)).for_days(365).faults(faults).run();
        say!("{report}\nin {:.1} s", began.elapsed().as_secs_f64());
        if !report.is_sound() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Plants the mutants, and nothing else.
fn the_mutants(only: Option<&str>) -> ExitCode {
    let (killed, all) = planted(only, false);
    if all == 0 {
        return ExitCode::from(2);
    }
    say!("{killed} passed, {} failed", all - killed);
    if killed == all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn main() -> ExitCode {
    let refused = |refusal: String| {
        eprintln!("{refusal}");
        ExitCode::from(2)
    };
    match alone() {
        Some(Ok(Alone::Help)) => {
            say!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Some(Ok(Alone::Mutants(only))) => return the_mutants(only.as_deref()),
        Some(Ok(Alone::Year)) => return a_year(),
        Some(Err(refusal)) => return refused(refusal),
        None => {}
    }
    let wish = match wish() {
        Ok(wish) => wish,
        Err(refusal) => return refused(refusal),
    };
    if wish.one {
        let mut simulation = swarm::simulation(wish.seed);
        if wish.log {
            simulation = simulation.logged();
        }
        let report = simulation.run();
        if let Some(log) = &report.log {
            say!("{}", log.trim_end());
        }
        say!("{report}");
        let wrong = exact::wrong(&report, false);
        for wrong in &wrong {
            say!("  wrong whatever happens: {wrong}");
        }
        if !report.is_sound() {
            say!("as few faults as bring it about: {}", simulation.minimise(&report));
        }
        return if report.is_sound() && wrong.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    // What cannot see a fault says nothing by its silence.
    let (killed, all) = planted(None, wish.brief);
    let calm = exact::calm(wish.seed).run();
    let as_it_should = exact::wrong(&calm, true);
    if !as_it_should.is_empty() {
        say!("nothing has gone wrong, and yet:\n{}\n{calm}", as_it_should.join("\n"));
    }
    // From here on: the mutants may take longer than all that was asked for.
    let began = Instant::now();
    let total = roam(wish.seed, began + Duration::from_secs(wish.seconds));
    let faults: u64 = total.faults.values().sum();
    say!(
        "seeds {} to {}: {:.0} simulated hours in {:.1} s, {} elections, {} bodies, {} polls, {faults} faults",
        wish.seed,
        wish.seed.wrapping_add(total.runs.saturating_sub(1)),
        total.hours,
        began.elapsed().as_secs_f64(),
        total.elections,
        total.bodies,
        total.polls
    );
    for (kind, count) in &total.faults {
        say!("  {kind:<16} {count:>9}");
    }
    let violations = total
        .unsound
        .iter()
        .map(|(report, wrong)| report.violations.len() + wrong.len());
    say!("violations {}", violations.sum::<usize>());
    for (report, wrong) in &total.unsound {
        say!(
            "{report}\n{}\nto see it again: tests/run simulate --one --seed {}",
            wrong.join("\n"),
            report.seed
        );
    }
    let failed = total.unsound.len() as u64
        + (all - killed) as u64
        + u64::from(total.runs == 0)
        + u64::from(!as_it_should.is_empty());
    say!(
        "{} passed, {failed} failed",
        (1 + total.runs + all as u64).saturating_sub(failed)
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
