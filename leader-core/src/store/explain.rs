//! Why a tick ran, or did not: what the ledger, the schedule and the clock say of one instant.
//!
//! Pure: the ledger, the schedule and the time go in, an explanation comes out.

mod in_force;
mod paused;
#[cfg(test)]
mod tests;
mod words;

use jiff::Timestamp;

use super::control::{GroupControl, Pause};
use super::coverage::{Absence, AbsenceKind};
use super::ledger::{JobLedger, LedgerRecord, OpenRun};
use crate::job::outcome::Outcome;
use crate::job::tick::Origin;
use crate::names::{GroupName, JobName};
use crate::schedule::missed::MissedReason;
use crate::schedule::planner::Rule;
use in_force::InForce;

/// What became of one instant of a job, as [`Instance::explain`](crate::Instance::explain) tells it. `Display` says it in a sentence or two.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The job.
    pub job: JobName,
    /// Its group.
    pub group: GroupName,
    /// The instant.
    pub at: Timestamp,
    /// The schedule that was in force then.
    pub schedule: String,
    /// What became of it.
    pub fate: Fate,
    /// Runs for the same instant that were asked for, as by a backfill, and have ended: newest first.
    pub asked_for: Vec<LedgerRecord>,
}

/// What became of an instant of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// A run was started for it, and has ended.
    Ran(LedgerRecord),
    /// A run was started for it, and has not ended.
    Running(OpenRun),
    /// A try of its run has failed, and it is tried again.
    TriedAgain(OpenRun),
    /// It waits until an earlier run has ended (`overlap = "wait"`).
    Waits {
        /// That run, if the store knows it.
        behind: Option<OtherRun>,
    },
    /// It was found too late, and the job's policy did not want it run.
    Missed {
        /// Why.
        reason: MissedReason,
        /// The record that it is part of.
        record: LedgerRecord,
    },
    /// An earlier run had not ended (`overlap = "skip"`).
    OverlapSkipped {
        /// The record.
        record: LedgerRecord,
        /// That run, if its record is still there.
        behind: Option<OtherRun>,
    },
    /// The job was paused.
    Paused {
        /// The record that it is part of.
        record: LedgerRecord,
        /// The pause, while the store still knows of it: the newest 256 acts of a group are kept. Once it is over, until when it was.
        pause: Option<Pause>,
    },
    /// A blackout calendar covered it.
    Blackout {
        /// The record that it is part of.
        record: LedgerRecord,
        /// The calendars of this instance that cover it now.
        calendars: Vec<String>,
    },
    /// The result of its run was refused.
    Fenced(LedgerRecord),
    /// It is a tick that is still to come.
    NotYetDue {
        /// When it is due, jitter included.
        due: Timestamp,
        /// The calendars that cover it: it will not run.
        calendars: Vec<String>,
    },
    /// It is due and not decided, and a pause of its job says what becomes of it: it stays open until that ends, or will be told as paused.
    Held {
        /// When it was due.
        due: Timestamp,
        /// Those that decide it, at least one: all that owe what falls due meanwhile; where there is none, all that skip it.
        pauses: Vec<Pause>,
        /// The calendars that cover it: it will not run.
        calendars: Vec<String>,
    },
    /// It is due, and nobody has decided it yet.
    Undecided {
        /// When it was due.
        due: Timestamp,
        /// A run that has not ended, for which owed ticks wait.
        behind: Option<OtherRun>,
        /// The leader of the group, as far as this instance knows.
        leader: Option<String>,
        /// Since when it leads.
        leads_since: Option<Timestamp>,
        /// The calendars that cover it: it will not run.
        calendars: Vec<String>,
        /// Since when the leaders of the group have lacked the job: it will not run.
        lacked_since: Option<Timestamp>,
        /// Whether it needs no leader: whatever instance comes first decides it.
        anywhere: bool,
    },
    /// The fleet first saw the job later, and owes nothing for the time before. `None`: no leader has had the job yet.
    BeforeFirstSeen {
        /// When that was.
        since: Option<Timestamp>,
    },
    /// The fleet was without the job: no living instance had it, and it has no ticks there.
    Removed {
        /// Since when.
        from: Timestamp,
        /// Until when; `None` while it goes on.
        until: Option<Timestamp>,
    },
    /// The schedule has no tick there.
    NotATick {
        /// The tick before, while the same schedule was in force.
        before: Option<Timestamp>,
        /// The tick after, while the same schedule is in force.
        after: Option<Timestamp>,
    },
    /// It was made at run time, and no schedule was in force then: it had ended, and was not made anew yet.
    NotScheduled {
        /// Since when.
        since: Option<Timestamp>,
        /// When it was made anew.
        until: Option<Timestamp>,
    },
    /// The schedule that was in force then cannot be read by this version.
    UnreadableSchedule,
    /// It was decided, and the record is gone; the counts of outcomes remain.
    Trimmed {
        /// Up to which tick details may be gone.
        up_to: Timestamp,
    },
    /// It was passed over without a record, though none was trimmed: the store has lost what it knew, or somebody has moved its cursor.
    Unrecorded,
}

