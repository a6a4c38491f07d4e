//! Spans of a job's time in which nobody who could have decided its ticks led the group, or the fleet did not have the job at all.

use jiff::Timestamp;

use super::Rule;
use super::plan::Plan;
use crate::schedule::blackout::just_before;
use crate::schedule::missed::{MissedReason, PassedAs};

/// Why the ticks of a span are not decided by the job's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No instance that led the group had the job.
    Uncovered,
    /// A holder of another implementation led the group.
    ForeignLeader,
    /// No instance of the fleet had the job: it has no ticks there.
    Removed,
}

impl Why {
    /// What its ticks are settled as; nothing where they are none.
    fn passed_as(self) -> Option<PassedAs> {
        match self {
            Self::Uncovered => Some(MissedReason::Uncovered.into()),
            Self::ForeignLeader => Some(MissedReason::ForeignLeader.into()),
            Self::Removed => None,
        }
    }
}

/// A span: the ticks after `after` and up to `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its ticks are those after this instant.
    pub after: Timestamp,
    /// The last instant of it.
    pub until: Timestamp,
    /// Why.
    pub why: Why,
}

/// The gaps of one job, in order, none of which overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// The gaps of a job whose ticks are decided up to `cursor`. Of two that overlap the earlier keeps what is in both. What was left
    /// undecided before the fleet gave the job up is owed to nobody: no leader had it by the time that it could have been decided.
    #[must_use]
    pub fn new(mut gaps: Vec<Gap>, cursor: Timestamp) -> Self {
        gaps.sort_by_key(|gap| gap.after);
        let removed = gaps
            .iter()
            .rev()
            .find(|gap| gap.why == Why::Removed && gap.until > cursor);
        let given_up = removed.map_or(cursor, |gap| gap.after);
        let mut found: Vec<Gap> = Vec::new();
        let mut from = cursor;
        for gap in gaps {
            let after = gap.after.max(from);
            if gap.until <= after {
                continue;
            }
            if from < after && from < given_up {
                found.push(Gap {
                    after: from,
                    until: after,
                    why: Why::Uncovered,
                });
            }
            found.push(Gap { after, ..gap });
            from = gap.until;
        }
        Self(found)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one that a tick is in.
    pub(super) fn at(&self, tick: Timestamp) -> Option<&Gap> {
        self.0.iter().find(|gap| gap.after < tick && tick <= gap.until)
    }

    /// Between which two instants a tick is that is in none.
    fn around(&self, tick: Timestamp) -> (Timestamp, Timestamp) {
        let before = self.0.iter().rev().map(|gap| gap.until).find(|until| *until < tick);
        let behind = self.0.iter().map(|gap| gap.after).find(|after| *after >= tick);
        (before.unwrap_or(Timestamp::MIN), behind.unwrap_or(Timestamp::MAX))
    }

    fn of_others(&self) -> Self {
        let others = self.0.iter().filter(|gap| gap.why != Why::Uncovered);
        Self(others.copied().collect())
    }

    /// Without what is late from `late` on, of the spans whose ticks nobody else has run.
    fn before(mut self, late: Timestamp) -> Self {
        for gap in self.0.iter_mut().filter(|gap| gap.why == Why::Uncovered) {
            gap.until = gap.until.min(just_before(late));
        }
        self.0.retain(|gap| gap.after < gap.until);
        self
    }
}

/// What ticks are, as far as neither policy nor schedule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The job's policy decides.
    Open,
    /// They pass without a run.
    Passed(PassedAs),
    /// They are none.
    Removed,
}

/// Ticks in a row that are all of one kind.
pub(super) struct Stretch {
    pub(super) kind: Kind,
    /// The last instant before it.
    pub(super) after: Timestamp,
    /// Its last instant.
    pub(super) until: Timestamp,
}

impl Rule {
    /// The stretch that a tick is in. Where the fleet did not have the job a calendar has nothing to cover; what one covers would have run
    /// under no leader.
    pub(super) fn stretch_at(&self, tick: Timestamp) -> Stretch {
        let gap = self.gaps.at(tick);
        let blackout = self.blackouts.span_at(tick);
        let kind = match (gap.map(|gap| gap.why.passed_as()), blackout) {
            (Some(None), _) => Kind::Removed,
            (_, Some(_)) => Kind::Passed(PassedAs::Blackout),
            (Some(Some(passed)), None) => Kind::Passed(passed),
            (None, None) => Kind::Open,
        };
        let (mut after, mut until) = match gap {
            Some(gap) => (gap.after, gap.until),
            None => self.gaps.around(tick),
        };
        let (from, to) = match blackout {
            Some((from, to)) => (Some(from), Some(to)),
            None => (self.blackouts.ended_before(tick), self.blackouts.begins_after(tick)),
        };
        if let Some(from) = from {
            after = after.max(just_before(from));
        }
        if let Some(to) = to {
            until = until.min(just_before(to));
        }
        Stretch { kind, after, until }
    }

    pub(super) fn decides_all(&self) -> bool {
        self.blackouts.is_empty() && self.gaps.is_empty()
    }
}

impl Plan {
    /// What is late simply runs, even where the leader before lacked the job: it was not yet missed. Where another implementation led,
    /// that may have run it.
    pub(super) fn keep_what_is_late(&mut self, now: Timestamp) {
        if self.rule.gaps.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.rule.gaps);
        self.rule.gaps = all.of_others();
        let newest = self.newest_open(now);
        let late = newest.and_then(|newest| self.first_late(newest, now));
        self.rule.gaps = match late {
            Some(late) => all.before(late),
            None => all,
        };
    }
}

#[cfg(test)]
mod tests;
