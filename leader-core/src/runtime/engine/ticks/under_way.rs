//! Claims that wait for their answer.

use super::{Flight, Ticks};
use crate::store::Want;

impl Ticks {
    /// The jobs of those that may become runs.
    pub(in super::super) fn claiming(&self) -> impl Iterator<Item = usize> {
        self.flights.values().flat_map(Flight::may_run)
    }
}

impl Flight {
    fn may_run(&self) -> impl Iterator<Item = usize> {
        let claims = self.batches.iter().flat_map(|(_, batch)| &batch.claims);
        let jobs = self.jobs.iter().flatten();
        let may_run = claims
            .zip(jobs)
            .filter(|(claim, _)| !matches!(claim.want, Want::Settle | Want::Look | Want::Adopt));
        may_run.map(|(_, job)| *job)
    }
}
