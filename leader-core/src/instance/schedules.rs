//! Schedules made at run time: making, ending and listing them, from any instance.

mod error;
mod find;
mod making;

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::oneshot;

pub use error::SchedulingError;
pub(super) use find::{located, named};

use super::Instance;
use super::control::plain;
use crate::job::handler::Handler;
use crate::names::{GroupName, JobName};
use crate::runtime::engine::{Errand, Input, Request};
use crate::runtime::shared::Shared;
use crate::schedule::Days;
use crate::store::Store;

/// A schedule that was made at run time, or that the store kept the same already.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scheduled {
    /// The group whose leader runs it.
    pub group: GroupName,
    /// Its name.
    pub job: JobName,
    /// Whether anything was changed by this.
    pub changed: bool,
    /// Whether there was none of this name before.
    pub new: bool,
    /// When it was last changed, by the store's clock.
    pub at: Timestamp,
    /// Its first tick after now.
    pub next: Option<Timestamp>,
}

/// A schedule made at run time that was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unscheduled {
    /// Its group.
    pub group: GroupName,
    /// Its name.
    pub job: JobName,
    /// When, by the store's clock: no tick after it is run.
    pub at: Timestamp,
}

/// A schedule made at run time, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MadeSchedule {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: GroupName,
    /// The handler that it runs; empty where this version cannot read the entry.
    pub handler: String,
    /// The schedule, as [`Schedule`](crate::Schedule) writes it; empty where this version cannot read the entry.
    pub schedule: String,
    /// What it carries, as JSON.
    pub payload: String,
    /// When it was last changed, by the store's clock.
    pub changed_at: Option<Timestamp>,
    /// Who changed it.
    pub by: String,
    /// The version of the program that did; empty when it was not given.
    pub version: String,
    /// Its next tick; `None` without one.
    pub next: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum When {
    Cron(String),
    Every(String),
}

/// A schedule to be made by awaiting; made by [`Instance::schedule`].
#[must_use = "nothing is kept before it is awaited"]
pub struct NewSchedule<H> {
    shared: Arc<Shared>,
    name: String,
    when: When,
    timezone: Option<String>,
    days: Days,
    group: Option<String>,
    payload: Option<Result<String, String>>,
    by: String,
    handler: PhantomData<fn() -> H>,
}

impl<H> std::fmt::Debug for NewSchedule<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSchedule")
            .field("name", &self.name)
            .field("when", &self.when)
            .finish_non_exhaustive()
    }
}

impl<H: Handler> NewSchedule<H> {
    /// The time zone on whose wall clock the cron expression is read, such as `"Europe/Berlin"`; UTC unless said.
    pub fn timezone(mut self, name: impl Into<String>) -> Self {
        self.timezone = Some(name.into());
        self
    }

    /// How two restricted day fields of the cron expression combine.
    pub fn days(mut self, days: Days) -> Self {
        self.days = days;
        self
    }

    /// The group whose leader runs it; the handler's, unless said. One that this fleet does not elect is refused.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// What it carries: the handler is given it as [`Payload`](crate::Payload) at each tick. At most 64 KiB of JSON.
    pub fn with(mut self, payload: &H::Payload) -> Self
    where
        H::Payload: Serialize,
    {
        self.payload = Some(serde_json::to_string(payload).map_err(|error| error.to_string()));
        self
    }

    /// Who makes it: the instance's id, unless said. Cut to 200 characters, on one line.
    pub fn by(mut self, who: impl AsRef<str>) -> Self {
        self.by = plain(who.as_ref()).replace('|', " ");
        self
    }
}

impl<H: Handler> IntoFuture for NewSchedule<H> {
    type Output = Result<Scheduled, SchedulingError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future does not undo what was asked: it may be kept, or may be kept still.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let shared = Arc::clone(&self.shared);
            let wish = making::Wish::of(self)?;
            send(&shared, move |store| async move { wish.make(&*store).await }).await
        })
    }
}

/// A schedule to be ended by awaiting; made by [`Instance::unschedule`].
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is awaited"]
pub struct Unscheduling {
    shared: Arc<Shared>,
    name: String,
    group: Option<String>,
    by: String,
}

impl Unscheduling {
    /// Its group, where several groups of this instance have a schedule of the name.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Who ends it: the instance's id, unless said. Cut to 200 characters, on one line.
    pub fn by(mut self, who: impl AsRef<str>) -> Self {
        self.by = plain(who.as_ref()).replace('|', " ");
        self
    }
}

