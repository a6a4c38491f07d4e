//! No body is polled past its trust, unless it was said that it may finish: what a lease guards stops before the lease can end (Gray and
//! Cheriton, "Leases", 1989).

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

pub(super) struct TrustedPolls;

impl Invariant for TrustedPolls {
    fn name(&self) -> &'static str {
        "no poll past trust"
    }

    fn see(&mut self, seen: &Seen<'_>, _: Scene) -> Result<(), String> {
        match seen {
            Seen::Polled {
                body,
                first,
                trusted: false,
            } if *first || !body.finishes => Err(format!("polled past its trust: {body:?}")),
            _ => Ok(()),
        }
    }
}
