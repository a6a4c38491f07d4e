//! Events as log lines.

mod control;
mod tasks;

use jiff::{SignedDuration, SignedDurationRound, Unit};

use crate::election::{Lost, Oddity};
use crate::event::Event;
use crate::job::outcome::{Outcome, Ran};
use crate::schedule::missed::MissedReason;

/// Tells an event to the log: gains, losses and stops at `info`; what a person should look at as `warn`.
pub(crate) fn tell(instance: &str, event: &Event) {
    match event {
        Event::Started { .. } => tracing::debug!(instance, "instance joined its fleet"),
        Event::RunStarted { .. } | Event::RunFailed { .. } | Event::Decided { .. } => tell_of_runs(instance, event),
        Event::BodyEnded {
            name,
            group,
            error,
            again_in,
        } => {
            tracing::warn!(instance, %name, %group, error, ?again_in, "a long-lived body ended early and is started again");
        }
        Event::StoreFound { finding } if finding.kind.is_fatal() => {
            tracing::error!(instance, "the store cannot hold leases: {finding}");
        }
        Event::StoreFound { finding } => tracing::warn!(instance, "the store: {finding}"),
        Event::RuntimeWedged { running, .. } => tracing::warn!(
            instance,
            running = running.join(","),
            "the runtime that runs the bodies has run nothing for one TTL: every lead is given up until it runs again, and jobs that are \
             under way keep their slots; code that blocks its thread belongs into `tokio::task::spawn_blocking`"
        ),
        Event::RuntimeRecovered => tracing::info!(
            instance,
            "the runtime that runs the bodies runs again, and this instance takes part again; look for code that blocks its \
             thread and give it to `tokio::task::spawn_blocking`"
        ),
        Event::EnginePanicked {
            error,
            again_in: Some(pause),
        } => tracing::error!(
            instance, error, again_in = ?pause,
            "the framework's own work panicked: every lead is lost, and it is started again after a pause; this is a mistake in \
             leader-core, or a panic of the program's own tracing subscriber"
        ),
        Event::EnginePanicked { error, again_in: None } => tracing::error!(
            instance,
            error,
            "the framework's own work panicked while the instance was stopping: it stops without the rest of its drain"
        ),
        Event::StoreFailed { error } => tracing::warn!(instance, error, "the store does not answer"),
        Event::StoreRecovered => tracing::info!(instance, "the store answers again"),
        Event::Stopped { .. } => tracing::info!(instance, "instance left its fleet"),
        Event::Elected { .. }
        | Event::Lost { .. }
        | Event::Draining { .. }
        | Event::RenewalFailed { .. }
        | Event::Quarantined { .. } => tell_of_leads(instance, event),
        Event::OddLease { .. }
        | Event::StepDownAsked { .. }
        | Event::DuplicateId { .. }
        | Event::Uncovered { .. }
        | Event::MakingWay { .. }
        | Event::CursorAhead { .. }
        | Event::TimeZonesDiffer { .. }
        | Event::OtherService { .. } => tell_of_others(instance, event),
        Event::RunStuck { .. }
        | Event::ScheduleFollowed { .. }
        | Event::ScheduleChanged { .. }
        | Event::ScheduleUnreadable { .. } => tell_of_jobs(instance, event),
        Event::ClockStepped { .. }
        | Event::ClockAstray { .. }
        | Event::ClockRight { .. }
        | Event::ClockDisputed { .. }
        | Event::ClockAgreed { .. } => tell_of_clocks(instance, event),
        Event::Paused { .. } | Event::Resumed { .. } | Event::Requested { .. } | Event::Scheduling(_) => {
            control::tell(instance, event);
        }
        Event::Tasks(news) => tasks::tell(instance, news),
    }
}

/// What becomes of runs, and of ticks.
fn tell_of_runs(instance: &str, event: &Event) {
    match event {
        Event::RunStarted {
            job,
            group,
            scheduled_at,
            fence,
            ..
        } => {
            tracing::debug!(instance, %job, %group, %scheduled_at, fence, "run started");
        }
        Event::RunFailed {
            job,
            group,
            scheduled_at,
            fence,
            attempt,
            outcome,
            error,
            again_at,
        } => {
            tracing::warn!(
                instance, %job, %group, %scheduled_at, fence, attempt, %outcome, error, %again_at,
                "a try failed, and the run is tried again"
            );
        }
        Event::Decided {
            job,
            group,
            first,
            last,
            count,
            outcome,
            fence,
            error,
            ..
        } => {
            match outcome {
                Outcome::Ran(Ran::Ok) => {
                    tracing::debug!(instance, %job, %group, %first, %last, count, %outcome, fence, "tick decided");
                }
                // In a calm fleet these are ordinary: a hand-over, and a body that takes longer than its period.
                Outcome::Ran(Ran::Cancelled)
                | Outcome::Missed(MissedReason::Coalesced)
                | Outcome::OverlapSkipped
                | Outcome::Paused
                | Outcome::Blackout => {
                    tracing::info!(instance, %job, %group, %first, %last, count, %outcome, fence, "tick decided");
                }
                _ => {
                    tracing::warn!(instance, %job, %group, %first, %last, count, %outcome, fence, error, "tick decided");
                }
            }
        }
        _ => {}
    }
}

