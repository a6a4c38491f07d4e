//! The program that every instance of these tests runs: its jobs do what the test says, and what they did is kept.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use leader_core::{
    Bootstrap, Clock, Embedded, Event, Events, Instance, Lead, Stamped, State, Tick, Timing, leader_only, scheduled,
};
use leader_tests::{RedisServer, eventually};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The bound of every wait for something that happens soon, on a machine that does other things too.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Makes a test for each store out of each case.
macro_rules! on_each_store {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let _among = $crate::stage::among_others().await;
                    super::$case($crate::stage::Ground::embedded()).await;
                }
            )*
        }
        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let _among = $crate::stage::among_others().await;
                    super::$case($crate::stage::Ground::redis().await).await;
                }
            )*
        }
    };
}

/// What is said of the process's only instance holds only while no other test has one.
static PROCESS: RwLock<()> = RwLock::const_new(());

pub(crate) async fn among_others() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().await
}

pub(crate) async fn alone() -> RwLockWriteGuard<'static, ()> {
    PROCESS.write().await
}

/// Where a fleet meets.
pub(crate) enum Ground {
    Embedded(Embedded),
    Redis(Box<RedisServer>),
}

impl Ground {
    pub(crate) fn embedded() -> Self {
        Self::Embedded(Embedded::new())
    }

    pub(crate) async fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start().await))
    }

    /// An instance of this fleet that takes part in the elections of `groups` only.
    pub(crate) fn instance<const N: usize>(&self, id: &str, stage: &Stage, groups: [&str; N]) -> Bootstrap {
        let bootstrap = match self {
            Self::Embedded(store) => leader_core::bootstrap(store.clone()),
            Self::Redis(server) => leader_core::bootstrap(server.url()),
        };
        Self::of_the_fleet(bootstrap, id, stage, groups)
    }

    /// The same on another way to the server.
    pub(crate) fn instance_at<const N: usize>(url: &str, id: &str, stage: &Stage, groups: [&str; N]) -> Bootstrap {
        Self::of_the_fleet(leader_core::bootstrap(url), id, stage, groups)
    }

    fn of_the_fleet<const N: usize>(bootstrap: Bootstrap, id: &str, stage: &Stage, groups: [&str; N]) -> Bootstrap {
        bootstrap
            .state(stage.clone())
            .instance_id(id)
            .service("fleet")
            .single_process()
            .first_start(true)
            .timing(Timing::from_ttl(ms(4_000)))
            // Bodies that never end are dropped then, at the end of most tests.
            .drain(ms(2_000))
            .groups(groups)
            .campaign_only(groups)
    }
}

type Body = Pin<Box<dyn Future<Output = Result<(), anyhow::Error>> + Send>>;
type Part = Arc<dyn Fn(Tick) -> Body + Send + Sync>;
type Standing = Arc<dyn Fn(Lead) -> Body + Send + Sync>;

/// One start of a body.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) job: String,
    pub(crate) scheduled_at: Timestamp,
    pub(crate) fence: u64,
    pub(crate) on: String,
    pub(crate) at: Instant,
    pub(crate) late: Duration,
    /// What the schedule carried.
    pub(crate) carried: u64,
}

#[derive(Default)]
struct Play {
    parts: Mutex<BTreeMap<&'static str, Part>>,
    standing: Mutex<Option<Standing>>,
    played: Mutex<Vec<Played>>,
}

