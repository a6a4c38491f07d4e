//! The ticks of a job that its policy decides, and the spans of those that calendars cover or that are in gaps.

use jiff::Timestamp;

use super::Rule;
use super::gaps::{Kind, Stretch};
use crate::schedule::blackout::just_before;
use crate::schedule::missed::{Passed, PassedAs};
use crate::schedule::{Schedule, Zone};

impl Rule {
    /// The same by another schedule: the days of its calendars are those of that one's zone.
    #[must_use]
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        let zone = schedule.zone().cloned().unwrap_or(Zone::UTC);
        let blackouts = self.blackouts.in_zone(&zone);
        Self {
            schedule,
            blackouts,
            ..self
        }
    }

    /// Where a tick is that the job's policy does not decide.
    fn closed_at(&self, tick: Timestamp) -> Option<Stretch> {
        if self.decides_all() {
            return None;
        }
        Some(self.stretch_at(tick)).filter(|stretch| stretch.kind != Kind::Open)
    }

    /// The first tick after `after` that no calendar covers, and that is in no gap. It leaps over each span.
    #[must_use]
    pub fn next_open(&self, after: Timestamp) -> Option<Timestamp> {
        let mut tick = self.schedule.next(after)?;
        while let Some(stretch) = self.closed_at(tick) {
            tick = self.schedule.next(stretch.until)?;
        }
        Some(tick)
    }

    /// The last tick at or before `at` that no calendar covers, and that is in no gap.
    #[must_use]
    pub fn prev_open(&self, at: Timestamp) -> Option<Timestamp> {
        let mut tick = self.schedule.prev(at)?;
        while let Some(stretch) = self.closed_at(tick) {
            tick = self.schedule.prev(stretch.after)?;
        }
        Some(tick)
    }

    /// The tick before a tick that no calendar covers.
    pub(super) fn before_open(&self, tick: Timestamp) -> Option<Timestamp> {
        self.prev_open(just_before(tick))
    }

    /// The ticks after `cursor` and up to `last`, in order: those that are covered or in gaps, and the others with the outcome that they have
    /// else.
    pub(super) fn spans(
        &self,
        mut cursor: Timestamp,
        last: Timestamp,
        open: Option<PassedAs>,
        spans: &mut Vec<Passed>,
    ) {
        while let Some(first) = self.schedule.next(cursor).filter(|first| *first <= last) {
            let stretch = self.stretch_at(first);
            let reason = match stretch.kind {
                Kind::Open => open,
                Kind::Passed(reason) => Some(reason),
                Kind::Removed => None,
            };
            let Some(until) = self.schedule.prev(stretch.until.min(last)) else {
                return;
            };
            if let Some(reason) = reason {
                let count = self.schedule.count(cursor, until);
                match spans
                    .last_mut()
                    .filter(|span| span.reason == reason && span.last == cursor)
                {
                    Some(span) => (span.last, span.count) = (until, span.count + count),
                    None => spans.push(Passed {
                        reason,
                        first,
                        last: until,
                        count,
                    }),
                }
            }
            cursor = until;
        }
    }
}
