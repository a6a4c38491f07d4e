//! What is told of schedules made at run time.

use crate::names::{GroupName, JobName};

/// Something that happened to a schedule made at run time, told by the leader of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduling {
    /// The group.
    pub group: GroupName,
    /// The name.
    pub job: String,
    /// What.
    pub news: SchedulingNews,
}

/// What happened to a schedule made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedulingNews {
    /// It was made or changed, while its group was led here.
    #[non_exhaustive]
    Made {
        /// What it runs.
        handler: JobName,
        /// When.
        schedule: String,
        /// Who made or changed it.
        by: String,
    },
    /// It has ended.
    Ended,
    /// This leader cannot run it: its ticks stay open for one that can. Told once for each change of it.
    #[non_exhaustive]
    NotRun {
        /// Why.
        reason: String,
    },
}
