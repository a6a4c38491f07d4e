//! The cursor of a job never goes back: ticks are decided in their order, once (rundeck#6879, paseo#2819).

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;

#[derive(Default)]
pub(super) struct Cursor {
    cursors: BTreeMap<String, Timestamp>,
}

impl Invariant for Cursor {
    fn name(&self) -> &'static str {
        "cursors never go back"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        let Seen::Cursor { job, cursor } = seen else {
            return Ok(());
        };
        let before = self.cursors.insert((*job).to_owned(), *cursor);
        match before {
            Some(before) if before > *cursor && !scene.forgot => {
                Err(format!("the cursor of `{job}` went back from {before} to {cursor}"))
            }
            _ => Ok(()),
        }
    }
}
