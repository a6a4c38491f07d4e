//! The schedules that the store keeps of a job: the one in force, and those before it.

use jiff::Timestamp;

/// How many earlier schedules of a job are kept.
pub const KEPT_SCHEDULES: usize = 32;

/// The schedule of a job that is in force, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoredSchedule {
    /// The schedule as [`Schedule`](crate::Schedule) writes it. That of a newer version may be one that this version cannot read.
    pub text: String,
    /// Its ticks are those after this instant. `None` where the store's note cannot be read.
    pub since: Option<Timestamp>,
    /// The version of the service that wrote it; empty when that was not given.
    pub version: String,
    /// The version of the time zone database of who wrote it.
    pub time_zones: String,
    /// The instance that wrote it.
    pub by: String,
}

/// A schedule that was in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlierSchedule {
    /// The schedule.
    pub schedule: StoredSchedule,
    /// Its ticks were those up to this instant.
    pub until: Timestamp,
}

/// Who writes a schedule: what is kept beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "an internal message")]
pub struct Writer {
    /// The version of the service.
    pub version: String,
    /// That of the time zone database.
    pub time_zones: String,
}

impl Writer {
    /// One whose words fit into the lines of the store.
    #[must_use]
    pub fn new(version: &str, time_zones: &str) -> Self {
        let plain = |text: &str| text.replace(|c: char| c == '|' || c.is_control(), " ");
        Self {
            version: plain(version),
            time_zones: plain(time_zones),
        }
    }
}

impl StoredSchedule {
    /// One that is written now.
    #[must_use]
    pub(crate) fn written(text: &str, since: Timestamp, writer: &Writer, by: &str) -> Self {
        Self {
            text: text.to_owned(),
            since: Some(since),
            version: writer.version.clone(),
            time_zones: writer.time_zones.clone(),
            by: by.to_owned(),
        }
    }
}
