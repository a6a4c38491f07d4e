//! What is measured of the engine's own work.

use super::Engine;
use super::elections::span;
use super::input::Group;
use crate::clock::Moment;
use crate::metrics::{Measured, RenewalOutcome};
use crate::store::{Renewed, StoreError};

impl Engine {
    /// How a renewal ended that was sent then, and how long the lease lasts by it.
    pub(super) fn measure_renewal(
        &self,
        now: Moment,
        sent: Moment,
        index: Group,
        answer: &Result<Renewed, StoreError>,
    ) {
        let (timing, took) = (self.shared.config.timing, now.since(sent));
        let outcome = match answer {
            Ok(Renewed::Yes { .. }) if took > timing.operation() / 2 => RenewalOutcome::Slow,
            Ok(Renewed::Yes { .. }) => RenewalOutcome::Ok,
            Ok(Renewed::NotYours { .. }) => RenewalOutcome::Lost,
            Err(_) => RenewalOutcome::Error,
        };
        let renewed = matches!(outcome, RenewalOutcome::Slow | RenewalOutcome::Ok);
        let left = span(timing.ttl().saturating_sub(took));
        self.shared.meter.measure(Measured::Renewal {
            group: self.groups[index].gate.group(),
            outcome,
            took,
            expiry: renewed.then(|| self.shared.fleet_now() + left),
        });
    }
}