/// What the jobs are to do. Clones share it.
#[derive(Clone)]
pub(crate) struct Stage {
    play: Arc<Play>,
    on: &'static str,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            play: Arc::default(),
            on: "",
        }
    }

    /// The same stage, for one instance: what is played there is marked with its name.
    pub(crate) fn of(&self, on: &'static str) -> Self {
        Self { on, ..self.clone() }
    }

    /// What a job's body does; nothing, unless it is said.
    pub(crate) fn part<F, Fut>(&self, job: &'static str, body: F)
    where
        F: Fn(Tick) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), anyhow::Error>> + Send + 'static,
    {
        let part: Part = Arc::new(move |tick| Box::pin(body(tick)));
        self.play.parts.lock().unwrap().insert(job, part);
    }

    pub(crate) fn standing<F, Fut>(&self, body: F)
    where
        F: Fn(Lead) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), anyhow::Error>> + Send + 'static,
    {
        *self.play.standing.lock().unwrap() = Some(Arc::new(move |lead| Box::pin(body(lead))));
    }

    pub(crate) fn played(&self, job: &str) -> Vec<Played> {
        let played = self.play.played.lock().unwrap();
        played.iter().filter(|played| played.job == job).cloned().collect()
    }

    pub(crate) async fn has_played(&self, job: &str, times: usize) {
        eventually(SOON, &format!("{job} has run {times} times"), || async {
            self.played(job).len() >= times
        })
        .await;
    }

    async fn perform(self, tick: Tick) -> Result<(), anyhow::Error> {
        self.perform_with(tick, 0).await
    }

    async fn perform_with(self, tick: Tick, carried: u64) -> Result<(), anyhow::Error> {
        let late = tick.started_at().duration_since(tick.scheduled_at());
        self.play.played.lock().unwrap().push(Played {
            job: tick.job().to_string(),
            scheduled_at: tick.scheduled_at(),
            fence: tick.fence(),
            on: self.on.to_owned(),
            at: Instant::now(),
            late: late.try_into().unwrap_or_default(),
            carried,
        });
        let part = self.play.parts.lock().unwrap().get(tick.job().as_str()).cloned();
        match part {
            Some(part) => part(tick).await,
            None => Ok(()),
        }
    }
}

/// The jobs. Each group has its own, so that a test takes part in what it needs.
pub(crate) mod jobs {
    use super::{Lead, Stage, State, Tick, leader_only, scheduled};
    use leader_core::Payload;

    #[derive(Debug, serde::Serialize, serde::Deserialize)]
    pub(crate) struct Note {
        pub(crate) number: u64,
        #[serde(default)]
        pub(crate) text: String,
    }

