//! Cursors that lie in the future.

use jiff::{SignedDuration, Timestamp};

use super::super::Engine;
use crate::event::Event;

/// How far ahead a cursor may be without anything being wrong: a tick is claimed when it is due by a clock that is a little off.
const AHEAD: SignedDuration = SignedDuration::from_secs(5);

impl Engine {
    pub(super) fn tell_of_the_future(&self, job: usize, cursor: Timestamp, now: Timestamp) {
        if cursor.duration_since(now) > AHEAD {
            let spec = &self.jobs[job];
            self.shared.tell(Event::CursorAhead {
                group: spec.group.clone(),
                job: spec.name.clone(),
                cursor,
            });
        }
    }
}
