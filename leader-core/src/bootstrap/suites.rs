//! Settings that only the workspace's own suites have.

use super::Bootstrap;
use crate::job::record::{Job, Record};

impl Bootstrap {
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
