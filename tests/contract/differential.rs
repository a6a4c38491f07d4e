//! Random operations on both stores side by side: what one answers the other answers too, errors included.
//!
//! Both live by one clock, which stands until it is moved. Numbers and instants that a store makes up itself are compared by their order of
//! appearance, and at the end of a sequence the leases to the last number. Each sequence follows from its seed alone:
//! `LEADER_TEST_SEQUENCES` asks for more of them, and `LEADER_TEST_SEED` names the first.

mod made;
mod tally;
mod trouble;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lane::Lane;
use jiff::Timestamp;
use leader_core::__seam::{
    Absence, AbsenceKind, Act, ActRequest, Acted, Ask, AskReply, Asked, Beats, Campaign, Claim, ClaimBatch, ClaimReply,
    Claimed, Cover, Deed, EmbeddedServer, End, Enrolled, Entry, Found, Further, Gap, JobLedger, Meets, Overlap, Passed,
    PassedAs, Pause, Pausing, Release, Renewal, Renewed, Replaced, SettleBatch, Settled, Snapshot, Store,
    StoredSchedule, TakeOver, TakenOver, Verdict, Want, Writer, in_namespace, keeping,
};
use leader_core::testing::{__embedded_on, __server_on};
use leader_core::{
    GroupName, Holder, Keep, MissedReason, Origin, Outcome, Ran, ServiceName, StoreError, StoreErrorKind,
};
use tally::Tally;

use crate::bench::{Bench, LONG, after, group, holder, job, process};

const SEQUENCES: u64 = 800;
/// A long sequence; most are a tenth of it and less.
const LENGTH: usize = 160;
/// The last one is mostly made at run time.
const JOBS: [&str; 4] = ["one", "two", "was", MADE];
const MADE: &str = "three";
/// What the stores compare, and need not understand.
const SCHEDULES: [&str; 3] = [
    "every 1s",
    "cron \"0 9 * * *\" timezone Europe/Berlin",
    "of a | newer version",
];
const VERSIONS: [&str; 3] = ["", "1.2", "2.0|x\n"];

/// After this span a lease, a line or a silence of 1 ms is over.
const OVER: Duration = Duration::from_millis(4);
/// A lease that ends within a sequence, when time passes.
const MID: Duration = Duration::from_secs(3);
const INSTANT: Duration = Duration::from_millis(1);

/// So little that a sequence trims.
pub(crate) fn little() -> Keep {
    Keep::default().runs(3).others(4)
}

#[test]
fn both_stores_answer_alike() {
    let asked = |name| {
        std::env::var(name)
            .ok()
            .and_then(|text: String| text.parse::<u64>().ok())
    };
    let first = asked("LEADER_TEST_SEED").unwrap_or(1);
    let end = first + asked("LEADER_TEST_SEQUENCES").unwrap_or(SEQUENCES);
    let (tally, differs) = (Mutex::new(Tally::default()), AtomicBool::new(false));
    // One server for every other seed: with an append-only file, or without. Each has a thread, which is what a round trip costs least in.
    let lane = |parity: u64| {
        let _on_panic = OnPanic(&differs);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let mut lane = Lane::start(parity == 1).await;
            for seed in (first..end).filter(|seed| seed % 2 == parity) {
                if differs.load(Ordering::Relaxed) {
                    break;
                }
                let mut pair = Pair::new(seed, &mut lane).await;
                pair.run().await;
                tally.lock().unwrap().add(pair.tally);
            }
        });
    };
    let difference = std::thread::scope(|scope| {
        let lanes = [0, 1].map(|parity| scope.spawn(move || lane(parity)));
        let ended = lanes.map(std::thread::ScopedJoinHandle::join);
        ended.into_iter().find_map(Result::err)
    });
    println!("{}", tally.lock().unwrap());
    if let Some(difference) = difference {
        std::panic::resume_unwind(difference);
    }
}

/// Tells the other lane that it need not go on.
struct OnPanic<'a>(&'a AtomicBool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// How a request was refused.
fn refused(error: &StoreError) -> String {
    match error.kind() {
        StoreErrorKind::Refused { .. } => error.code().unwrap_or_default().to_owned(),
        other => format!("{other:?}"),
    }
}

/// One answer, or how it was refused.
type Told<T> = Result<T, String>;

/// An even and repeatable choice (splitmix64: Steele, Lea and Flood, 2014).
struct Choice(u64);

impl Choice {
    /// As what a span has passed; half of them in blackouts, which may go on.
    fn passed_as(&mut self) -> PassedAs {
        let missed = *self.of(MissedReason::ALL);
        if self.chance(50) {
            PassedAs::Blackout
        } else {
            PassedAs::Missed(missed)
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = self.below(all.len());
        &all[at]
    }
}

/// A number that each store minted for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Minted(usize);

/// An instant: one that a store made up, or one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    Told(usize),
    Planned(i64),
}

/// What one store made up, in the order of its appearance.
struct Names {
    /// Nothing was lost, and no clock set back.
    rises: bool,
    numbers: Vec<(GroupName, u64)>,
    instants: Vec<Timestamp>,
    /// Acts of each group, which have numbers of their own.
    acts: Vec<(GroupName, u64)>,
}

impl Names {
    fn new() -> Self {
        Self {
            rises: true,
            numbers: Vec::new(),
            instants: Vec::new(),
            acts: Vec::new(),
        }
    }

    fn number(&mut self, group: &GroupName, number: u64) -> Option<Minted> {
        if number == 0 {
            return None;
        }
        let of_group = |(other, _): &&(GroupName, u64)| other == group;
        let known = self
            .numbers
            .iter()
            .position(|(other, known)| other == group && *known == number);
        Some(Minted(known.unwrap_or_else(|| {
            assert!(
                !self.rises || self.numbers.iter().filter(of_group).all(|(_, known)| *known < number),
                "{number} does not rise"
            );
            self.numbers.push((group.clone(), number));
            self.numbers.len() - 1
        })))
    }

    fn act(&mut self, group: &GroupName, number: u64) -> Option<Minted> {
        if number == 0 {
            return None;
        }
        let act = (group.clone(), number);
        let known = self.acts.iter().position(|known| *known == act);
        Some(Minted(known.unwrap_or_else(|| {
            self.acts.push(act);
            self.acts.len() - 1
        })))
    }

    fn instant(&mut self, at: Timestamp) -> At {
        if at >= origin() || at < past_at(1_000) {
            return At::Planned(at.duration_since(origin()).as_secs());
        }
        let known = self.instants.iter().position(|other| *other == at);
        At::Told(known.unwrap_or_else(|| {
            self.instants.push(at);
            self.instants.len() - 1
        }))
    }

    fn spell(&self, at: At) -> Timestamp {
        match at {
            At::Told(index) => self.instants[index],
            At::Planned(seconds) => after(origin(), seconds),
        }
    }
}

/// Planned ticks lie in a future that no server's clock reads.
fn origin() -> Timestamp {
    "2200-01-01T00:00:00Z".parse().unwrap()
}

