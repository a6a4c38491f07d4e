//! The ticks of a job that its calendars do not cover, and the spans of those that they do.

use jiff::Timestamp;

use super::Rule;
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

    /// The first tick after `after` that no calendar covers. It leaps over each span.
    #[must_use]
    pub fn next_open(&self, after: Timestamp) -> Option<Timestamp> {
        let mut tick = self.schedule.next(after)?;
        while let Some((_, until)) = self.blackouts.span_at(tick) {
            tick = self.schedule.next(just_before(until))?;
        }
        Some(tick)
    }

    /// The last tick at or before `at` that no calendar covers.
    #[must_use]
    pub fn prev_open(&self, at: Timestamp) -> Option<Timestamp> {
        let mut tick = self.schedule.prev(at)?;
        while let Some((from, _)) = self.blackouts.span_at(tick) {
            tick = self.schedule.prev(just_before(from))?;
        }
        Some(tick)
    }

    /// The tick before a tick that no calendar covers.
    pub(super) fn before_open(&self, tick: Timestamp) -> Option<Timestamp> {
        self.prev_open(just_before(tick))
    }

    /// The ticks after `cursor` and up to `last`, in order: those that are covered, and the others with the outcome that they have else.
    pub(super) fn spans(
        &self,
        mut cursor: Timestamp,
        last: Timestamp,
        open: Option<PassedAs>,
        spans: &mut Vec<Passed>,
    ) {
        while let Some(first) = self.schedule.next(cursor).filter(|first| *first <= last) {
            let (reason, end) = match self.blackouts.span_at(first) {
                Some((_, until)) => (Some(PassedAs::Blackout), Some(until)),
                None => (open, self.blackouts.begins_after(first)),
            };
            let until = end.map_or(last, |end| just_before(end).min(last));
            let Some(until) = self.schedule.prev(until) else { return };
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
