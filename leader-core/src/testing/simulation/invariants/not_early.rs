//! No body begins before its tick by the store's clock, whatever its machine's says: a tick that is claimed too early is lost to whoever
//! reads the time (node-schedule#187, Quartz's misfires after a clock was set back).

use jiff::SignedDuration;

use super::{Invariant, Scene};
use crate::job::tick::Origin;
use crate::testing::simulation::seen::Seen;

/// How far the planning clock may be off: what is known of the store's clock is an interval as long as a round trip.
const OFF: SignedDuration = SignedDuration::from_secs(1);

pub(super) struct NotEarly;

impl Invariant for NotEarly {
    fn name(&self) -> &'static str {
        "no run before its tick"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Polled { body, first: true, .. }
                if body.origin == Origin::Schedule && !scene.forgot && body.tick - OFF > scene.now =>
            {
                let early = body.tick.duration_since(scene.now);
                Err(format!("{early:?} before its tick begins {body:?}"))
            }
            _ => Ok(()),
        }
    }
}
