//! Who has had the jobs of a group: spans in which no leader could decide a job's ticks.

use jiff::Timestamp;

use crate::names::{GroupName, Holder, JobName};
use crate::schedule::planner::{Gap, Why};

/// How many spans are kept of each job.
pub(crate) const KEPT_ABSENCES: usize = 16;

/// A span in which no leader of the group could decide a job's ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Absence {
    /// Why.
    pub kind: AbsenceKind,
    /// Its ticks are those after this instant.
    pub from: Timestamp,
    /// Its last instant. `None`: it goes on.
    pub until: Option<Timestamp>,
}

/// Why no leader of a group could decide a job's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AbsenceKind {
    /// The leader lacked the job, and another living instance had it.
    Uncovered,
    /// A holder of another implementation led the group.
    ForeignLeader,
    /// No living instance had the job: the fleet was without it, and it has no ticks there.
    Removed,
}

impl AbsenceKind {
    /// The letter for the store.
    #[cfg(feature = "redis")]
    pub(crate) const ALL: [(&str, Self); 3] =
        [("u", Self::Uncovered), ("f", Self::ForeignLeader), ("r", Self::Removed)];
}

/// A leader's word about the fleet, after that has changed: which jobs it lacks is marked.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Cover {
    /// The group.
    pub group: GroupName,
    /// The leader.
    pub holder: Holder,
    /// Its term.
    pub term: u64,
    /// The jobs it has.
    pub jobs: Vec<JobName>,
    /// Those of the group that other living instances have; `None` where that is not known.
    pub elsewhere: Option<Vec<JobName>>,
}

/// What they mean for the job's ticks, as a leader takes it over at `now`.
pub(crate) fn gaps(absences: &[Absence], now: Timestamp) -> Vec<Gap> {
    let gap = |absence: &Absence| Gap {
        after: absence.from,
        until: absence.until.unwrap_or(now),
        why: match absence.kind {
            AbsenceKind::Uncovered => Why::Uncovered,
            AbsenceKind::ForeignLeader => Why::ForeignLeader,
            AbsenceKind::Removed => Why::Removed,
        },
    };
    absences.iter().map(gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absences_are_gaps_of_their_kind_and_one_that_goes_on_ends_now() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let absence = |kind, from, until| Absence {
            kind,
            from: at(from),
            until,
        };
        let gap = |why, after, until| Gap {
            after: at(after),
            until: at(until),
            why,
        };
        let absences = [
            absence(AbsenceKind::Removed, 1, Some(at(2))),
            absence(AbsenceKind::ForeignLeader, 3, Some(at(4))),
            absence(AbsenceKind::Uncovered, 5, None),
        ];
        let expected = [
            gap(Why::Removed, 1, 2),
            gap(Why::ForeignLeader, 3, 4),
            gap(Why::Uncovered, 5, 9),
        ];
        assert_eq!(gaps(&absences, at(9)), expected);
    }
}
