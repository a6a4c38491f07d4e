//! What people ask for, as log lines.

use crate::event::{Event, Scheduling, SchedulingNews};

pub(super) fn tell(instance: &str, event: &Event) {
    match event {
        Event::Paused { group, pause } => tracing::info!(
            instance, %group, job = name(pause.job.as_ref()), gap = %pause.gap, until = pause.until.map(tracing::field::display),
            by = pause.by, reason = pause.reason, "paused"
        ),
        Event::Resumed { group, job, by, .. } if by.is_empty() => {
            tracing::info!(instance, %group, job = name(job.as_ref()), "a pause has ended by itself");
        }
        Event::Resumed { group, job, by, reason } => {
            tracing::info!(instance, %group, job = name(job.as_ref()), by, reason, "resumed");
        }
        Event::Requested { group, request } => tracing::info!(
            instance, %group, job = %request.job, request = request.id, origin = %request.origin, by = request.by, reason = request.reason,
            "runs are asked for"
        ),
        Event::Scheduling(scheduling) => tell_of_scheduling(instance, scheduling),
        _ => {}
    }
}

fn tell_of_scheduling(instance: &str, Scheduling { group, job, news }: &Scheduling) {
    match news {
        SchedulingNews::Made { handler, schedule, by } => {
            tracing::info!(instance, %group, job, %handler, schedule, by, "scheduled");
        }
        SchedulingNews::Ended => tracing::info!(instance, %group, job, "unscheduled"),
        SchedulingNews::NotRun { reason } => {
            tracing::warn!(instance, %group, job, reason, "a schedule made at run time is not run by this leader");
        }
    }
}

fn name(job: Option<&impl ToString>) -> String {
    job.map_or_else(|| "all of the group".to_owned(), ToString::to_string)
}