/// How long before the planned ticks the spans lie that are run again, in seconds.
const PAST: i64 = 10_000_000_000;

fn past_at(seconds: i64) -> Timestamp {
    after(origin(), seconds - PAST)
}

/// What a request asks for.
#[derive(Clone, Debug)]
struct Asks {
    name: &'static str,
    origin: Origin,
    from: At,
}

/// A pause without what a store makes up.
#[derive(Debug, PartialEq)]
struct Paused {
    number: Option<Minted>,
    job: Option<leader_core::JobName>,
    gap: Gap,
    since: At,
    until: Option<Timestamp>,
    reason: String,
}

impl Paused {
    fn of(pause: &Pause, group: &GroupName, names: &mut Names) -> Self {
        Self {
            number: names.act(group, pause.number),
            job: pause.job.clone(),
            gap: pause.gap,
            since: names.instant(pause.since),
            until: pause.until,
            reason: pause.reason.clone(),
        }
    }
}

struct Pair<'a> {
    seed: u64,
    choice: Choice,
    lane: &'a mut Lane,
    /// The embedded side where it is a server; `None` where it dies with its process, and forgets nothing.
    server: Option<EmbeddedServer>,
    sides: [(Bench, Names); 2],
    groups: [GroupName; 2],
    holders: [Holder; 3],
    /// The terms that each holder was granted in each group, newest last.
    terms: BTreeMap<(GroupName, Holder), Vec<Minted>>,
    /// The newest term seen of each group.
    newest: BTreeMap<GroupName, Minted>,
    fences: Vec<(GroupName, &'static str, Minted)>,
    /// The cursor as last told.
    cursors: BTreeMap<(GroupName, &'static str), At>,
    /// The names under which jobs are kept, as last told.
    names: BTreeMap<(GroupName, &'static str), &'static str>,
    /// Whether a job may have another name by now.
    renames: bool,
    /// The schedule as last told.
    kept: BTreeMap<(GroupName, &'static str), String>,
    number: u64,
    revisions: [u64; 2],
    /// The requests that were made.
    requests: Vec<(GroupName, Minted, Asks)>,
    /// What was saved last.
    saved: Option<Snapshot>,
    tally: Tally,
    log: Vec<String>,
}

impl<'a> Pair<'a> {
    async fn new(seed: u64, lane: &'a mut Lane) -> Self {
        let mut choice = Choice(seed);
        let ages = [Duration::from_secs(10_000), LONG, MID, Duration::from_millis(500)];
        let age = *choice.of(&ages) + Duration::from_micros(choice.next() % 1_000_000);
        lane.begin(age).await;
        let server = choice.chance(80).then(|| __server_on(lane.clock.clone()));
        if let Some(server) = &server {
            server.set_started(lane.started());
            server.set_appendonly(lane.appendonly);
        }
        let embedded = server
            .as_ref()
            .map_or_else(|| __embedded_on(lane.clock.clone()), EmbeddedServer::store);
        let embedded = keeping(in_namespace(embedded, &lane.namespace), little());
        let bench = |store: Arc<dyn Store>| Bench {
            store,
            namespace: lane.namespace.clone(),
            group: group("x"),
            server: None,
        };
        Self {
            seed,
            choice,
            sides: [
                (bench(Arc::new(embedded)), Names::new()),
                (bench(Arc::clone(&lane.store)), Names::new()),
            ],
            lane,
            server,
            groups: [group("x"), group("y")],
            holders: [holder("a"), process("a", 8), holder("b")],
            terms: BTreeMap::new(),
            newest: BTreeMap::new(),
            fences: Vec::new(),
            cursors: BTreeMap::new(),
            kept: BTreeMap::new(),
            names: BTreeMap::new(),
            renames: false,
            number: 0,
            revisions: [0; 2],
            requests: Vec::new(),
            saved: None,
            tally: Tally::default(),
            log: Vec::new(),
        }
    }

    async fn run(&mut self) {
        self.tally.sequences += 1;
        if self.server.is_none() || self.choice.chance(60) {
            self.begin().await;
        }
        let length = if self.choice.chance(2) {
            LENGTH
        } else {
            1 + self.choice.below(LENGTH / 10)
        };
        for _ in 0..length {
            if self.server.is_some() && self.choice.chance(15) {
                self.trouble().await;
            } else {
                self.step().await;
            }
        }
        self.compare_all().await;
    }

    /// Everything that can be read of both.
    async fn compare_all(&mut self) {
        self.compare_ledgers().await;
        for group in self.groups.clone() {
            self.compare_control(&group).await;
            self.compare_made(&group).await;
        }
        self.compare_rosters().await;
        self.compare_leases().await;
    }

    /// The first start of each group: whoever asks for a lease as long as this one waits for nobody.
    async fn begin(&mut self) {
        for group in self.groups.clone() {
            let first = self.holders[0].clone();
            let wish = Wanted {
                ttl: LONG,
                longest: LONG,
                first_start: true,
            };
            self.campaign_as(group, first, wish, None).await;
        }
    }

    fn note(&mut self, what: &str, answer: &str) {
        self.log.push(format!("{what} -> {answer}"));
    }

    fn agree<T: PartialEq + Debug>(&mut self, operation: &'static str, what: &str, answers: [Told<T>; 2]) -> Option<T> {
        self.agree_on(operation, what, answers, |_| Vec::new())
    }

    /// The same, counted by kinds.
    fn agree_on<T: PartialEq + Debug>(
        &mut self,
        operation: &'static str,
        what: &str,
        answers: [Told<T>; 2],
        kinds: impl FnOnce(&T) -> Vec<String>,
    ) -> Option<T> {
        let [embedded, redis] = answers;
        self.log.push(format!("{what} -> {redis:?}"));
        assert!(
            embedded == redis,
            "seed {}: {what}\n  embedded: {embedded:?}\n  redis:    {redis:?}\nafter\n  {}",
            self.seed,
            self.log.join("\n  ")
        );
        let kinds = match &redis {
            Ok(answer) => kinds(answer),
            Err(code) => vec![code.clone()],
        };
        for kind in kinds {
            self.tally.count(operation, kind);
        }
        if redis.is_err() {
            self.connect_anew();
        }
        redis.ok()
    }

    /// A connection to a replica is left, and rests.
    fn connect_anew(&mut self) {
        if self.lane.is_readonly() {
            self.sides[1].0.store = self.lane.connect_anew();
        }
    }

    fn pass(&mut self, span: Duration) {
        self.lane.pass(span);
    }

    /// Time passes between two steps, or none does.
    fn pass_some(&mut self) {
        if self.choice.chance(50) {
            self.pass(INSTANT * 2);
        }
    }

    async fn step(&mut self) {
        self.connect_anew();
        match self.choice.below(106) {
            0..=17 => self.campaign().await,
            18..=24 => self.renew().await,
            25..=28 => self.release().await,
            29..=31 => self.ask().await,
            32..=40 => self.take_over().await,
            41..=71 => self.claim().await,
            72..=85 => self.settle().await,
            86..=89 => self.beat().await,
            90..=91 => self.enrol().await,
            92 | 97 | 98 => self.cover().await,
            93..=96 => self.act().await,
            100..=105 => self.make().await,
            _ => self.compare_ledgers().await,
        }
    }

    fn who(&mut self) -> (GroupName, Holder) {
        let group = self.choice.of(&self.groups.clone()).clone();
        (group, self.choice.of(&self.holders.clone()).clone())
    }

    /// Mostly the holder that leads, with its term; sometimes an old one, or none that ever was.
    fn leader(&mut self) -> (GroupName, Holder, Option<Minted>) {
        let (group, holder) = self.who();
        if self.choice.chance(80)
            && let Some(newest) = self.newest.get(&group)
        {
            let of_newest = self
                .terms
                .iter()
                .find(|((g, _), terms)| *g == group && terms.last() == Some(newest));
            if let Some(((_, holder), _)) = of_newest {
                return (group.clone(), holder.clone(), Some(*newest));
            }
        }
        let terms = self
            .terms
            .get(&(group.clone(), holder.clone()))
            .cloned()
            .unwrap_or_default();
        let term = (!terms.is_empty()).then(|| *self.choice.of(&terms));
        (group, holder, term)
    }

    /// Who asks for ticks: a leader, or whoever needs none to.
    fn asker(&mut self) -> (GroupName, Holder, Option<Minted>) {
        if self.choice.chance(25) {
            let (group, holder) = self.who();
            return (group, holder, None);
        }
        self.leader()
    }

    fn numbers(&self, minted: Option<Minted>) -> [u64; 2] {
        [0, 1].map(|side| minted.map_or(0, |minted| self.sides[side].1.numbers[minted.0].1))
    }

    async fn campaign(&mut self) {
        let (group, holder) = self.who();
        let known = match self.choice.below(10) {
            0 => None,
            1 => self
                .terms
                .get(&(group.clone(), holder.clone()))
                .and_then(|terms| terms.first().copied()),
            _ => self.newest.get(&group).copied(),
        };
        let mut wish = Wanted {
            ttl: if self.choice.chance(25) { INSTANT } else { LONG },
            longest: LONG,
            first_start: true,
        };
        if self.server.is_some() {
            wish.ttl = *self.choice.of(&[INSTANT, MID, MID, LONG]);
            wish.longest = *self.choice.of(&[wish.ttl, wish.ttl, MID, LONG]);
            wish.first_start = self.choice.chance(25);
        }
        self.campaign_as(group, holder, wish, known).await;
    }

    async fn campaign_as(&mut self, group: GroupName, holder: Holder, wanted: Wanted, known: Option<Minted>) {
        let mut answers = Vec::new();
        let only_one = self.choice.chance(20);
        let yields = *self.choice.of(&[Duration::ZERO, Duration::ZERO, LONG, MID]);
        // The very first one is to be granted.
        let yields = if self.newest.contains_key(&group) || !wanted.first_start {
            yields
        } else {
            Duration::ZERO
        };
        for (side, known) in self.numbers(known).into_iter().enumerate() {
            let (bench, names) = &mut self.sides[side];
            let wish = Campaign {
                group: group.clone(),
                holder: holder.clone(),
                ttl: wanted.ttl,
                longest: wanted.longest,
                known,
                first_start: wanted.first_start,
                only_one,
                yields,
            };
            let answer = bench.store.campaign(vec![wish]).await.pop().unwrap();
            let told = answer.map(|answer| {
                let (word, term, remains) = match answer.verdict {
                    Verdict::Acquired { term } => ("acquired", term, None),
                    Verdict::Held { remaining, term } => ("held", term, remaining),
                    Verdict::Stale { term } => ("stale", term, None),
                    Verdict::Yielded { remaining, term } => ("yielded", term, Some(remaining)),
                    Verdict::Quarantined { remaining, term } => ("quarantined", term, Some(remaining)),
                };
                // One that is no server counts finer.
                let remains = remains.filter(|_| self.server.is_some());
                (word, names.number(&group, term), remains, answer.holder, answer.oddity)
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what =
            format!("campaign {group} {holder} known {known:?} {wanted:?} only one {only_one} yields {yields:?}");
        let answer = self.agree_on("campaign", &what, both(answers), |(word, .., oddity)| {
            vec![oddity.map_or_else(|| (*word).to_owned(), |oddity| format!("{word} {oddity}"))]
        });
        if wanted.ttl == INSTANT && self.choice.chance(80) {
            self.pass(OVER);
        } else {
            self.pass_some();
        }
        if let Some((word, Some(term), ..)) = answer {
            self.newest.insert(group.clone(), term);
            if word == "acquired" {
                self.terms.entry((group, holder)).or_default().push(term);
            }
        }
    }

    async fn renew(&mut self) {
        let (group, holder, term) = self.leader();
        let short = self.choice.chance(20);
        let mut answers = Vec::new();
        for (side, term) in self.numbers(term).into_iter().enumerate() {
            let (bench, names) = &mut self.sides[side];
            let renewal = Renewal {
                group: group.clone(),
                holder: holder.clone(),
                term,
                ttl: if short { INSTANT } else { LONG },
            };
            let answer = bench
                .store
                .renew(vec![renewal], Vec::new())
                .await
                .renewed
                .pop()
                .unwrap();
            let told = answer.map(|answer| match answer {
                Renewed::Yes { asked, control, .. } => ("renewed", asked, None, None, names.act(&group, control)),
                Renewed::NotYours { holder, term } => ("not_yours", None, holder, names.number(&group, term), None),
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!("renew {group} {holder} {term:?} short {short}");
        self.agree_on("renew", &what, both(answers), |(word, ..)| vec![(*word).to_owned()]);
        if short {
            self.pass(OVER);
        }
    }

    async fn release(&mut self) {
        let (group, holder, term) = self.leader();
        let since = self.choice.chance(50).then(|| after(origin(), 1));
        let mut answers = Vec::new();
        for (side, term) in self.numbers(term).into_iter().enumerate() {
            let request = Release {
                group: group.clone(),
                holder: holder.clone(),
                term,
                draining_since: since,
            };
            let answer = self.sides[side].0.store.release(request).await;
            answers.push(answer.map_err(|error| refused(&error)));
        }
        let what = format!("release {group} {holder} {term:?} {since:?}");
        self.agree_on("release", &what, both(answers), |()| vec!["answered".to_owned()]);
    }

    async fn ask(&mut self) {
        let (group, by, term) = self.leader();
        let meant = self.choice.chance(60).then_some(term);
        let short = self.choice.chance(20);
        let mut answers = Vec::new();
        for side in [0, 1] {
            let term = meant.map(|term| self.numbers(term)[side]);
            let (bench, names) = &mut self.sides[side];
            let request = Ask {
                group: group.clone(),
                // No term is 0.
                term: term.filter(|term| *term != 0),
                ends_after: if short { INSTANT } else { LONG },
                asked: Asked {
                    by: by.instance().to_owned(),
                    reason: "for a test".to_owned(),
                },
            };
            let told = bench.store.ask(request).await.map(|reply| match reply {
                AskReply::Kept { holder, term } => ("kept", Some(holder), names.number(&group, term)),
                AskReply::Over => ("over", None, None),
                AskReply::Vacant => ("vacant", None, None),
                AskReply::Foreign { holder } => ("foreign", holder, None),
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!("ask {group} {by} {meant:?} short {short}");
        self.agree_on("ask", &what, both(answers), |(word, ..)| vec![(*word).to_owned()]);
        if short {
            self.pass(OVER);
        }
    }

    async fn take_over(&mut self) {
        let (group, holder, term) = self.asker();
        let asked = self.choice.of(&[&JOBS[..], &JOBS[..1], &JOBS[1..], &[]]).to_vec();
        if self.take_over_as((group.clone(), holder.clone(), term), asked).await {
            // What has another name since is asked for by that, as an engine does.
            for name in JOBS {
                self.take_over_as((group.clone(), holder.clone(), term), vec![name])
                    .await;
            }
        }
    }

    /// Whether something may have been renamed.
    async fn take_over_as(
        &mut self,
        (group, holder, term): (GroupName, Holder, Option<Minted>),
        asked: Vec<&'static str>,
    ) -> bool {
        let schedules = self.schedules_of(&asked);
        let version = *self.choice.of(&VERSIONS);
        let elsewhere = self.elsewhere();
        // Seldom, so that jobs have a past of their own.
        let was: Vec<_> = (asked.iter())
            .map(|name| {
                if asked.len() > 1 && *name != MADE && self.choice.chance(15) {
                    self.choice.of(&[&JOBS[1..3], &JOBS[2..3], &JOBS[..2]]).to_vec()
                } else {
                    Vec::new()
                }
            })
            .collect();
        let others = JOBS.into_iter().filter(|name| !asked.contains(name));
        let beside: Vec<_> = others.filter(|_| self.choice.chance(20)).collect();
        self.renames |= was.iter().any(|names| !names.is_empty());
        let mut answers = Vec::new();
        for (side, term) in self.numbers(term).into_iter().enumerate() {
            let (bench, names) = &mut self.sides[side];
            let request = TakeOver {
                group: group.clone(),
                holder: holder.clone(),
                term,
                jobs: asked.iter().map(|name| job(name)).collect(),
                schedules: schedules.iter().map(|text| (*text).into()).collect(),
                writer: Writer::new(version, "2026f"),
                elsewhere: elsewhere
                    .as_ref()
                    .map(|names| names.iter().map(|name| job(name)).collect()),
                was: was
                    .iter()
                    .map(|names| names.iter().map(|name| job(name)).collect())
                    .collect(),
                beside: beside.iter().map(|name| job(name)).collect(),
            };
            let told = bench.store.take_over(request).await.map(|reply| match reply {
                TakenOver::Yours {
                    late_from,
                    cursors,
                    waiting,
                    open,
                    schedules,
                    control,
                    absences,
                    kept: names_kept,
                    ..
                } => {
                    let cursors: Vec<_> = cursors.into_iter().map(|cursor| names.instant(cursor)).collect();
                    let waiting: Vec<_> = waiting.into_iter().map(|at| at.map(|at| names.instant(at))).collect();
                    let open: Vec<_> = open.iter().map(|open| Open::of(open, &group, names)).collect();
                    let kept: Vec<_> = schedules.iter().map(|kept| Kept::of(kept, names)).collect();
                    let control = names.act(&group, control);
                    let absences: Vec<_> = absences.iter().map(|all| Absent::all(all, names)).collect();
                    Some((
                        (absences, names_kept),
                        late_from.map(|at| names.instant(at)),
                        cursors,
                        waiting,
                        open,
                        control,
                        kept,
                    ))
                }
                TakenOver::NotYours => None,
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!(
            "take over {group} {holder} {term:?} {asked:?} {schedules:?} {version:?} {elsewhere:?} was {was:?} beside {beside:?}"
        );
        let answer = self.agree_on("take over", &what, both(answers), |answer| {
            vec![if answer.is_some() { "yours" } else { "not_yours" }.to_owned()]
        });
        self.pass_some();
        let answer = answer.flatten();
        let names_kept = answer.as_ref().map(|((_, kept), ..)| kept.clone()).unwrap_or_default();
        for (name, kept) in asked.iter().zip(names_kept) {
            let kept = JOBS.into_iter().find(|job| *job == kept.as_str()).unwrap();
            self.names.insert((group.clone(), name), kept);
        }
        let led = answer.is_some();
        for (name, cursor) in asked.iter().zip(
            answer
                .as_ref()
                .map(|(_, _, cursors, ..)| cursors.clone())
                .unwrap_or_default(),
        ) {
            self.cursors.insert((group.clone(), name), cursor);
        }
        for (name, kept) in asked.iter().zip(answer.map(|(.., kept)| kept).unwrap_or_default()) {
            self.kept.insert((group.clone(), name), kept.text);
        }
        led && asked.len() > 1
    }

    /// What a program has: none where a schedule is made at run time.
    fn schedules_of(&mut self, asked: &[&str]) -> Vec<&'static str> {
        let made = !self.choice.chance(10);
        let one = |name: &&str| match *self.choice.of(&SCHEDULES) {
            _ if made && *name == MADE => "",
            text => text,
        };
        asked.iter().map(one).collect()
    }

    /// What others have, as the leader knows it.
    fn elsewhere(&mut self) -> Option<Vec<&'static str>> {
        let some = [&JOBS[..], &JOBS[..1], &JOBS[1..], &[]];
        self.choice.chance(80).then(|| self.choice.of(&some).to_vec())
    }

    async fn cover(&mut self) {
        let (group, holder, term) = self.leader();
        let own = self.choice.of(&[&JOBS[..], &JOBS[..1], &JOBS[1..], &[]]).to_vec();
        let elsewhere = self.elsewhere();
        let mut answers = Vec::new();
        for (side, term) in self.numbers(term).into_iter().enumerate() {
            let request = Cover {
                group: group.clone(),
                holder: holder.clone(),
                term,
                jobs: own.iter().map(|name| job(name)).collect(),
                elsewhere: elsewhere
                    .as_ref()
                    .map(|names| names.iter().map(|name| job(name)).collect()),
            };
            let answer = self.sides[side].0.store.cover(request).await;
            answers.push(answer.map_err(|error| refused(&error)));
        }
        let what = format!("cover {group} {holder} {term:?} {own:?} {elsewhere:?}");
        self.agree_on("cover", &what, both(answers), |yours| vec![format!("yours {yours}")]);
        self.pass_some();
    }

    /// Mostly the run that a request asks for, as a leader claims it.
    fn meets(
        &mut self,
        group: &GroupName,
        ahead: i64,
        name: &mut &'static str,
        tick: &mut At,
        want: &mut Want,
    ) -> Option<(Minted, bool)> {
        let requests = self.requests.iter().filter(|(g, ..)| g == group);
        let requests: Vec<_> = requests.cloned().collect();
        if !matches!(want, Want::Extra(_)) || requests.is_empty() || !self.choice.chance(70) {
            return None;
        }
        let (_, id, asked) = self.choice.of(&requests).clone();
        let more = self.choice.chance(60);
        if self.choice.chance(85) {
            *name = asked.name;
            *want = Want::Extra(asked.origin);
            *tick = match asked.from {
                At::Told(_) => asked.from,
                At::Planned(seconds) => At::Planned(seconds + ahead),
            };
        }
        Some((id, more))
    }

    /// Mostly the schedule in force.
    fn planned_by(&mut self, group: &GroupName, name: &'static str) -> String {
        let kept = self.kept.get(&(group.clone(), name)).cloned();
        match kept {
            Some(kept) if self.choice.chance(90) => kept,
            _ => (*self.choice.of(&[SCHEDULES[0], SCHEDULES[1], SCHEDULES[2], ""])).to_owned(),
        }
    }

    fn wish(&mut self, group: &GroupName) -> Wish {
        let name = *self.choice.of(&JOBS);
        let cursor = self
            .cursors
            .get(&(group.clone(), name))
            .copied()
            .unwrap_or(At::Planned(0));
        let ahead = i64::try_from(self.choice.below(4)).unwrap();
        let tick = match cursor {
            At::Told(_) => At::Planned(ahead),
            At::Planned(seconds) => At::Planned(seconds + ahead),
        };
        let from = match (self.choice.below(10), cursor) {
            (0, At::Planned(seconds)) => At::Planned(seconds - 2),
            (1, At::Planned(seconds)) => At::Planned(seconds + 1),
            (2, At::Told(_)) => At::Planned(-1_000),
            _ => cursor,
        };
        let want = *self.choice.of(&[
            Want::Run,
            Want::Run,
            Want::Run,
            Want::Run,
            Want::Waited,
            Want::Look,
            Want::Waited,
            Want::Owed,
            Want::Settle,
            Want::Adopt,
            Want::Adopt,
            Want::Extra(Origin::Manual),
            Want::Extra(Origin::Backfill),
        ]);
        // What waits is most often the last tick that was decided.
        let tick = match want {
            Want::Waited if self.choice.chance(80) => cursor,
            _ => tick,
        };
        let overlap = *self.choice.of(&[
            Overlap::Skip,
            Overlap::Wait,
            Overlap::Wait,
            Overlap::Replace,
            Overlap::Allow,
        ]);
        let passed = (0..self.choice.below(3)).map(|_| {
            let reason = self.choice.passed_as();
            let first = i64::try_from(self.choice.below(50)).unwrap();
            let count = self.choice.next() % 1_000;
            (
                reason,
                first,
                first + i64::try_from(self.choice.below(9)).unwrap(),
                count,
            )
        });
        let passed = passed.collect();
        let mine: Vec<_> = self
            .fences
            .iter()
            .filter(|(g, ..)| g == group)
            .map(|(.., fence)| *fence)
            .collect();
        let alive = mine
            .into_iter()
            .rev()
            .filter(|_| self.choice.chance(60))
            .take(8)
            .collect();
        let further = self.further();
        let anew = self.retried(group, name);
        // Now and then the number of an earlier claim: a repetition, or one that differs from what it was.
        let number = if self.choice.chance(10) {
            self.number.saturating_sub(self.choice.next() % 3)
        } else {
            self.number += 1;
            self.number
        };
        let (mut name, mut tick, mut want) = (name, tick, want);
        let meets = self.meets(group, ahead, &mut name, &mut tick, &mut want);
        name = self.names.get(&(group.clone(), name)).copied().unwrap_or(name);
        let schedule = self.planned_by(group, name);
        let adopts = if want == Want::Adopt {
            *self.choice.of(&SCHEDULES)
        } else {
            ""
        };
        Wish {
            meets,
            name,
            number,
            tick,
            from,
            want,
            overlap,
            passed,
            alive,
            further,
            retried: anew,
            schedule,
            adopts,
        }
    }

    /// One of the job's last runs.
    fn retried(&mut self, group: &GroupName, name: &str) -> Option<Minted> {
        let of_job = self.fences.iter().rev().filter(|(g, n, _)| g == group && *n == name);
        let newest: Vec<_> = of_job.take(3).map(|(.., fence)| *fence).collect();
        (!newest.is_empty() && self.choice.chance(25)).then(|| *self.choice.of(&newest))
    }

    fn further(&mut self) -> Option<Further> {
        let retries = u32::try_from(self.choice.below(4)).unwrap();
        self.choice.chance(60).then_some(Further {
            retries,
            first: if self.choice.chance(60) { INSTANT } else { LONG },
            most: LONG,
        })
    }

    async fn claim(&mut self) {
        let (group, holder, term) = self.asker();
        let sizes = [0, 1, 1, 1, 1, 2, 3, 5, 140];
        let mut count = *self.choice.of(&sizes);
        if count > 100 && (self.lane.is_short() || self.choice.chance(85)) {
            // Several scripts, of which the first may be let pass where the second is refused.
            count = 4;
        }
        let mut wishes: Vec<Wish> = Vec::new();
        for _ in 0..count {
            let mut wish = self.wish(&group);
            // Several ticks of a job in a row, as a late leader claims them.
            let scheduled = |other: &&Wish| other.meets.is_none() && other.name == wish.name;
            if wish.meets.is_none()
                && let Some(before) = wishes.iter().rfind(scheduled)
                && let At::Planned(seconds) = before.tick
            {
                (wish.from, wish.tick) = (before.tick, At::Planned(seconds + 1));
            }
            wishes.push(wish);
        }
        let impatient = self.choice.chance(40);
        let connected = self.choice.chance(80);
        let version = *self.choice.of(&VERSIONS);
        let (claiming, first) = self.bounds(&wishes);
        if impatient || wishes.iter().any(|wish| wish.retried.is_some()) {
            self.pass(OVER);
        }
        let mut answers = Vec::new();
        for (side, term) in self.numbers(term).into_iter().enumerate() {
            let (bench, names) = &mut self.sides[side];
            let batch = ClaimBatch {
                group: group.clone(),
                holder: holder.clone(),
                term,
                known: 0,
                claiming,
                first,
                silence: if impatient { INSTANT } else { LONG },
                patience: if impatient { INSTANT } else { LONG },
                connected: if connected { LONG } else { Duration::ZERO },
                writer: Writer::new(version, "2026g"),
                claims: wishes.iter().map(|wish| wish.spell(names)).collect(),
            };
            let told = bench
                .store
                .claim(vec![batch])
                .await
                .pop()
                .unwrap()
                .map(|claimed| match claimed {
                    Claimed::NotYours => None,
                    Claimed::Yours(replies) => Some(
                        replies
                            .into_iter()
                            .map(|reply| Reply::of(&reply, &group, names))
                            .collect::<Vec<_>>(),
                    ),
                });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!(
            "claim {group} {holder} {term:?} impatient {impatient} connected {connected} first {first} {wishes:?}"
        );
        let answer = self.agree_on("claim", &what, both(answers), |answer| match answer {
            None => vec!["not_yours".to_owned()],
            Some(replies) => replies.iter().map(Reply::kind).collect(),
        });
        let replies: Vec<Reply> = answer.flatten().unwrap_or_default();
        for (wish, reply) in wishes.iter().zip(replies) {
            let scheduled = wish.retried.is_none() && matches!(wish.want, Want::Run | Want::Owed | Want::Settle);
            match reply {
                Reply::Won(fence) => {
                    self.fences.push((group.clone(), wish.name, fence));
                    if scheduled {
                        self.cursors.insert((group.clone(), wish.name), wish.tick);
                    }
                }
                Reply::Overlapped | Reply::Waits | Reply::Passed | Reply::Paused(_) if scheduled => {
                    self.cursors.insert((group.clone(), wish.name), wish.tick);
                }
                Reply::Moved(cursor, _) => {
                    self.cursors.insert((group.clone(), wish.name), cursor);
                }
                Reply::Adopted(cursor) => {
                    self.cursors.insert((group.clone(), wish.name), cursor);
                    self.kept.insert((group.clone(), wish.name), wish.adopts.to_owned());
                }
                _ => {}
            }
        }
        // Fences are as good as terms for what a candidate has seen.
        let of_group = self.fences.iter().filter(|(other, ..)| *other == group);
        if let Some(Minted(highest)) = of_group.map(|(.., fence)| *fence).max()
            && self.choice.chance(20)
        {
            let newest = self.newest.entry(group).or_insert(Minted(highest));
            *newest = (*newest).max(Minted(highest));
        }
    }

    /// The lowest number of a claim whose answer may be under way, and the lowest of the engine that asks.
    fn bounds(&mut self, wishes: &[Wish]) -> (u64, u64) {
        let lowest = wishes.iter().map(|wish| wish.number).min();
        let claiming = match self.choice.below(3) {
            0 => self.number.saturating_sub(2),
            1 => lowest.unwrap_or(0),
            _ => u64::MAX,
        };
        // What is claimed now is of an engine that lives.
        let first = self.choice.chance(10).then(|| lowest.unwrap_or(self.number));
        (claiming, first.unwrap_or(0))
    }

    async fn settle(&mut self) {
        let group = self.choice.of(&self.groups.clone()).clone();
        // Those of the other group may by chance be of the same number in one store.
        let of_group = self.fences.iter().filter(|(other, ..)| *other == group);
        let fences: Vec<_> = of_group.cloned().collect();
        if fences.is_empty() {
            return;
        }
        let mut count = *self.choice.of(&[0, 1, 1, 1, 2, 4, 150]);
        if count > 100 && (self.lane.is_short() || self.choice.chance(85)) {
            count = 3;
        }
        let mut ends = Vec::new();
        for _ in 0..count {
            // Mostly one of the newest, which is open.
            let newest = &fences[fences.len().saturating_sub(4)..];
            let from = if self.choice.chance(70) { newest } else { &fences[..] };
            let (_, name, fence) = self.choice.of(from);
            let name = if self.choice.chance(90) {
                name
            } else {
                self.choice.of(&JOBS)
            };
            let error = *self.choice.of(&["", "plain", "a|b\n\"ü\" 🦀 |"]);
            let (name, fence, ran) = (job(name), *fence, *self.choice.of(Ran::ALL));
            let again_in = *self.choice.of(&[None, None, Some(INSTANT), Some(LONG)]);
            let again_in = again_in.filter(|_| matches!(ran, Ran::Error | Ran::Panic | Ran::TimedOut));
            ends.push((name, fence, ran, error.to_owned(), again_in));
        }
        let mut answers = Vec::new();
        for (bench, names) in &self.sides {
            let end = |(job, fence, ran, error, again_in): &(leader_core::JobName, Minted, Ran, String, _)| End {
                job: job.clone(),
                fence: names.numbers[fence.0].1,
                ran: *ran,
                error: error.clone(),
                again_in: *again_in,
            };
            let batch = SettleBatch {
                group: group.clone(),
                ends: ends.iter().map(end).collect(),
            };
            let settled = bench.store.settle(vec![batch]).await.pop().unwrap();
            let word = |settled: Settled| match settled {
                Settled::Yes => "yes",
                Settled::Again { .. } => "again",
                Settled::Fenced => "fenced",
            };
            let told = settled.map(|settled| settled.into_iter().map(word).collect::<Vec<_>>());
            answers.push(told.map_err(|error| refused(&error)));
        }
        self.agree_on("settle", &format!("settle {group} {ends:?}"), both(answers), |words| {
            words.iter().map(|word| (*word).to_owned()).collect()
        });
    }

    async fn beat(&mut self) {
        let group = self.choice.of(&self.groups.clone()).clone();
        let of_group = self.fences.iter().rev().filter(|(other, ..)| *other == group);
        let fences: Vec<_> = of_group.take(6).map(|(.., fence)| *fence).collect();
        let mut answers = Vec::new();
        for (bench, names) in &mut self.sides {
            let beats = Beats {
                group: group.clone(),
                fences: fences.iter().map(|fence| names.numbers[fence.0].1).collect(),
            };
            let told = bench.store.renew(Vec::new(), vec![beats]).await;
            let mut fences = |runs: Vec<Replaced>| {
                let fences = runs.into_iter().map(|run| names.number(&group, run.fence));
                fences.collect::<Vec<_>>()
            };
            answers.push(Ok((told.beaten, fences(told.replaced), fences(told.gone))));
        }
        self.agree_on(
            "beat",
            &format!("beat {group} {fences:?}"),
            both(answers),
            |(beaten, ..)| vec![format!("taken {}", beaten.iter().all(|beaten| *beaten))],
        );
    }

    async fn enrol(&mut self) {
        let (_, holder) = self.who();
        let service = *self.choice.of(&["shop", "shop", "mail"]);
        let (leaves, short) = (self.choice.chance(30), self.choice.chance(40));
        let digest = u64::from(self.choice.chance(30));
        let introduction = self.choice.chance(70).then(|| format!("says {digest}"));
        let mut answers = Vec::new();
        for (bench, _) in &self.sides {
            if leaves {
                let left = bench.store.leave(holder.clone()).await;
                answers.push(
                    left.map(|()| ("left".to_owned(), None))
                        .map_err(|error| refused(&error)),
                );
                continue;
            }
            let entry = Entry {
                holder: holder.clone(),
                service: ServiceName::new(service).unwrap(),
                ttl: if short { INSTANT } else { LONG },
                beat: format!("lives {short}"),
                digest,
                introduction: introduction.clone(),
            };
            let told = bench.store.enrol(entry).await.map(|enrolled| match enrolled {
                Enrolled::Yes { twin, .. } => ("enrolled".to_owned(), twin.map(|twin| twin.holder)),
                Enrolled::Introduce => ("introduce".to_owned(), None),
                // Which of several is named does not matter.
                Enrolled::OtherService { service, .. } => (service, None),
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what = format!("enrol {holder} {service} leaves {leaves} short {short} {digest} {introduction:?}");
        self.agree_on("enrol", &what, both(answers), |(word, _)| vec![word.clone()]);
        if short {
            self.pass(OVER);
        }
        self.compare_rosters().await;
    }

    async fn act(&mut self) {
        let group = self.choice.of(&self.groups.clone()).clone();
        let name = *self.choice.of(&JOBS);
        let of_group = self.choice.chance(30);
        let past = i64::try_from(self.choice.below(9)).unwrap();
        let asked = self.requests.iter().filter(|(g, ..)| *g == group).map(|(_, id, _)| *id);
        let asked: Vec<_> = asked.collect();
        let kind = self.choice.below(10);
        let short = self.choice.chance(30);
        let gap = *self.choice.of(&[Gap::Skip, Gap::Owed]);
        let cancelled = (!asked.is_empty()).then(|| *self.choice.of(&asked));
        let span = past_at(past)..past_at(past + 3);
        let soon = self.lane.clock.wall() + INSTANT;
        self.pass_some();
        let mut answers = Vec::new();
        for (bench, names) in &mut self.sides {
            let deed = match kind {
                0..=2 => Deed::pause(gap, short.then_some(soon)),
                3 | 4 => Deed::Resume,
                5 | 6 => Deed::Trigger,
                7 | 8 => Deed::backfill(span.start, if short { after(origin(), 1) } else { span.end }),
                _ => Deed::cancel(cancelled.map_or(7, |id| names.acts[id.0].1)),
            };
            let request = ActRequest {
                group: group.clone(),
                job: (!of_group || matches!(deed, Deed::Trigger | Deed::Backfill { .. })).then(|| job(name)),
                deed,
                by: "ann".to_owned(),
                reason: "a|b".to_owned(),
            };
            let told = bench.store.act(request).await.map(|acted| match acted {
                Acted::Done { number, at, before } => {
                    let before = before.map(|before| Paused::of(&before, &group, names));
                    let id = names.act(&group, number);
                    ("done", id, Some(names.instant(at)), before, 0)
                }
                Acted::Nothing => ("nothing", None, None, None, 0),
                Acted::Full { open } => ("full", None, None, None, open),
                Acted::Untimely { .. } => ("untimely", None, None, None, 0),
            });
            answers.push(told.map_err(|error| refused(&error)));
        }
        let what =
            format!("act {group} {name} of group {of_group} {kind} {gap} {cancelled:?} short {short} past {past}");
        let answer = self.agree_on("act", &what, both(answers), |(word, ..)| vec![(*word).to_owned()]);
        if short {
            self.pass(OVER);
        }
        if let (Some((_, Some(id), Some(at), ..)), 5..=8) = (answer, kind) {
            let manual = kind < 7;
            let asks = Asks {
                name,
                origin: if manual { Origin::Manual } else { Origin::Backfill },
                from: if manual { at } else { At::Planned(past - PAST) },
            };
            self.requests.push((group.clone(), id, asks));
        }
        self.compare_control(&group).await;
    }

    async fn compare_control(&mut self, group: &GroupName) {
        let mut answers = Vec::new();
        for (bench, names) in &mut self.sides {
            let read = bench.store.control(group).await.unwrap();
            let mut request = |request: &leader_core::OpenRequest| {
                let at = [Some(request.from), Some(request.to), request.done].map(|at| at.map(|at| names.instant(at)));
                (names.act(group, request.id), request.job.clone(), request.origin, at)
            };
            let requests: Vec<_> = read.requests.iter().map(&mut request).collect();
            let pauses: Vec<_> = read
                .pauses
                .iter()
                .map(|pause| Paused::of(pause, group, names))
                .collect();
            let ended: Vec<_> = read.ended.iter().map(|pause| Paused::of(pause, group, names)).collect();
            let act = |act: &Act| {
                (
                    names.act(group, act.number),
                    act.deed.as_str(),
                    act.job.clone(),
                    act.reason.clone(),
                )
            };
            let acts: Vec<_> = read.acts.iter().map(act).collect();
            let number = names.act(group, read.number);
            answers.push(Ok((number, pauses, ended, requests, acts)));
        }
        self.agree("control", &format!("control {group}"), both(answers));
        self.log.pop();
    }

    /// The living lines, and whether an introduction or a departure is seen in the roster's number.
    async fn compare_rosters(&mut self) {
        let mut answers = Vec::new();
        for (side, (bench, _)) in self.sides.iter().enumerate() {
            let roster = bench.store.roster().await.unwrap();
            let lines = roster
                .lines
                .into_iter()
                .map(|line| (line.holder, line.service, line.beat, line.introduction));
            let changed = std::mem::replace(&mut self.revisions[side], roster.revision) != roster.revision;
            answers.push(Ok((changed, lines.collect::<Vec<_>>())));
        }
        self.agree("roster", "roster", both(answers));
        self.log.pop();
    }

    async fn compare_ledgers(&mut self) {
        for group in self.groups.clone() {
            let mut answers = Vec::new();
            for (bench, names) in &mut self.sides {
                let jobs = JOBS.map(job);
                let [one, two, three, four] = &jobs;
                let ledger = |name| bench.store.ledger(&group, name);
                // In one round trip.
                let read = tokio::join!(ledger(one), ledger(two), ledger(three), ledger(four));
                let ledgers = [read.0, read.1, read.2, read.3];
                answers.push(Ok(ledgers.map(|ledger| Ledger::of(&ledger.unwrap(), &group, names))));
            }
            self.agree("ledger", &format!("ledgers {group}"), both(answers));
            self.log.pop();
        }
    }
}

/// What a campaign asks for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    ttl: Duration,
    longest: Duration,
    first_start: bool,
}

fn both<T: Debug>(answers: Vec<T>) -> [T; 2] {
    answers.try_into().expect("one answer of each store")
}

#[derive(Debug)]
struct Wish {
    name: &'static str,
    number: u64,
    tick: At,
    from: At,
    want: Want,
    overlap: Overlap,
    passed: Vec<(PassedAs, i64, i64, u64)>,
    alive: Vec<Minted>,
    further: Option<Further>,
    /// The run that is to be tried again, in place of what is wanted.
    retried: Option<Minted>,
    schedule: String,
    adopts: &'static str,
    meets: Option<(Minted, bool)>,
}

impl Wish {
    fn spell(&self, names: &Names) -> Claim {
        let passed = |(reason, first, last, count): &(PassedAs, i64, i64, u64)| Passed {
            reason: *reason,
            first: after(origin(), *first),
            last: after(origin(), *last),
            count: *count,
        };
        Claim {
            job: job(self.name),
            number: self.number,
            tick: names.spell(self.tick),
            cursor: names.spell(self.from),
            want: match self.retried {
                Some(fence) => Want::Retry {
                    fence: names.numbers[fence.0].1,
                    tries: 1,
                },
                None => self.want,
            },
            overlap: self.overlap,
            passed: self.passed.iter().map(passed).collect(),
            alive: self.alive.iter().map(|fence| names.numbers[fence.0].1).collect(),
            further: self.further,
            schedule: self.schedule.as_str().into(),
            adopts: self.adopts.into(),
            meets: self.meets.map(|(id, more)| Meets {
                request: names.acts[id.0].1,
                more,
            }),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Reply {
    Won(Minted),
    Overlapped,
    Waits,
    Replacing,
    Passed,
    Busy,
    Early(Duration),
    Looked(Open),
    Paused(At),
    Held(Option<Timestamp>),
    Split(At),
    Gone,
    Moved(At, Option<At>),
    OtherSchedule,
    Adopted(At),
}

/// What is open, and for how long.
#[derive(Debug, PartialEq)]
struct Open {
    silent_in: Option<Duration>,
    pausing: Vec<(Option<Minted>, At, u32, Ran, Timestamp)>,
}

impl Open {
    fn of(found: &Found, group: &GroupName, names: &mut Names) -> Self {
        let mut pausing = |run: &Pausing| {
            let (fence, tick) = (names.number(group, run.fence), names.instant(run.tick));
            (fence, tick, run.tries, run.ran, run.again_at)
        };
        Self {
            silent_in: found.silent_in,
            pausing: found.pausing.iter().map(&mut pausing).collect(),
        }
    }
}

impl Reply {
    /// The word that it is counted by.
    fn kind(&self) -> String {
        let text = format!("{self:?}");
        let word: String = text.chars().take_while(|sign| sign.is_alphanumeric()).collect();
        word.to_lowercase()
    }

    fn of(reply: &ClaimReply, group: &GroupName, names: &mut Names) -> Self {
        match reply {
            ClaimReply::Won { fence } => Self::Won(names.number(group, *fence).expect("a fence is a number")),
            ClaimReply::Overlapped => Self::Overlapped,
            ClaimReply::Waits => Self::Waits,
            ClaimReply::Replacing => Self::Replacing,
            ClaimReply::Passed => Self::Passed,
            ClaimReply::Busy => Self::Busy,
            ClaimReply::Early { left } => Self::Early(*left),
            ClaimReply::Looked(found) => Self::Looked(Open::of(found, group, names)),
            ClaimReply::Paused { since } => Self::Paused(names.instant(*since)),
            ClaimReply::Held { until } => Self::Held(*until),
            ClaimReply::Split { since } => Self::Split(names.instant(*since)),
            ClaimReply::Gone => Self::Gone,
            ClaimReply::Moved { cursor, waiting } => {
                Self::Moved(names.instant(*cursor), waiting.map(|at| names.instant(at)))
            }
            ClaimReply::OtherSchedule => Self::OtherSchedule,
            ClaimReply::Adopted { cursor } => Self::Adopted(names.instant(*cursor)),
        }
    }
}

/// A ledger without what a store makes up; the order of records counts.
#[derive(Debug, PartialEq)]
struct Ledger {
    since: Option<At>,
    cursor: Option<At>,
    counts: BTreeMap<Outcome, u64>,
    open: Vec<Run>,
    waiting: Option<At>,
    records: Vec<Record>,
    trimmed: (Option<At>, Option<At>),
    schedule: Option<Kept>,
    schedules: Vec<(Kept, At)>,
    made: (Option<String>, Option<At>),
    absences: Vec<Absent>,
}

/// A span in which no leader could decide.
#[derive(Debug, PartialEq)]
struct Absent(AbsenceKind, At, Option<At>);

impl Absent {
    fn all(absences: &[Absence], names: &mut Names) -> Vec<Self> {
        let mut one = |absence: &Absence| {
            Self(
                absence.kind,
                names.instant(absence.from),
                absence.until.map(|at| names.instant(at)),
            )
        };
        absences.iter().map(&mut one).collect()
    }
}

#[derive(Debug, PartialEq)]
struct Kept {
    text: String,
    since: Option<At>,
    version: String,
    time_zones: String,
    by: String,
}

impl Kept {
    fn of(kept: &StoredSchedule, names: &mut Names) -> Self {
        Self {
            text: kept.text.clone(),
            since: kept.since.map(|at| names.instant(at)),
            version: kept.version.clone(),
            time_zones: kept.time_zones.clone(),
            by: kept.by.clone(),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Run {
    tick: At,
    fence: Option<Minted>,
    term: Option<Minted>,
    origin: Origin,
    instance: String,
    tries: u32,
    claimed_at: Timestamp,
    /// Of one that pauses.
    last: Option<(Option<Ran>, String, Timestamp)>,
}

#[derive(Debug, PartialEq)]
struct Record {
    first: At,
    count: u64,
    outcome: Outcome,
    error: String,
    settled_at: Timestamp,
    run: Run,
}

impl Ledger {
    fn of(ledger: &JobLedger, group: &GroupName, names: &mut Names) -> Self {
        let open = ledger.open.iter().map(|run| Run {
            tick: names.instant(run.tick),
            fence: names.number(group, run.fence),
            term: names.number(group, run.term),
            origin: run.origin,
            instance: run.instance.clone(),
            tries: run.tries,
            claimed_at: run.claimed_at,
            last: run.again_at.map(|at| (run.last, run.error.clone(), at)),
        });
        let open = open.collect();
        let records = ledger.records.iter().map(|record| Record {
            first: names.instant(record.first),
            count: record.count,
            outcome: record.outcome,
            error: record.error.clone(),
            settled_at: record.settled_at,
            run: Run {
                tick: names.instant(record.last),
                fence: names.number(group, record.fence),
                term: names.number(group, record.term),
                origin: record.origin,
                instance: record.instance.clone(),
                tries: record.tries,
                claimed_at: record.claimed_at,
                last: None,
            },
        });
        let records = records.collect();
        let schedules = ledger.schedules.iter();
        let schedules = schedules.map(|earlier| (Kept::of(&earlier.schedule, names), names.instant(earlier.until)));
        let schedules = schedules.collect();
        Self {
            made: (ledger.handler.clone(), ledger.retired.map(|at| names.instant(at))),
            schedule: ledger.schedule.as_ref().map(|kept| Kept::of(kept, names)),
            schedules,
            absences: Absent::all(&ledger.absences, names),
            since: ledger.since.map(|at| names.instant(at)),
            cursor: ledger.cursor.map(|at| names.instant(at)),
            counts: ledger.counts.clone(),
            open,
            waiting: ledger.waiting.map(|at| names.instant(at)),
            records,
            trimmed: (
                ledger.trimmed.runs.map(|at| names.instant(at)),
                ledger.trimmed.others.map(|at| names.instant(at)),
            ),
        }
    }
}

/// The stores of a pair are two.
#[tokio::test]
async fn the_two_are_of_different_kinds() {
    let mut lane = Lane::start(false).await;
    let pair = Pair::new(0, &mut lane).await;
    let kinds = pair
        .sides
        .each_ref()
        .map(|(bench, _)| Arc::clone(&bench.store).is_embedded());
    assert_eq!(kinds, [true, false]);
}