impl IntoFuture for Unscheduling {
    type Output = Result<Unscheduled, SchedulingError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future does not undo what was asked.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let shared = Arc::clone(&self.shared);
            send(&shared, move |store| async move { self.end(&*store).await }).await
        })
    }
}

impl Instance {
    /// Makes a schedule at run time: a cron expression for a handler, kept in the store under a name, and run by the leader of its group from
    /// the next tick on, whatever becomes of this instance. Await it.
    ///
    /// It is a job like one of the program: its ticks have the handler's policies, its own history under its name, and can be paused,
    /// triggered and explained. The same again changes nothing. Under the name of another one it replaces that: with another payload from the
    /// next tick on; with another schedule what was due by the old one is decided first. Of two that make the same name at once the later
    /// counts, as a whole. A name is unique in its group, and is none of a job of the program, of whatever version. A group has 1,000 at most.
    ///
    /// ```standalone_crate
    /// use leader_core::{Embedded, Payload, leader_only};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Report {
    ///     tenant: u64,
    /// }
    ///
    /// #[leader_only(group = "reports", handler)]
    /// async fn send_report(Payload(report): Payload<Report>) {
    ///     println!("report of tenant {}", report.tenant);
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let instance = leader_core::bootstrap(Embedded::new()).await?;
    /// let report = Report { tenant: 7 };
    /// instance.schedule::<send_report>("report/acme", "0 9 * * *").timezone("Europe/Berlin").with(&report).await?;
    /// assert_eq!(instance.schedules("reports").await?[0].name, "report/acme");
    /// instance.unschedule("report/acme").await?;
    /// # instance.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Of the future: [`SchedulingError`].
    pub fn schedule<H: Handler>(&self, name: impl Into<String>, cron: impl Into<String>) -> NewSchedule<H> {
        self.new_schedule(name.into(), When::Cron(cron.into()))
    }

    /// The same with a period, such as `"30s"`: ticks at its multiples since the Unix epoch.
    ///
    /// # Errors
    /// Of the future: [`SchedulingError`].
    pub fn schedule_every<H: Handler>(&self, name: impl Into<String>, period: impl Into<String>) -> NewSchedule<H> {
        self.new_schedule(name.into(), When::Every(period.into()))
    }

    fn new_schedule<H>(&self, name: String, when: When) -> NewSchedule<H> {
        NewSchedule {
            shared: Arc::clone(&self.shared),
            name,
            when,
            timezone: None,
            days: Days::Unsaid,
            group: None,
            payload: None,
            by: self.id().to_string(),
            handler: PhantomData,
        }
    }

    /// Ends a schedule that was made at run time: no tick of it is run from now on. Its open runs go on to their end, and its history
    /// stays. What was due and not decided is not run, and is not owed should the name be scheduled again. Await it.
    ///
    /// # Errors
    /// Of the future: [`SchedulingError`].
    pub fn unschedule(&self, name: impl Into<String>) -> Unscheduling {
        Unscheduling {
            shared: Arc::clone(&self.shared),
            name: name.into(),
            group: None,
            by: self.id().to_string(),
        }
    }

    /// The schedules of a group that were made at run time, by name, as the store keeps them. Cancel safe.
    ///
    /// # Errors
    /// [`SchedulingError`], when the group is not this fleet's or the store does not answer.
    pub async fn schedules(&self, group: &str) -> Result<Vec<MadeSchedule>, SchedulingError> {
        let (shared, group) = (Arc::clone(&self.shared), group.to_owned());
        send(&self.shared, move |store| async move {
            find::all(&shared, &*store, &group).await
        })
        .await
    }
}

/// Has it done on the framework's thread.
async fn send<T, F, Fut>(shared: &Shared, work: F) -> Result<T, SchedulingError>
where
    T: Send + 'static,
    F: FnOnce(Arc<dyn Store>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<T, SchedulingError>> + Send + 'static,
{
    let (answer, done) = oneshot::channel();
    let errand = Errand(Box::new(move |store| {
        Box::pin(async move {
            let _ = answer.send(work(store).await);
        })
    }));
    shared.send(Input::Request(Request::Errand(errand)));
    done.await.map_err(|_| SchedulingError::Stopped)?
}
