//! Where nothing goes wrong every tick is run: a fleet that says of each tick that it was missed keeps all else, and does nothing
//! (`APScheduler` and Quartz call what was late a misfire; one without a reason is a fault).
//!
//! Quiet is what lies far enough from every fault, from every start and end of a process, and from everything that is told of but runs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Invariant, Scene};
use crate::event::Event;
use crate::job::outcome::{Outcome, Ran};
use crate::job::record::Overlap;
use crate::schedule::missed::{Missed, MissedReason};
use crate::store::ledger::LedgerRecord;
use crate::testing::simulation::seen::Seen;

/// How long what was wrong may be felt, beside some leases' length.
const FELT: SignedDuration = SignedDuration::from_secs(60);

/// How many bodies of a job are remembered.
const KEPT: usize = 10_000;

#[derive(Default)]
pub(super) struct Quiet {
    /// When it begins to be quiet.
    from: Timestamp,
    /// From when to when it was.
    spans: Vec<(Timestamp, Timestamp)>,
    /// From when to when bodies of a job ran, by their fences.
    bodies: BTreeMap<&'static str, BTreeMap<u64, (Timestamp, Timestamp)>>,
}

impl Quiet {
    /// Something that may be felt begins now, and ends after so long.
    fn disturb(&mut self, scene: Scene, lasts: SignedDuration) {
        if self.from < scene.now {
            self.spans.push((self.from, scene.now));
        }
        let leases = SignedDuration::try_from(4 * scene.ttl).unwrap_or(SignedDuration::MAX);
        self.from = self.from.max(scene.now + lasts + leases + FELT);
    }

    /// Whether all that the record tells of was quiet, and no run in the way.
    fn covers(&self, job: &str, record: &LedgerRecord) -> bool {
        let mut bodies = self.bodies.get(job).into_iter().flat_map(BTreeMap::values);
        let (from, to) = (record.first, record.settled_at);
        let quiet = self.spans.iter().any(|(begin, end)| *begin < from && to < *end);
        quiet && !bodies.any(|(begun, ended)| *begun <= to && from <= *ended)
    }
}

/// Whether an event is of the ordinary.
fn is_usual(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted { .. }
            | Event::RunFailed { .. }
            | Event::Decided { .. }
            | Event::BodyEnded { .. }
            | Event::Tasks(_)
    )
}

/// Whether a tick may have become this only if something was wrong: of a job whose missed ticks are run.
fn is_odd(record: &LedgerRecord, overlap: Overlap) -> bool {
    match record.outcome {
        Outcome::Missed(MissedReason::Coalesced) => overlap != Overlap::Wait,
        Outcome::Missed(MissedReason::Skipped | MissedReason::TooOld | MissedReason::OverLimit) => true,
        Outcome::Ran(Ran::NotStarted) => record.error.is_empty(),
        _ => false,
    }
}

impl Invariant for Quiet {
    fn name(&self) -> &'static str {
        "what nothing disturbs is run"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        match seen {
            Seen::Fault(fault) => {
                let lasts = SignedDuration::try_from(fault.lasts).unwrap_or(SignedDuration::MAX);
                self.disturb(scene, lasts);
            }
            Seen::Started(_) | Seen::Died(_) | Seen::Healed => self.disturb(scene, SignedDuration::ZERO),
            Seen::Told { event, .. } if !is_usual(event) => self.disturb(scene, SignedDuration::ZERO),
            Seen::Polled { body, first: true, .. } => {
                let bodies = self.bodies.entry(body.job).or_default();
                bodies.insert(body.fence, (scene.now, Timestamp::MAX));
                if bodies.len() > KEPT {
                    bodies.pop_first();
                }
            }
            Seen::Ended { body, .. } => {
                let of_job = self.bodies.get_mut(body.job);
                if let Some((_, ended)) = of_job.and_then(|bodies| bodies.get_mut(&body.fence)) {
                    *ended = scene.now;
                }
            }
            Seen::Ledger {
                job,
                missed: Missed::Latest,
                overlap,
                ledger,
                ..
            } if !scene.forgot => {
                let mut odd = ledger.records.iter().filter(|record| is_odd(record, *overlap));
                if let Some(record) = odd.find(|record| self.covers(job, record)) {
                    return Err(format!("nothing was wrong, and of `{job}` there is {record:?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
