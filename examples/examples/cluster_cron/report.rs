//! What became of every tick, and whether the sums are right.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leader_core::{LedgerError, Outcome};
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::jobs::GROUPS;

/// The sums of a fleet's ledger, beside what the schedules and the bodies say.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By the schedules alone, from the first sight of each job to the end.
    pub due: u64,
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Begun and not ended, or due and not decided yet.
    pub pending: u64,
    /// By the bodies alone.
    pub duplicates: usize,
    pub handovers: usize,
}

impl Report {
    /// The sums of what fell due up to `until`.
    pub async fn read(fleet: &Fleet, until: Timestamp) -> Result<Self, LedgerError> {
        let observer = &fleet.observer;
        let mut report = Self {
            duplicates: fleet.log.duplicates(),
            handovers: fleet.elections.handovers(),
            ..Self::default()
        };
        for job in observer.jobs() {
            let ledger = observer.ledger(job.name.as_str()).await?;
            let (Some(since), Some(cursor)) = (ledger.since, ledger.cursor) else {
                // Nobody has led its group yet: nothing is owed.
                continue;
            };
            // A claim may just have been faster than this look.
            let until = until.max(cursor);
            // What has a ledger has ticks.
            let count = |after| observer.count_ticks(job.name.as_str(), after, until).unwrap_or(0);
            report.due += count(since);
            report.pending += ledger.pending() + count(cursor);
            for (outcome, count) in ledger.counts {
                *report.outcomes.entry(outcome).or_default() += count;
            }
        }
        Ok(report)
    }

    fn sum(&self, of: impl Fn(Outcome) -> bool) -> u64 {
        self.outcomes
            .iter()
            .filter(|(outcome, _)| of(**outcome))
            .map(|(_, count)| count)
            .sum()
    }

    pub fn ran(&self) -> u64 {
        self.sum(Outcome::is_ran)
    }

    pub fn missed(&self) -> u64 {
        self.sum(Outcome::is_missed)
    }

    /// Whether every due tick has exactly one outcome or is pending.
    pub fn adds_up(&self) -> bool {
        self.due == self.sum(|_| true) + self.pending
    }

    /// Whether the promises held.
    pub fn is_good(&self) -> bool {
        self.duplicates == 0 && self.adds_up()
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let others = self.sum(|outcome| !outcome.is_ran() && !outcome.is_missed());
        format!(
            "{} ticks due = {} ran + {} missed + {others} other + {} pending{}; {} twice; {} handovers",
            self.due,
            self.ran(),
            self.missed(),
            self.pending,
            if self.adds_up() { "" } else { " — WRONG" },
            self.duplicates,
            self.handovers,
        )
    }
}

/// The fleet as it stands: its instances and who leads what.
pub fn standing(fleet: &Fleet) -> Value {
    let instance = |member: &crate::fleet::Member| json!({ "instance": member.name, "state": member.state().as_str() });
    let group = |group: &&str| {
        let leader = fleet.leader(group).map(|leader| leader.name);
        json!({ "group": group, "leader": leader, "term": fleet.elections.term(group) })
    };
    json!({
        "instances": fleet.members.iter().map(instance).collect::<Vec<_>>(),
        "groups": GROUPS.iter().map(group).collect::<Vec<_>>(),
    })
}

/// Everything in one object.
pub fn json(mut standing: Value, report: &Report) -> Value {
    let outcomes: BTreeMap<_, _> = report
        .outcomes
        .iter()
        .map(|(outcome, count)| (outcome.as_str(), count))
        .collect();
    standing["ticks_due"] = report.due.into();
    standing["ticks_ran"] = report.ran().into();
    standing["duplicates"] = report.duplicates.into();
    standing["missed"] = report.missed().into();
    standing["outcomes"] = json!(outcomes);
    standing["pending"] = report.pending.into();
    standing["handovers"] = report.handovers.into();
    standing
}
