//! Settings that only simulations and the workspace's own suites have.

use std::sync::{Arc, OnceLock};

use super::Bootstrap;
use super::settings::Vars;
use super::source::{Kind, Source};
use super::within::Within;
use crate::clock::Clock;
use crate::job::record::{Job, Record};
use crate::job::scope::Gates;
use crate::runtime::process::Process;
use crate::store::Store;

/// What a simulated instance is given beside its settings.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) process: Process,
    /// The random part of its holder.
    pub(crate) nonce: u64,
    pub(crate) machine: String,
    /// Its jobs, instead of those that the linker collected.
    pub(crate) jobs: Vec<&'static Record>,
    /// Where its gates are shown, before anything can be led.
    pub(crate) gates: Arc<OnceLock<Arc<Gates>>>,
}

impl Bootstrap {
    /// An instance in a simulation: nothing of this machine, its environment included, has a say in it.
    pub(crate) fn simulated(simulated: Simulated) -> Self {
        let source = Source(Kind::Given(simulated.store, simulated.clock));
        Self {
            within: Within {
                process: simulated.process,
                nonce: Some(simulated.nonce),
                only: Some(simulated.jobs),
                gates: simulated.gates,
            },
            machine: Some(simulated.machine),
            vars: Vars::fixed(&[]),
            ..Self::new(Ok(source))
        }
    }

    /// Adds copies of a job, each under a name of its own: for suites that need more jobs than a compiler likes. They are never
    /// freed.
    #[doc(hidden)]
    pub fn __copies<J: Job>(mut self, count: usize) -> Self {
        let copy = |n| {
            let name = format!("{}-{n}", J::NAME).leak();
            &*Box::leak(Box::new(Record { name, ..J::RECORD }))
        };
        self.records.extend((0..count).map(copy));
        self
    }

    /// Adds a copy of a job, as another version of the program may have it. Its body is let in by the group that the job was written for.
    #[doc(hidden)]
    pub fn __as<J: Job>(mut self, name: &'static str, was: &'static [&'static str]) -> Self {
        let copy = Record { name, was, ..J::RECORD };
        self.records.push(Box::leak(Box::new(copy)));
        self
    }

    /// Gives the instance a wall clock that is wrong, and a machine of its own that has this clock: for suites.
    #[doc(hidden)]
    pub fn __wall_ahead(mut self, ahead: jiff::SignedDuration) -> Self {
        self.wall_ahead = Some(ahead);
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        self.machine = Some(format!("suite-{random:x}"));
        self
    }

    /// Puts the instance on a machine: for suites.
    #[doc(hidden)]
    pub fn __on_machine(mut self, machine: &str) -> Self {
        self.machine = Some(machine.to_owned());
        self
    }
}
