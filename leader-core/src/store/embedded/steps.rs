//! The steps of the embedded store on the data of one group, with the time as an argument: for searches through every state.

use jiff::Timestamp;

use super::step::{Time, Writes};
use super::{Data, Group, lease, ticks};
use crate::clock::Moment;
use crate::election::marks::Mark;
use crate::names::{GroupName, Holder, JobName};
use crate::store::ledger::{JobLedger, OpenRun};
use crate::store::request::{
    Campaign, Campaigned, ClaimBatch, Claimed, Release, Renewal, Renewed, SettleBatch, Settled, TakeOver, TakenOver,
};

/// What the store holds of one group, as a value.
#[derive(Clone, Debug, Default)]
pub struct GroupSteps(Group);

impl GroupSteps {
    fn step<T>(
        &mut self,
        group: &GroupName,
        now: Moment,
        wall: Timestamp,
        step: impl FnOnce(&mut Data, Time<'_>) -> T,
    ) -> T {
        let mut data = Data::default();
        data.groups.insert(group.clone(), std::mem::take(&mut self.0));
        let writes = Writes::default();
        let answer = step(&mut data, Time::at(now, wall, &writes));
        self.0 = data.groups.remove(group).unwrap_or_default();
        answer
    }

    /// A campaign.
    pub fn campaign(&mut self, request: &Campaign, now: Moment, wall: Timestamp) -> Campaigned {
        let step = |data: &mut Data, time: Time<'_>| lease::campaign(data, request, time);
        self.step(&request.group, now, wall, step)
    }

    /// A renewal.
    pub fn renew(&mut self, request: &Renewal, now: Moment, wall: Timestamp) -> Renewed {
        let step = |data: &mut Data, time: Time<'_>| lease::renew(data, request, time);
        self.step(&request.group, now, wall, step)
    }

    /// A release; whether there was something to release.
    pub fn release(&mut self, request: &Release, now: Moment, wall: Timestamp) -> bool {
        let step = |data: &mut Data, time: Time<'_>| lease::release(data, request, time);
        self.step(&request.group, now, wall, step)
    }

    /// A new leader's question.
    pub fn take_over(&mut self, request: &TakeOver, now: Moment, wall: Timestamp) -> TakenOver {
        let step = |data: &mut Data, time: Time<'_>| ticks::take_over(data, request, time);
        self.step(&request.group, now, wall, step)
    }

    /// A batch of claims.
    pub fn claim(&mut self, batch: &ClaimBatch, now: Moment, wall: Timestamp) -> Claimed {
        let step = |data: &mut Data, time: Time<'_>| ticks::claim(data, batch, time);
        self.step(&batch.group, now, wall, step)
    }

    /// The ends of runs.
    pub fn settle(&mut self, batch: &SettleBatch, now: Moment, wall: Timestamp) -> Vec<Settled> {
        let step = |data: &mut Data, time: Time<'_>| ticks::settle(data, batch, time);
        self.step(&batch.group, now, wall, step)
    }

    /// The lease: its holder and its end, which may have come.
    #[must_use]
    pub fn lease(&self) -> Option<(&Holder, Moment)> {
        let lease = self.0.lease.as_ref()?;
        Some((lease.holder.as_ref()?, lease.ends))
    }

    /// The highest term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.0.term
    }

    /// The last number that was minted.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.0.fence
    }

    /// A job's part of the ledger.
    #[must_use]
    pub fn job(&self, name: &JobName) -> Option<&JobLedger> {
        self.0.jobs.get(name)
    }

    /// Tells what decides how the steps above go on.
    ///
    /// Left out is what they only hand on or only keep for people, and what people do to a group: acts of control, schedules made at run
    /// time, who has had which jobs; and what only a store that was made
    /// as a server looks at.
    pub fn marks(&self, now: Moment, tell: &mut dyn FnMut(Mark<'_>)) {
        // Without `..`, so that who adds a field decides whether it counts.
        let Group {
            lease,
            vacant,
            asked,
            term,
            fence,
            drained: _,
            late_from: _,
            beats,
            replaced,
            jobs,
            control: _,
            made: _,
            coverage: _,
            revived: _,
            marks: _,
            #[cfg(feature = "tasks")]
                tasks: _,
        } = &self.0;
        match lease {
            Some(lease) if now < lease.ends => {
                tell(Mark::Plain(0));
                if let Some(holder) = &lease.holder {
                    tell(Mark::Holder(holder));
                }
                tell(Mark::Due(lease.ends));
            }
            // The first step that looks at one which has ended takes it away.
            Some(lease) => {
                tell(Mark::Plain(1));
                tell(Mark::Vacant(lease.ends));
            }
            None => {
                tell(Mark::Plain(1 + u64::from(vacant.is_none())));
                tell(Mark::Vacant(vacant.unwrap_or(now)));
            }
        }
        tell(Mark::Number(*term));
        tell(Mark::Number(*fence));
        if let Some((term, ends, _)) = asked {
            tell(Mark::Plain(3));
            tell(Mark::Number(*term));
            tell(Mark::Due(*ends));
        }
        for (kind, moments) in [(4, beats), (5, replaced)] {
            for (fence, at) in moments {
                tell(Mark::Plain(kind));
                tell(Mark::Number(*fence));
                tell(Mark::Since(*at));
            }
        }
        for job in jobs.values() {
            tell(Mark::Plain(6));
            job_marks(job, tell);
        }
    }
}

fn job_marks(job: &JobLedger, tell: &mut dyn FnMut(Mark<'_>)) {
    let JobLedger {
        since: _,
        cursor,
        counts: _,
        open,
        waiting,
        records,
        schedule,
        schedules: _,
        trimmed: _,
        handler: _,
        retired: _,
        absences: _,
    } = job;
    tell(Mark::Plain(u64::from(schedule.is_some())));
    for at in [cursor, waiting].into_iter().flatten() {
        tell(Mark::Instant(at.as_millisecond()));
    }
    for run in open {
        let OpenRun {
            tick,
            fence,
            term,
            number,
            origin: _,
            claimed_at: _,
            instance: _,
            holder,
            tries,
            again_at,
            last: _,
            error: _,
        } = run;
        tell(Mark::Plain(7 + 4 * u64::from(*tries) + u64::from(again_at.is_some())));
        tell(Mark::Instant(again_at.unwrap_or(*tick).as_millisecond()));
        tell(Mark::Instant(tick.as_millisecond()));
        tell(Mark::Number(*fence));
        tell(Mark::Number(*term));
        tell(Mark::Plain(*number));
        tell(Mark::Holder(holder));
    }
    for record in records {
        tell(Mark::Plain(9 + u64::from(record.outcome.is_ran())));
        tell(Mark::Instant(record.last.as_millisecond()));
    }
}
