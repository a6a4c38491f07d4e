//! Of the tasks that have one unique key at most one is unfinished, and none has it for longer than that.

use std::collections::BTreeMap;

use super::ended;
use crate::names::QueueName;
use crate::tasks::id::TaskId;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// Of what was stored since a server last forgot anything.
#[derive(Default)]
pub(super) struct Unique {
    /// The unfinished task of each key.
    holders: BTreeMap<(QueueName, String), TaskId>,
    /// Who has had a key, and has ended.
    before: BTreeMap<(QueueName, String), TaskId>,
}

impl Invariant for Unique {
    fn name(&self) -> &'static str {
        "one unfinished task of a unique key"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if scene.forgets {
            *self = Self::default();
            return Ok(());
        }
        let Seen::Task(seen) = seen else { return Ok(()) };
        match seen {
            TaskSeen::Stored {
                id,
                unique: Some(unique),
                again: false,
                ..
            } => {
                let key = (id.queue().clone(), (*unique).to_owned());
                // What is told to be stored a second time changes nothing.
                if self.before.get(&key) == Some(id) {
                    return Ok(());
                }
                let other = self.holders.insert(key, (*id).clone());
                // Who has forgotten how many parts a queue has looks in others.
                let counts = |other: &TaskId| other != *id && (!scene.forgot || other.place() == id.place());
                if let Some(other) = other.filter(counts) {
                    return Err(format!(
                        "{id} is stored with the key `{unique}` of {other}, which is unfinished"
                    ));
                }
            }
            TaskSeen::Instead {
                id,
                unique,
                again: false,
            } => {
                let key = (id.queue().clone(), (*unique).to_owned());
                if self.before.get(&key) == Some(id) {
                    return Err(format!(
                        "{id} has ended, and nothing is stored for it with the key `{unique}`"
                    ));
                }
            }
            _ => {}
        }
        if let Some((id, _)) = ended(seen) {
            let held = self.holders.iter().find(|(_, holder)| *holder == id);
            if let Some(key) = held.map(|(key, _)| key.clone()) {
                self.holders.remove(&key);
                self.before.insert(key, id.clone());
            }
        }
        Ok(())
    }
}
