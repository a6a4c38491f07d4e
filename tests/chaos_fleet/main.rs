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

use run::Options;

/// What separates the fleet from others.
const NAMESPACE: &str = "chaos";
/// How long a lease lives.
const TTL: Duration = Duration::from_secs(2);
/// What the server wants to hear.
const PASSWORD: &str = "open";

const USAGE: &str = "\
usage: chaos_fleet [--seconds N] [--seed S] [--keep]

  --seconds N   how long, at least 20; 180 unless said
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
    let Some(options) = Options::read(words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if runtime.block_on(run::run(&options)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
