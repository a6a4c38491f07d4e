//! Handlers: functions that run for the schedules that are made for them at run time, and what these carry.

use std::any::type_name;

use serde::de::DeserializeOwned;

use super::extract::{Extract, Given, Needs};
use super::output::JobError;
use super::record::Job;

/// What a schedule made at run time carries to its handler.
///
/// It is kept as JSON in the store. A payload that a later version of the program cannot read is that run's error, and not the end of the
/// schedule.
///
/// ```
/// use leader_core::{Payload, leader_only};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Report {
///     tenant: u64,
/// }
///
/// #[leader_only(group = "reports", handler)]
/// async fn send_report(Payload(report): Payload<Report>) {
///     let _: u64 = report.tenant;
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "handlers take it apart in their arguments: `Payload(report): Payload<Report>`"
)]
pub struct Payload<T>(pub T);

/// A function that schedules can be made for at run time: one annotated with `#[leader_only(handler)]`.
#[diagnostic::on_unimplemented(
    message = "no schedules can be made for `{Self}`",
    label = "not a handler",
    note = "a handler is annotated with `#[leader_only(handler)]`; a job with `cron` or `every` has its own schedule"
)]
pub trait Handler: Job {
    /// What its schedules carry; `()` where it takes no [`Payload`].
    type Payload: DeserializeOwned;
}

/// An argument of a handler: whatever a job may have, and the payload.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a handler",
    label = "not something that a handler can be given",
    note = "a handler's arguments are `Tick`, `Lead`, `State<T>` (a value given to `bootstrap(..).state(value)`), `Option<State<T>>` and \
            one `Payload<T>`, written so"
)]
pub trait ExtractHandling<H>: Sized {
    #[doc(hidden)]
    fn extract(given: &Given<'_>) -> Result<Self, JobError>;
    #[doc(hidden)]
    fn need(_needs: &mut Needs) {}
}

#[diagnostic::do_not_recommend]
impl<H, E: Extract> ExtractHandling<H> for E {
    fn extract(given: &Given<'_>) -> Result<Self, JobError> {
        Ok(<E as Extract>::extract(given))
    }

    fn need(needs: &mut Needs) {
        <E as Extract>::need(needs);
    }
}

impl<T: DeserializeOwned, H: Handler<Payload = T>> ExtractHandling<H> for Payload<T> {
    fn extract(given: &Given<'_>) -> Result<Self, JobError> {
        read(given.payload).map(Self)
    }
}

/// A payload as a handler takes it; a schedule that carries none has `null`.
pub(crate) fn read<T: DeserializeOwned>(json: Option<&str>) -> Result<T, JobError> {
    serde_json::from_str(json.unwrap_or(NOTHING)).map_err(|error| {
        let text = format!("the payload of the schedule is no `{}`: {error}", type_name::<T>());
        JobError::new(text)
    })
}

/// The payload of a schedule that carries none.
pub(crate) const NOTHING: &str = "null";