/// A run that stood in the way of a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherRun {
    /// Its own tick.
    pub tick: Timestamp,
    /// Its fence.
    pub fence: u64,
    /// The instance that ran it.
    pub instance: String,
    /// When it was claimed.
    pub since: Timestamp,
    /// When it ended; `None` while it runs.
    pub until: Option<Timestamp>,
}

impl From<&OpenRun> for OtherRun {
    fn from(run: &OpenRun) -> Self {
        Self {
            tick: run.tick,
            fence: run.fence,
            instance: run.instance.clone(),
            since: run.claimed_at,
            until: None,
        }
    }
}

/// What is asked, and all that is known.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) job: &'a JobName,
    pub(crate) group: &'a GroupName,
    pub(crate) at: Timestamp,
    /// The fleet's time.
    pub(crate) now: Timestamp,
    /// This instance's own rule for the job.
    pub(crate) rule: &'a Rule,
    pub(crate) ledger: &'a JobLedger,
    /// What is in force in the group, and what was done to it.
    pub(crate) control: &'a GroupControl,
    /// Who leads the group, as far as this instance knows.
    pub(crate) leader: Option<&'a str>,
    pub(crate) leads_since: Option<Timestamp>,
    /// Whether the job needs no leader.
    pub(crate) anywhere: bool,
}

/// Answers by the schedule that was in force then.
pub(crate) fn explain(question: &Question<'_>) -> Explanation {
    let in_force = in_force::at(question.ledger, question.rule, question.at);
    Explanation {
        job: question.job.clone(),
        group: question.group.clone(),
        at: question.at,
        schedule: in_force.text().to_owned(),
        fate: question.named().unwrap_or_else(|| question.fate(&in_force)),
        asked_for: question.asked_for(),
    }
}

