//! Why a schedule, or a part of one, was refused.

use super::duration::DurationError;
use super::every::PeriodError;
use super::gate::{CronError, Days};
use super::zone::ZoneError;

/// Why a schedule, or a part of one, was refused: the whole message for people, with a picture of what is wrong and the way out.
///
/// The errors inside hold no text, so that they can be made in a `const`; here is what each was told of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The cron expression was refused.
    #[error("{}", error.message(expr))]
    Cron {
        /// The expression.
        expr: String,
        /// The fault and its place.
        error: CronError,
    },
    /// It was said how two day fields combine, and the expression restricts at most one.
    #[error("{}", Days::without_effect(expr))]
    Days {
        /// The expression.
        expr: String,
    },
    /// A text is no duration.
    #[error("{}", error.message(text))]
    Duration {
        /// The text.
        text: String,
        /// The fault and its place.
        error: DurationError,
    },
    /// The name of the time zone was refused.
    #[error("{}", error.message(name))]
    Zone {
        /// The name.
        name: String,
        /// The fault.
        error: ZoneError,
    },
    /// A period was given a time zone.
    #[error(
        "`{period}` has no time zone, and was given `{zone}`: a period counts real time since 1970-01-01T00:00:00Z, whatever clocks do; \
         name times of the day with `cron`, or take the zone out"
    )]
    ZoneOfPeriod {
        /// The schedule.
        period: String,
        /// The zone.
        zone: String,
    },
    /// The period is out of bounds.
    #[error("{}", error.message(period))]
    Period {
        /// The period.
        period: String,
        /// Why.
        error: PeriodError,
    },
    /// The text is not what `Display` of a [`Schedule`](super::Schedule) writes.
    #[error(
        "`{text}` is no schedule: write `cron \"…\"`, then `days or` or `days and` where two day fields need it, then `timezone …` \
         without quotes, in this order; or `every …`"
    )]
    Form {
        /// The text.
        text: String,
    },
}