/// What becomes of this instance's own leads.
fn tell_of_leads(instance: &str, event: &Event) {
    match event {
        Event::Elected { group, term } => tracing::info!(instance, %group, term, "leadership gained"),
        Event::Lost {
            group, term, reason, ..
        } => match reason {
            Lost::SteppedDown | Lost::Shutdown | Lost::RuntimeGone => {
                tracing::info!(instance, %group, term, %reason, "leadership lost");
            }
            _ => tracing::warn!(instance, %group, term, %reason, "leadership lost"),
        },
        Event::Draining { group, term } => tracing::info!(instance, %group, term, "draining before giving up the lead"),
        // The first of a row; the end of the row is told as a loss, or not at all.
        Event::RenewalFailed {
            group,
            term,
            failures: failures @ 1,
        } => tracing::warn!(instance, %group, term, failures, "renewal failed, will be retried while trust lasts"),
        Event::RenewalFailed { group, term, failures } => {
            tracing::debug!(instance, %group, term, failures, "renewal failed again");
        }
        Event::Quarantined { group, remaining } => tracing::info!(
            instance, %group, ?remaining,
            "nobody may lead this group yet, because an old leader may still believe: the store's data is new, its server was just \
             restarted, or the lease vanished before its end; a new deployment can skip this with `.first_start(true)`"
        ),
        _ => {}
    }
}

/// What has to do with other instances, or with somebody who is none.
fn tell_of_others(instance: &str, event: &Event) {
    match event {
        Event::OddLease { group, holder, oddity } => {
            let holder = holder.as_deref();
            match oddity {
                Oddity::Foreign => tracing::warn!(
                    instance, %group, holder,
                    "the lease is held by somebody who is not of this fleet: it is respected until it ends;                      if that is a mistake, give this fleet a namespace of its own"
                ),
                Oddity::Endless | Oddity::WrongType => tracing::error!(
                    instance, %group, holder, %oddity,
                    "the key of the lease is not a lease of this fleet and never ends: nobody can lead the group until it is deleted"
                ),
                Oddity::Clamped => tracing::warn!(
                    instance, %group, holder,
                    "the lease would have outlasted its time and was cut back to it: the server's clock was set back,                      or somebody took its end away"
                ),
            }
        }
        Event::StepDownAsked {
            group,
            term,
            by,
            reason,
        } => {
            tracing::info!(instance, %group, term, by, reason, "asked to step down");
        }
        Event::DuplicateId {
            other, exclusive: true, ..
        } => tracing::error!(
            instance,
            other,
            "the promise of `.exclusive_id(true)` is broken: another process of this id is alive, and one may have taken the other's \
             leases; end one of them, or take the promise back"
        ),
        Event::DuplicateId { other, .. } => tracing::error!(
            instance,
            other,
            "another living process has the same instance id; each has a holder of its own and no lease is shared, but logs and \
             pages cannot tell them apart: give each an id of its own with `.instance_id(..)`"
        ),
        Event::Uncovered { group, job, member } => tracing::warn!(
            instance, %group, job, member,
            "this instance leads the group without having one of its jobs, which does not run here"
        ),
        Event::CursorAhead { group, job, cursor } => tracing::error!(
            instance, %group, %job, %cursor,
            "the store says that this job's ticks are decided up to an instant of the future, and nothing of it runs before that: the \
             server's clock, or a leader's, was ahead for a while"
        ),
        Event::TimeZonesDiffer {
            instance: other,
            instances,
            theirs,
            ours,
        } => tracing::warn!(
            instance,
            other,
            instances,
            their_time_zones = theirs,
            own_time_zones = ours,
            "other instances read time zones from another version of the database: where the rules of a zone have changed, a job with \
             `timezone` is due at other instants there, and they disagree with this one when the leadership moves; run one build everywhere, or, \
             with LEADER_TIME_ZONES=system, bring tzdata to one version on all machines"
        ),
        Event::MakingWay { group, term, member } => tracing::info!(
            instance, %group, term, member,
            "giving the group up for an instance that it fits better"
        ),
        Event::OtherService {
            service,
            instance: other,
        } => tracing::error!(
            instance,
            service,
            other,
            "another service is alive in this namespace: give each its own with `.namespace(..)`, or one name to both with `.service(..)`"
        ),
        _ => {}
    }
}

