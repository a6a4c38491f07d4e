//! The command line.

use std::time::Duration;

use leader_examples::CommandLine;

const USAGE: &str = "\
usage: tasks [--invoices N] [--instances N] [--kill] [--work SPAN] [--ahead SPAN]

The midnight invoice run: N tasks that are due at one instant, and a fleet that charges each invoice once.
In one process on the embedded store, or on the Redis that LEADER_REDIS_URL names, with a process for each instance.

  --invoices N   how many; 100000 unless given
  --instances N  how many instances work; 3 unless given
  --kill         when a third is charged the instance that dispatches is killed, when two thirds are, another one
  --work SPAN    how long an invoice takes besides its charge; 5ms unless given
  --ahead SPAN   how far ahead midnight is, so that all can be stored before; unless given 3 s and more for many invoices";

/// What this process is.
#[derive(Debug)]
pub enum Part {
    /// The one that was started by a user.
    Run(Options),
    /// An instance that the other one has started.
    Instance(Instance),
}

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    pub url: Option<String>,
    pub invoices: u64,
    pub instances: usize,
    pub kill: bool,
    pub work: Duration,
    pub ahead: Duration,
}

/// What an instance is told by who starts it.
#[derive(Debug)]
pub struct Instance {
    pub url: String,
    pub namespace: String,
    pub id: String,
    pub work: Duration,
}

impl Options {
    pub fn of_process() -> Part {
        let mut line = CommandLine::of_process(USAGE);
        let url = std::env::var("LEADER_REDIS_URL").ok().filter(|url| !url.is_empty());
        let work = line.span("--work").unwrap_or(Duration::from_millis(5));
        if let Some(id) = line.value("--instance") {
            let namespace = line.required("--namespace");
            let url = url.unwrap_or_else(|| line.refuse("`--instance` needs LEADER_REDIS_URL"));
            line.finish();
            return Part::Instance(Instance {
                url,
                namespace,
                id,
                work,
            });
        }
        let invoices = line.parsed("--invoices", "a whole number").unwrap_or(100_000);
        let instances = line.parsed("--instances", "a whole number").unwrap_or(3);
        let kill = line.flag("--kill");
        // Some 15,000 a second are stored even by a build without optimisation.
        let ahead = line.span("--ahead");
        let ahead =
            ahead.unwrap_or(Duration::from_secs(3) + Duration::from_micros(66).saturating_mul(clamped(invoices)));
        if !(1..=10_000_000).contains(&invoices) {
            line.refuse(&format!("`--invoices {invoices}`: write a number from 1 to 10000000"));
        }
        let least = if kill { 3 } else { 1 };
        if !(least..=32).contains(&instances) {
            let why = if kill { " (two are killed)" } else { "" };
            line.refuse(&format!(
                "`--instances {instances}`: write a number from {least} to 32{why}"
            ));
        }
        line.finish();
        Part::Run(Self {
            url,
            invoices,
            instances,
            kill,
            work,
            ahead,
        })
    }
}

fn clamped(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
