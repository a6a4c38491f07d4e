//! Runs of every overlap policy while chance takes leaderships away, and what the ledger says of it afterwards.
//!
//! `LEADER_CHAOS=full` takes a minute for each store, and `LEADER_CHAOS_SEED` repeats a run's chance.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod tries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leader_core::{Bootstrap, Embedded, Instance, JobLedger, Outcome, Ran, State, Tick, Timing, leader_only, testing};
use leader_tests::dice::{Dice, seed};
use leader_tests::{Proxy, RedisServer, Request, eventually};

/// The bound of every wait for something that happens soon, on a machine that does other things too.
const SOON: Duration = Duration::from_secs(20);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Where the fleet meets.
enum Ground {
    Embedded(Embedded),
    Redis(Box<RedisServer>),
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tick_has_one_outcome_in_one_process() {
    every_tick_has_one_outcome(Ground::Embedded(Embedded::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tick_has_one_outcome_on_redis() {
    every_tick_has_one_outcome(Ground::Redis(Box::new(RedisServer::start().await))).await;
}

const GROUP: &str = "dice";
const TTL: Duration = ms(2_000);
const JOBS: [&str; 14] = [
    "dice_skips",
    "dice_skips_on",
    "dice_waits",
    "dice_waits_on",
    "dice_waits_long",
    "dice_waits_long_on",
    "dice_replaces",
    "dice_replaces_on",
    "dice_beside",
    "dice_beside_on",
    "dice_tries_skips",
    "dice_tries_skips_on",
    "dice_tries_replaces",
    "dice_tries_beside",
];

/// One start of a body.
#[derive(Clone, Debug)]
struct Body {
    job: String,
    tick: Timestamp,
    fence: u64,
    attempt: u32,
    life: usize,
    began: Instant,
    /// When it was last polled: one that has lost its trust may be asleep for longer, and wakes no more.
    ended: Instant,
    result: Option<Ran>,
}

/// What all instances write to.
struct Floor {
    bodies: Mutex<Vec<Body>>,
    dice: Mutex<Dice>,
    /// Bodies end as soon as they begin.
    calm: AtomicBool,
}

/// The floor as one start of an instance sees it.
#[derive(Clone)]
struct Hall {
    floor: Arc<Floor>,
    life: usize,
}

impl Hall {
    async fn perform(self, tick: Tick) -> anyhow::Result<()> {
        let long = tick.job().as_str().contains("long");
        // Those that are tried again fail more often.
        let one_in = if tick.job().as_str().contains("tries") { 2 } else { 7 };
        let (takes, fails) = {
            let mut dice = self.floor.dice.lock().unwrap();
            let takes = if long {
                dice.span(ms(1_500), ms(4_000))
            } else {
                dice.span(ms(0), ms(2_500))
            };
            (takes, dice.below(one_in) == 0)
        };
        let began = Instant::now();
        let at = {
            let mut bodies = self.floor.bodies.lock().unwrap();
            bodies.push(Body {
                job: tick.job().to_string(),
                tick: tick.scheduled_at(),
                fence: tick.fence(),
                attempt: tick.attempt(),
                life: self.life,
                began,
                ended: began,
                result: None,
            });
            bodies.len() - 1
        };
        while began.elapsed() < takes && !self.floor.calm.load(Ordering::SeqCst) {
            tokio::time::sleep(ms(10)).await;
            self.floor.bodies.lock().unwrap()[at].ended = Instant::now();
        }
        let fails = fails && !self.floor.calm.load(Ordering::SeqCst);
        let result = if fails { Ran::Error } else { Ran::Ok };
        self.floor.bodies.lock().unwrap()[at].result = Some(result);
        anyhow::ensure!(!fails, "chance");
        Ok(())
    }
}

/// The jobs, each of which is a policy. Those that end in `_on` run on when their leadership is lost.
mod jobs {
    use super::{Hall, State, Tick, leader_only};

    macro_rules! jobs {
        ($($name:ident, $every:tt, $overlap:tt, $on_loss:tt $(, $option:ident = $value:tt)*;)*) => {
            $(
                #[leader_only(group = "dice", every = $every, overlap = $overlap, on_loss = $on_loss $(, $option = $value)*)]
                pub(crate) async fn $name(tick: Tick, State(hall): State<Hall>) -> anyhow::Result<()> {
                    hall.perform(tick).await
                }
            )*
        };
    }

    jobs! {
        dice_skips, "1s", "skip", "cancel";
        dice_skips_on, "1s", "skip", "finish";
        dice_waits, "1s", "wait", "cancel";
        dice_waits_on, "1s", "wait", "finish";
        dice_waits_long, "4s", "wait", "cancel";
        dice_waits_long_on, "4s", "wait", "finish";
        dice_replaces, "1s", "replace", "cancel";
        dice_replaces_on, "1s", "replace", "finish";
        dice_beside, "1s", "allow", "cancel";
        dice_beside_on, "1s", "allow", "finish";
        dice_tries_skips, "4s", "skip", "cancel", retries = 2, backoff = "200ms..600ms";
        dice_tries_skips_on, "4s", "skip", "finish", retries = 2, backoff = "200ms..600ms";
        dice_tries_replaces, "3s", "replace", "cancel", retries = 2, backoff = "200ms..600ms";
        dice_tries_beside, "2s", "allow", "cancel", retries = 2, backoff = "200ms..600ms";
    }
}

/// One start of an instance, and when it could not do as it should.
struct Life {
    instance: Instance,
    /// Its way to the server.
    proxy: Option<Proxy>,
    frozen: Vec<(Instant, Instant)>,
    gone: Option<Instant>,
}

impl Life {
    /// Whether it stood still, or was gone, at some time between the two.
    fn was_harmed(&self, from: Instant, until: Instant) -> bool {
        // What a freeze has held up comes a little after it.
        let frozen = |(began, ended): &(Instant, Instant)| *began <= until && *ended + TTL >= from;
        self.is_gone(until) || self.frozen.iter().any(frozen)
    }

    fn is_gone(&self, by: Instant) -> bool {
        self.gone.is_some_and(|gone| gone <= by)
    }
}

struct Fleet<'a> {
    ground: &'a Ground,
    floor: Arc<Floor>,
    lives: Vec<Life>,
    /// The life of each place.
    places: Vec<usize>,
    told: Vec<String>,
    began: Instant,
}

impl Fleet<'_> {
    fn bootstrap(&self, id: &str, life: usize, proxy: Option<&Proxy>) -> Bootstrap {
        let bootstrap = match (self.ground, proxy) {
            (Ground::Embedded(store), _) => leader_core::bootstrap(store.clone()),
            (Ground::Redis(server), None) => leader_core::bootstrap(server.url()),
            (Ground::Redis(_), Some(proxy)) => leader_core::bootstrap(proxy.url()),
        };
        let floor = Arc::clone(&self.floor);
        bootstrap
            .state(Hall { floor, life })
            .instance_id(id)
            .service("fleet")
            .single_process()
            .first_start(true)
            .timing(Timing::from_ttl(TTL))
            .groups([GROUP])
    }

    async fn begin(&mut self, place: usize) {
        let life = self.lives.len();
        let proxy = match self.ground {
            Ground::Embedded(_) => None,
            Ground::Redis(server) => Some(Proxy::start(server.port()).await),
        };
        let bootstrap = self.bootstrap(&format!("{place}-{life}"), life, proxy.as_ref());
        let instance = bootstrap.await.unwrap();
        self.lives.push(Life {
            instance,
            proxy,
            frozen: Vec::new(),
            gone: None,
        });
        if place == self.places.len() {
            self.places.push(life);
        } else {
            self.places[place] = life;
        }
    }

    /// Does something to one of them.
    async fn disturb(&mut self, dice: &mut Dice) {
        let leading = |life: &usize| self.lives[*life].instance.is_leader(GROUP);
        let leader = self.places.iter().position(leading);
        // Mostly to the one that matters.
        let any = usize::try_from(dice.below(self.places.len() as u64)).unwrap();
        let place = leader.filter(|_| dice.below(3) > 0).unwrap_or(any);
        let life = self.places[place];
        let what = match dice.below(28) {
            0..8 => {
                let instance = self.lives[life].instance.clone();
                let _ = tokio::time::timeout(ms(3_000), instance.step_down(GROUP)).await;
                "steps down".to_owned()
            }
            8..11 => {
                testing::kill(&self.lives[life].instance);
                self.lives[life].gone = Some(Instant::now());
                self.begin(place).await;
                "is killed".to_owned()
            }
            11..15 => {
                let span = dice.span(ms(100), ms(2_500));
                testing::freeze(&self.lives[life].instance, span);
                let now = Instant::now();
                self.lives[life].frozen.push((now, now + span));
                format!("stands still for {span:?}")
            }
            15..17 => {
                testing::panic(&self.lives[life].instance);
                // Started again within a moment.
                let now = Instant::now();
                self.lives[life].frozen.push((now, now + TTL));
                "panics".to_owned()
            }
            17..19 => {
                let instance = self.lives[life].instance.clone();
                let _ = tokio::time::timeout(ms(15_000), instance.shutdown()).await;
                self.lives[life].gone = Some(Instant::now());
                self.begin(place).await;
                "is shut down".to_owned()
            }
            _ => self.lose_answers(life, dice),
        };
        let at = self.began.elapsed();
        self.told.push(format!("{at:?}: {place}-{life} {what}"));
    }
}

impl Fleet<'_> {
    /// The server does what it is asked, and the answer is lost; or the link is.
    fn lose_answers(&mut self, life: usize, dice: &mut Dice) -> String {
        let Life { proxy, frozen, .. } = &mut self.lives[life];
        let Some(proxy) = proxy else {
            return "goes on".to_owned();
        };
        let requests = [
            Request::Claim,
            Request::Claim,
            Request::Settlement,
            Request::TakeOver,
            Request::Renewal,
        ];
        let request = requests[usize::try_from(dice.below(5)).unwrap()];
        let count = 1 + dice.below(3);
        // Its bodies give no sign of life until it is connected again.
        let now = Instant::now();
        frozen.push((now, now + TTL));
        match dice.below(5) {
            0 => {
                proxy.cut();
                proxy.heal();
                "loses its links".to_owned()
            }
            1 | 2 => {
                proxy.drop_replies(request.marker(), count);
                format!("waits for {count} answers in vain: {request:?}")
            }
            _ => {
                proxy.reset_after_request(request.marker(), count);
                format!("loses {count} links and answers: {request:?}")
            }
        }
    }
}

/// Looks at the ledger all the time.
struct Watch {
    observer: Instance,
    /// Since when the job's waiting tick has had nothing to wait for.
    free: BTreeMap<&'static str, Option<Instant>>,
}

impl Watch {
    /// The longest that a tick waits for nothing, by now.
    async fn look(&mut self) -> Duration {
        let mut longest = Duration::ZERO;
        for job in JOBS {
            let Ok(ledger) = self.observer.ledger(job).await else {
                continue;
            };
            adds_up(&self.observer, job, &ledger);
            let stuck = ledger.waiting.is_some() && ledger.open.is_empty();
            let since = self.free.entry(job).or_default();
            *since = stuck.then(|| since.unwrap_or_else(Instant::now));
            longest = longest.max(since.map_or(Duration::ZERO, |since| since.elapsed()));
        }
        longest
    }
}

fn adds_up(observer: &Instance, job: &str, ledger: &JobLedger) {
    if let (Some(since), Some(cursor)) = (ledger.since, ledger.cursor) {
        let due = observer.count_ticks(job, since, cursor).unwrap();
        assert_eq!(ledger.decided() + ledger.pending(), due, "{job}: {ledger:?}");
    }
}

async fn every_tick_has_one_outcome(ground: Ground) {
    let seed = seed();
    println!("LEADER_CHAOS_SEED={seed}");
    let full = std::env::var("LEADER_CHAOS").is_ok_and(|dose| dose == "full");
    let mut dice = Dice::new(seed);
    let floor = Arc::new(Floor {
        bodies: Mutex::default(),
        dice: Mutex::new(Dice::new(seed.wrapping_add(1))),
        calm: AtomicBool::new(false),
    });
    let mut fleet = Fleet {
        ground: &ground,
        floor: Arc::clone(&floor),
        lives: Vec::new(),
        places: Vec::new(),
        told: Vec::new(),
        began: Instant::now(),
    };
    let observer = fleet
        .bootstrap("observer", usize::MAX, None)
        .campaign(false)
        .await
        .unwrap();
    let free = BTreeMap::new();
    let mut watch = Watch { observer, free };
    for place in 0..2 + usize::try_from(dice.below(2)).unwrap() {
        fleet.begin(place).await;
    }
    let lasts = if full { ms(60_000) } else { ms(15_000) };
    while fleet.began.elapsed() < lasts {
        let until = Instant::now() + dice.span(ms(100), ms(1_900));
        while Instant::now() < until {
            watch.look().await;
            tokio::time::sleep(ms(50)).await;
        }
        fleet.disturb(&mut dice).await;
    }
    for life in &fleet.lives {
        life.proxy.iter().for_each(Proxy::heal);
    }
    // Nothing happens any more, and bodies are as long as before.
    let quiet = Instant::now();
    while quiet.elapsed() < 2 * TTL + ms(2_500) {
        watch.look().await;
        tokio::time::sleep(ms(50)).await;
    }
    let bound = Timing::from_ttl(TTL).renew() + ms(1_000);
    watch.free.clear();
    while quiet.elapsed() < 2 * TTL + ms(7_000) {
        let longest = watch.look().await;
        assert!(longest <= bound, "a tick waits for nothing: {:?}", watch.free);
        tokio::time::sleep(ms(50)).await;
    }
    floor.calm.store(true, Ordering::SeqCst);
    let observer = watch.observer;
    eventually(SOON, "everything has ended", || async {
        for job in JOBS {
            let ledger = observer.ledger(job).await.unwrap();
            if ledger.pending() > 0 {
                return false;
            }
        }
        true
    })
    .await;
    for life in &fleet.lives {
        if life.gone.is_none() {
            life.instance.shutdown().await;
        }
    }
    let mut bodies = floor.bodies.lock().unwrap().clone();
    bodies.sort_by_key(|body| body.fence);
    let judged: Vec<String> = {
        let mut judged = Vec::new();
        for job in JOBS {
            let ledger = observer.ledger(job).await.unwrap();
            adds_up(&observer, job, &ledger);
            let of_job: Vec<_> = bodies.iter().filter(|body| body.job == job).cloned().collect();
            println!("{job}: {} bodies, {:?}", of_job.len(), ledger.counts);
            judged.extend(judge(&observer, job, &ledger, &of_job, &fleet.lives));
        }
        judged
    };
    assert!(judged.is_empty(), "{judged:#?}\n{:#?}", fleet.told);
    observer.shutdown().await;
}

/// What is wrong with a job.
fn judge(observer: &Instance, job: &str, ledger: &JobLedger, bodies: &[Body], lives: &[Life]) -> Vec<String> {
    let mut wrong = Vec::new();
    let second = SignedDuration::from_secs(1);
    let (since, cursor) = (ledger.since.unwrap(), ledger.cursor.unwrap());
    let is_tick = |at: Timestamp| observer.count_ticks(job, at - second, at).is_ok_and(|count| count == 1);
    let from = Timestamp::from_second(since.as_second()).unwrap();
    let seconds = |from: Timestamp, until: Timestamp| {
        std::iter::successors(Some(from), move |at| Some(*at + second)).take_while(move |at| *at <= until)
    };
    // Each tick is in one record.
    let mut times: BTreeMap<Timestamp, Vec<Outcome>> = BTreeMap::new();
    for record in &ledger.records {
        let ticks: Vec<_> = seconds(record.first, record.last).filter(|at| is_tick(*at)).collect();
        if ticks.len() as u64 != record.count {
            wrong.push(format!("{job}: a record with another count: {record:?}"));
        }
        for tick in ticks {
            times.entry(tick).or_default().push(record.outcome);
        }
    }
    for tick in seconds(from, cursor).filter(|at| *at > since && is_tick(*at)) {
        match times.remove(&tick).unwrap_or_default().as_slice() {
            [_] => {}
            others => wrong.push(format!("{job}: {tick} has the outcomes {others:?}")),
        }
    }
    if !times.is_empty() {
        wrong.push(format!("{job}: outcomes of no tick: {times:?}"));
    }
    if job.contains("tries") {
        wrong.extend(tries::judge(job, ledger, bodies));
        wrong.extend(two_at_once(job, bodies, lives));
        return wrong;
    }
    // Each body has one record, and no tick has two bodies.
    let mut ticks = BTreeSet::new();
    for body in bodies {
        if !ticks.insert(body.tick) {
            wrong.push(format!("{job}: a tick ran twice: {body:?}"));
        }
        let records: Vec<_> = ledger
            .records
            .iter()
            .filter(|record| record.fence == body.fence)
            .collect();
        let [record] = records.as_slice() else {
            wrong.push(format!("{job}: the records {records:?} of {body:?}"));
            continue;
        };
        let fits = match record.outcome {
            Outcome::Ran(Ran::NotStarted) => false,
            Outcome::Ran(told @ (Ran::Ok | Ran::Error)) => body.result == Some(told),
            Outcome::Ran(_) => true,
            _ => false,
        };
        if !fits || record.first != body.tick {
            wrong.push(format!("{job}: the record {record:?} of {body:?}"));
        }
    }
    for pair in bodies.windows(2) {
        if pair[0].tick >= pair[1].tick || pair[0].fence >= pair[1].fence {
            wrong.push(format!("{job}: fences and ticks do not rise together: {pair:?}"));
        }
    }
    wrong.extend(two_at_once(job, bodies, lives));
    wrong
}

/// Bodies that ran beside each other, and should not have.
fn two_at_once(job: &str, bodies: &[Body], lives: &[Life]) -> Vec<String> {
    let mut wrong = Vec::new();
    if job.contains("skips") || job.contains("waits") {
        let runs_on = job.ends_with("_on");
        for (at, earlier) in bodies.iter().enumerate() {
            for later in bodies[at + 1..].iter().filter(|later| later.began < earlier.ended) {
                let life = &lives[earlier.life];
                let excused = life.is_gone(later.began) || (runs_on && life.was_harmed(earlier.began, later.began));
                if !excused {
                    wrong.push(format!("{job}: two at once: {earlier:?} and {later:?}"));
                }
            }
        }
    }
    wrong
}
