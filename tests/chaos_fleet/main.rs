//! A fleet of five processes on one server, a nemesis that leaves none of them in peace, and a judge that believes nothing.
//!
//! `chaos_fleet [--seconds N] [--seed S] [--keep]`; what a seed repeats is the plan: what is done, when and to whom.

mod deeds;
mod figures;
mod fleet;
mod floor;
mod jobs;
mod nemesis;
mod node;
mod plan;
mod register;
mod run;
mod server;

use std::process::ExitCode;
use std::time::Duration;

use leader_tests::say;
use run::Options;
use tokio::signal::unix::{SignalKind, signal};

/// What separates the fleet from others.
const NAMESPACE: &str = "chaos";
/// How long a lease lives.
const TTL: Duration = Duration::from_secs(2);
/// What the server wants to hear.
const PASSWORD: &str = "open";

const USAGE: &str = "\
usage: chaos_fleet [--seconds N] [--seed S] [--keep]

  --seconds N   how long, 20 to 2678400 (a month); 180 unless said
  --seed S      repeats the plan of a run
  --keep        keeps the files also of a run without a violation";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "node").is_some() {
        return match node::run(words) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:?}");
                ExitCode::FAILURE
            }
        };
    }
    if words.next_if(|word| word == "--help" || word == "-h").is_some() {
        say!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::read(words) {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("{refusal}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let passed = runtime.block_on(async {
        tokio::select! {
            biased;
            // What was started ends with the run.
            signal = told_to_stop() => Err(signal),
            passed = run::run(&options) => Ok(passed),
        }
    });
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(signal) => {
            eprintln!("stopped before its end: nothing is judged");
            ExitCode::from(128 + signal)
        }
    }
}

/// Waits for a signal that ends a program, and gives its number.
async fn told_to_stop() -> u8 {
    let mut interrupt = signal(SignalKind::interrupt()).expect("a handler");
    let mut terminate = signal(SignalKind::terminate()).expect("a handler");
    let mut hangup = signal(SignalKind::hangup()).expect("a handler");
    tokio::select! {
        _ = interrupt.recv() => 2,
        _ = terminate.recv() => 15,
        _ = hangup.recv() => 1,
    }
}