    #[leader_only(group = "steady", every = "1s")]
    pub(crate) async fn steady(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "waits", every = "1s", overlap = "wait", on_loss = "finish")]
    pub(crate) async fn waits(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "replaces", every = "1s", overlap = "replace", on_loss = "finish")]
    pub(crate) async fn replaces(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "beside", every = "1s", overlap = "allow", on_loss = "finish")]
    pub(crate) async fn beside(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "off", every = "10m", missed = "skip")]
    pub(crate) async fn skipping(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "off", every = "10m")]
    pub(crate) async fn newest(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "off", every = "10m", missed = "all", max_missed = 20)]
    pub(crate) async fn everything(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "off", every = "10m", missed = "all", max_age = "95m")]
    pub(crate) async fn young(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "off", every = "1s", missed = "skip")]
    pub(crate) async fn rested(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "pair", every = "1s")]
    pub(crate) async fn first(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "pair", every = "1s")]
    pub(crate) async fn second(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "bounded", every = "1s", timeout = "200ms")]
    pub(crate) async fn bounded(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "finishing", every = "1s", on_loss = "finish")]
    pub(crate) async fn finishing(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "punctual", every = "5s", grace = "500ms", missed = "skip")]
    pub(crate) async fn punctual(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// Due so seldom that a run of it can be tried again, whatever its tests set.
    #[leader_only(group = "rare", every = "10s")]
    pub(crate) async fn rare(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "edited", cron = "0 9 * * *", grace = "1m")]
    pub(crate) async fn edited(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// Never due while a test runs.
    #[leader_only(group = "yearly", cron = "0 0 29 2 *")]
    pub(crate) async fn yearly(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "made", handler, on_loss = "finish")]
    pub(crate) async fn noted(
        tick: Tick,
        Payload(note): Payload<Note>,
        State(stage): State<Stage>,
    ) -> anyhow::Result<()> {
        stage.perform_with(tick, note.number).await
    }

    #[leader_only(group = "made", handler, missed = "all", overlap = "wait")]
    pub(crate) async fn unladen(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// On whoever is first.
    #[scheduled(on = "any", group = "any", every = "1s")]
    pub(crate) async fn anywhere(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[scheduled(on = "any", group = "any-waits", every = "1s", overlap = "wait")]
    pub(crate) async fn anywhere_waits(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[scheduled(on = "any", group = "any-replaces", every = "1s", overlap = "replace")]
    pub(crate) async fn anywhere_replaces(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// Due so seldom that a run of it can be taken again.
    #[scheduled(on = "any", group = "any-rare", every = "10s", backoff = "100ms", retries = 2)]
    pub(crate) async fn anywhere_rare(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// One job in two versions of a program: its ticks need a leader in one, and none in the other.
    #[leader_only(group = "mixed", every = "1s", on_loss = "finish")]
    pub(crate) async fn mixed_led(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[scheduled(on = "any", group = "mixed", every = "1s")]
    pub(crate) async fn mixed_any(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    /// One that versions of a program have in two kinds.
    #[scheduled(on = "any", group = "moving", every = "1s")]
    pub(crate) async fn moving_any(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "moving", every = "1s")]
    pub(crate) async fn moving_led(tick: Tick, State(stage): State<Stage>) -> anyhow::Result<()> {
        stage.perform(tick).await
    }

    #[leader_only(group = "standing", while_leading)]
    pub(crate) async fn standing(lead: Lead, State(stage): State<Stage>) -> anyhow::Result<()> {
        let body = stage.play.standing.lock().unwrap().clone();
        if let Some(body) = body {
            return body(lead).await;
        }
        lead.cancelled().await;
        Ok(())
    }
}

pub(crate) async fn leads(instance: &Instance, group: &str) {
    eventually(SOON, &format!("{} leads {group}", instance.id()), || async {
        instance.is_leader(group)
    })
    .await;
}

/// Of two, the one that leads and the one that does not.
pub(crate) async fn leader_first(a: Instance, b: Instance, group: &str) -> (Instance, Instance) {
    eventually(SOON, &format!("one of them leads {group}"), || async {
        a.is_leader(group) || b.is_leader(group)
    })
    .await;
    if a.is_leader(group) { (a, b) } else { (b, a) }
}

/// Keeps the events of an instance.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<Stamped>>>);

impl Diary {
    pub(crate) fn of(instance: &Instance) -> Self {
        Self::from(instance.events())
    }

    /// The same from before the start: what happens while that returns is in it.
    pub(crate) fn of_the_start(bootstrap: &Bootstrap) -> Self {
        Self::from(bootstrap.events())
    }

    fn from(mut events: Events) -> Self {
        let diary = Self::default();
        let kept = diary.clone();
        tokio::spawn(async move {
            while let Ok(event) = events.recv().await {
                kept.0.lock().unwrap().push(event);
            }
        });
        diary
    }

    pub(crate) fn all(&self) -> Vec<Stamped> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn pick<T>(&self, pick: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        self.all().iter().filter_map(|stamped| pick(&stamped.event)).collect()
    }

    /// Waits for so many events, and compares. What an instance does may be seen before the event that tells of it is read here.
    pub(crate) async fn shows<T, E>(&self, what: &str, pick: impl Fn(&Event) -> Option<T>, expected: E)
    where
        T: std::fmt::Debug + PartialEq,
        E: AsRef<[T]>,
    {
        let expected = expected.as_ref();
        eventually(SOON, what, || async { self.pick(&pick).len() >= expected.len() }).await;
        assert_eq!(self.pick(&pick), expected, "{what}");
    }

    /// Waits for an event.
    pub(crate) async fn tells<T>(&self, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        eventually(SOON, what, || async { !self.pick(&pick).is_empty() }).await;
        self.pick(&pick).remove(0)
    }
}

/// The clock that trust is counted by.
pub(crate) fn now() -> leader_core::Moment {
    Clock::system().now()
}

/// Says how long something took.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Fails when it took longer.
    pub(crate) fn within(&self, bound: Duration, what: &str) -> Duration {
        let took = self.0.elapsed();
        assert!(took <= bound, "{what} took {took:?}, more than {bound:?}");
        took
    }
}