impl Question<'_> {
    fn asked_for(&self) -> Vec<LedgerRecord> {
        let asked = |record: &&LedgerRecord| record.first == self.at && record.origin != Origin::Schedule;
        self.ledger.records.iter().filter(asked).cloned().collect()
    }

    /// What names exactly this tick is certain, whatever the schedule.
    fn named(&self) -> Option<Fate> {
        let (at, ledger) = (self.at, self.ledger);
        let own = |run: &&OpenRun| run.tick == at && run.origin == Origin::Schedule;
        if let Some(run) = ledger.open.iter().find(own) {
            let pauses = run.again_at.is_some();
            return Some(if pauses {
                Fate::TriedAgain(run.clone())
            } else {
                Fate::Running(run.clone())
            });
        }
        if ledger.waiting == Some(at) {
            let behind = self.open_run();
            // Once that has ended, a pause may be what is left in the way.
            let held = behind
                .is_none()
                .then(|| self.held(self.rule.due(at), Vec::new()))
                .flatten();
            return Some(held.unwrap_or(Fate::Waits { behind }));
        }
        let exact =
            |record: &&LedgerRecord| record.first == at && record.last == at && record.origin == Origin::Schedule;
        let record = ledger.records.iter().find(exact)?;
        Some(self.recorded(record))
    }

    fn fate(&self, in_force: &InForce) -> Fate {
        if let Some((since, until)) = in_force::ended(self.ledger, self.at) {
            return Fate::NotScheduled { since, until };
        }
        let InForce::Rule { rule, since, until } = in_force else {
            return Fate::UnreadableSchedule;
        };
        let (at, ledger) = (self.at, self.ledger);
        if rule.schedule.prev(at) != Some(at) {
            let before = rule
                .schedule
                .prev(at)
                .filter(|tick| since.is_none_or(|since| *tick > since));
            let after = rule
                .schedule
                .next(at)
                .filter(|tick| until.is_none_or(|until| *tick <= until));
            return Fate::NotATick { before, after };
        }
        let calendars = || rule.blackouts.covering(at).map(str::to_owned).collect();
        let due = rule.due(at);
        if due > self.now {
            return Fate::NotYetDue {
                due,
                calendars: calendars(),
            };
        }
        if ledger.since.is_none_or(|since| at <= since) {
            return Fate::BeforeFirstSeen { since: ledger.since };
        }
        if let Some(Absence { from, until, .. }) = self.absent(AbsenceKind::Removed) {
            let (from, until) = (*from, *until);
            return Fate::Removed { from, until };
        }
        let spans = |record: &&LedgerRecord| {
            record.first <= at && at <= record.last && record.origin == Origin::Schedule && !record.outcome.is_ran()
        };
        if let Some(record) = ledger.records.iter().find(spans) {
            return self.recorded(record);
        }
        if ledger.cursor.is_none_or(|cursor| at > cursor) {
            return self.held(due, calendars()).unwrap_or_else(|| Fate::Undecided {
                due,
                behind: self.open_run(),
                leader: self.leader.map(str::to_owned),
                leads_since: self.leads_since,
                calendars: calendars(),
                lacked_since: self.absent(AbsenceKind::Uncovered).map(|absence| absence.from),
                anywhere: self.anywhere,
            });
        }
        // Which of the two lists its record was in, nobody knows any more.
        match ledger.trimmed.runs.max(ledger.trimmed.others) {
            Some(up_to) if at <= up_to => Fate::Trimmed { up_to },
            _ => Fate::Unrecorded,
        }
    }

    fn absent(&self, kind: AbsenceKind) -> Option<&Absence> {
        let mut absences = self.ledger.absences.iter();
        absences.find(|absence| {
            let goes_on = absence.until.is_none_or(|until| self.at <= until);
            absence.kind == kind && absence.from < self.at && goes_on
        })
    }

    fn recorded(&self, record: &LedgerRecord) -> Fate {
        let record = record.clone();
        match record.outcome {
            Outcome::Ran(_) => Fate::Ran(record),
            Outcome::Missed(reason) => Fate::Missed { reason, record },
            Outcome::OverlapSkipped => Fate::OverlapSkipped {
                behind: self.run_at(record.settled_at),
                record,
            },
            Outcome::Paused => Fate::Paused {
                pause: self.pause_of(),
                record,
            },
            Outcome::Blackout => {
                let InForce::Rule { rule, .. } = in_force::at(self.ledger, self.rule, self.at) else {
                    let calendars = Vec::new();
                    return Fate::Blackout { record, calendars };
                };
                let calendars = rule.blackouts.covering(self.at).map(str::to_owned).collect();
                Fate::Blackout { record, calendars }
            }
            Outcome::Fenced => Fate::Fenced(record),
        }
    }

    /// A run that has not ended.
    fn open_run(&self) -> Option<OtherRun> {
        self.ledger.open.first().map(OtherRun::from)
    }

    /// The run that was under way at an instant.
    fn run_at(&self, at: Timestamp) -> Option<OtherRun> {
        let ended = self.ledger.records.iter().find(|record| {
            record.outcome.is_ran() && record.first < self.at && record.claimed_at <= at && at <= record.settled_at
        });
        let ended = ended.map(|record| OtherRun {
            tick: record.first,
            fence: record.fence,
            instance: record.instance.clone(),
            since: record.claimed_at,
            until: Some(record.settled_at),
        });
        let open = || {
            self.ledger
                .open
                .iter()
                .find(|run| run.claimed_at <= at)
                .map(OtherRun::from)
        };
        ended.or_else(open)
    }
}