/// What a job's runs or its schedule came to.
fn tell_of_jobs(instance: &str, event: &Event) {
    match event {
        Event::RunStuck {
            job,
            group,
            scheduled_at,
            fence,
            asked_ago,
        } => tracing::warn!(
            instance, %job, %group, %scheduled_at, fence, ?asked_ago,
            "a run was asked to end and has not returned: its body blocks its thread, or has no `.await` at which it could be dropped, and it \
             keeps its slot; give what blocks to `tokio::task::spawn_blocking`, and let long loops look at `tick.is_cancelled()`"
        ),
        Event::ScheduleFollowed {
            group,
            job,
            schedule,
            version,
        } => tracing::info!(
            instance, %group, %job, schedule,
            "schedule of the newer version {version} is followed, while an instance of it lives"
        ),
        Event::ScheduleChanged {
            group,
            job,
            from,
            to,
            since,
        } => tracing::info!(instance, %group, %job, from, to, %since, "schedule changed"),
        Event::ScheduleUnreadable {
            group,
            job,
            schedule,
            version,
        } => tracing::error!(
            instance, %group, %job, schedule, version,
            "this version cannot read the job's schedule in force and puts its own in its place at once: what fell due by the other one since \
             its last decided tick is not counted"
        ),
        _ => {}
    }
}

/// Whose clock is wrong.
fn tell_of_clocks(instance: &str, event: &Event) {
    match event {
        Event::ClockStepped { by } => tracing::warn!(
            instance,
            store_clock = stepped(*by),
            "the store's clock was stepped, or this machine stood still: ticks that a leap forwards passes over are decided by each job's \
             policy, and after a step back none comes until the store's time has caught up"
        ),
        Event::ClockAstray { by } => tracing::warn!(
            instance,
            wall_clock = ahead(*by),
            "this machine's wall clock differs from the store's: ticks go by the store's and none is moved, but times that the program              itself takes from this machine are off; mend this machine's clock (NTP), or the store's host's, where that one is wrong"
        ),
        Event::ClockRight { by } => tracing::info!(
            instance,
            wall_clock = ahead(*by),
            "this machine's wall clock agrees with the store's again"
        ),
        Event::ClockDisputed {
            ours,
            theirs,
            instances,
            of,
        } => tracing::error!(
            instance,
            own_wall_clock = ahead(*ours),
            their_wall_clocks = ahead(*theirs),
            disagreeing = instances,
            instances = of,
            "most of the fleet's clocks disagree with the store's in the same way, so no tick is claimed: mend the clock of the store's \
             host, and ticks go on by themselves; if the store's is the right one, mend the instances' clocks, or start them with \
             `.follow_store_clock(true)` or LEADER_FOLLOW_STORE_CLOCK=true"
        ),
        Event::ClockAgreed { ours } => tracing::info!(
            instance,
            own_wall_clock = ahead(*ours),
            "the fleet's clocks agree with the store's: ticks go on, and those in between are decided by each job's policy"
        ),
        _ => {}
    }
}

/// An offset for people: `1h 200ms ahead of the store's`.
fn ahead(by: SignedDuration) -> String {
    let word = if by.is_negative() { "behind" } else { "ahead of" };
    format!("{} {word} the store's", friendly(by))
}

fn stepped(by: SignedDuration) -> String {
    let word = if by.is_negative() { "back" } else { "forward" };
    format!("{} {word}", friendly(by))
}

/// A length of time for people, to the tenth of a second.
fn friendly(by: SignedDuration) -> String {
    let tenths = SignedDurationRound::new().smallest(Unit::Millisecond).increment(100);
    let length = SignedDuration::try_from(by.unsigned_abs()).unwrap_or(SignedDuration::MAX);
    format!("{:#}", length.round(tenths).unwrap_or(length))
}

/// What a program is told that was built so that a panic ends the whole process.
pub(crate) fn when_panics_abort(abort: bool) -> Option<&'static str> {
    abort.then_some(
        "this program is built with `panic = \"abort\"`: a job that panics ends the whole process, every other job with it, and its \
         leases end by themselves only after their TTL; build with `panic = \"unwind\"`, and a panic is that run's outcome and \
         nothing else's",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_told_for_people() {
        for (ms, told) in [
            (0, "0s ahead of the store's"),
            (7_200_000, "2h ahead of the store's"),
            (-7_200_000, "2h behind the store's"),
            (3_600_212, "1h 200ms ahead of the store's"),
            (-65_049, "1m 5s behind the store's"),
        ] {
            assert_eq!(ahead(SignedDuration::from_millis(ms)), told);
        }
        assert_eq!(stepped(SignedDuration::from_secs(-90)), "1m 30s back");
        assert!(friendly(SignedDuration::MIN).ends_with('s'));
    }

    #[test]
    fn a_program_whose_panics_abort_is_warned() {
        let warning = when_panics_abort(true).unwrap();
        for word in ["panic = \"abort\"", "panic = \"unwind\"", "TTL"] {
            assert!(warning.contains(word), "{warning}");
        }
        assert_eq!(when_panics_abort(false), None);
    }
}
