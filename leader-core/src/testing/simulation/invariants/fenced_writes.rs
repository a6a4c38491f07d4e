//! What writes with its fence to a resource that refuses lower ones is never shut out while it is the newest: the resource's side of
//! fencing tokens (Kleppmann, "How to do distributed locking", 2016).
//!
//! Each body writes to the register of its job whenever it is polled. A write that is taken after a higher one would be a fault of
//! the register, which is three lines here; one that is refused though its run is trusted and no other of the job has begun since
//! means that somebody got a higher fence earlier.

use std::collections::BTreeMap;

use super::{Invariant, Scene};
use crate::testing::simulation::seen::{Body, Seen};

#[derive(Default)]
pub(super) struct FencedWrites {
    registers: BTreeMap<&'static str, Register>,
}

#[derive(Default)]
struct Register {
    highest: u64,
    newest: Option<Body>,
}

impl Invariant for FencedWrites {
    fn name(&self) -> &'static str {
        "the newest run is never fenced"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let Seen::Polled { body, first, trusted } = seen else {
            return Ok(());
        };
        let register = self.registers.entry(body.job).or_default();
        if *first {
            register.newest = Some((*body).clone());
        }
        if body.fence >= register.highest {
            register.highest = body.fence;
            return Ok(());
        }
        let is_newest = register.newest.as_ref() == Some(*body);
        if is_newest && *trusted && !scene.split {
            return Err(format!(
                "{body:?} is refused by a register that has seen {}",
                register.highest
            ));
        }
        Ok(())
    }
}
