//! Random steps of tasks on two stores side by side: what one answers the other answers too, to the last fence and millisecond.
//!
//! Both live by one clock, which stands until it is moved. Entries of streams and cursors of lists are each store's own; all else is compared
//! as it is. Each sequence follows from its seed alone: `LEADER_TEST_SEQUENCES` asks for more of them, and `LEADER_TEST_SEED` names the first.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{
    Campaign, ChangeTask, Closed, Dispatch, Due, EmbeddedServer, EnqueueBatch, FinishBatch, Lane as TaskLane, LaneRoom,
    ListTasks, NewTask, OpenQueue, Priority, Release, Shard, Store, StoredTask, Take, Taken, TaskBeats, TaskChange,
    TaskEnd, TaskEnding, TaskKeep, TaskStatus, Verdict, in_namespace,
};
use leader_core::testing::{__embedded_on, __server_on};
use leader_core::{Clock, Holder, Namespace, Ran, StoreError, StoreErrorKind};
use leader_tests::dice::Dice;

use super::bench::{lane, shard, task_name};
use crate::bench::{LONG, holder};
use crate::lane::Lane;

const SEQUENCES: u64 = 800;
const LENGTH: u64 = 120;
const KEYS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const UNIQUE: [&str; 2] = ["u", "v"];
const SOON: Duration = Duration::from_millis(20);
const MID: Duration = Duration::from_secs(3);
const DAY: Duration = Duration::from_secs(24 * 60 * 60 + 1);

/// What the embedded store is compared with.
enum Other<'a> {
    /// A real server.
    Redis(&'a mut Lane),
    /// The embedded store as users have it.
    Plain(Clock),
}

#[test]
fn both_stores_answer_alike() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let mut lane = Lane::start(false).await;
        let mut answers = BTreeMap::new();
        for seed in seeds() {
            lane.begin(10 * LONG).await;
            Pair::new(seed, Other::Redis(&mut lane)).run(&mut answers).await;
        }
        enough(&answers);
    });
}

/// Its two lives differ in how long they last.
#[tokio::test]
async fn the_embedded_store_answers_alike_as_a_server() {
    let mut answers = BTreeMap::new();
    for seed in seeds() {
        let clock = Clock::manual("2026-03-02T12:00:00Z".parse().unwrap());
        Pair::new(seed, Other::Plain(clock)).run(&mut answers).await;
    }
    enough(&answers);
}

fn seeds() -> std::ops::Range<u64> {
    let asked = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let first = asked("LEADER_TEST_SEED").unwrap_or(1);
    first..first + asked("LEADER_TEST_SEQUENCES").unwrap_or(SEQUENCES)
}

/// Sequences that come to nothing compare nothing.
fn enough(answers: &BTreeMap<String, u64>) {
    println!("{answers:#?}");
    if std::env::var("LEADER_TEST_SEQUENCES").is_ok() {
        return;
    }
    let wanted = [
        "Moved",
        "instead",
        "moved",
        "full",
        "lost",
        "dead",
        "taken",
        "Heard",
        "Cancel",
        "Gone",
        "Taken",
        "Late",
        "Done",
        "Asked",
        "Not",
        "UniqueTaken",
        "Unknown",
        "NotYours",
    ];
    let missing: Vec<_> = wanted.iter().filter(|kind| !answers.contains_key(**kind)).collect();
    assert!(missing.is_empty(), "never answered: {missing:?}");
}

struct Pair<'a> {
    seed: u64,
    dice: Dice,
    other: Other<'a>,
    clock: Clock,
    server: EmbeddedServer,
    sides: [Arc<dyn Store>; 2],
    shards: [Shard; 2],
    /// Who leads each shard, or has led it last.
    leaders: [(Holder, u64); 2],
    generation: u32,
    number: u64,
    batches: Vec<EnqueueBatch>,
    /// The last steps of each worker on each shard.
    takes: BTreeMap<(usize, Holder), Take>,
    /// What each side has begun.
    attempts: Vec<(usize, [Taken; 2])>,
    full: bool,
    log: Vec<String>,
}

/// One answer, or how it was refused.
type Told<T> = Result<T, String>;

fn refused(error: &StoreError) -> String {
    match error.kind() {
        StoreErrorKind::Refused { .. } => error.code().unwrap_or_default().to_owned(),
        other => format!("{other:?}"),
    }
}

/// Asks both sides the same.
macro_rules! both {
    ($self:ident, $what:expr, $side:ident, $store:ident => $step:expr) => {{
        let mut answers = Vec::new();
        for $side in [0, 1] {
            let $store = $self.sides[$side].tasks();
            answers.push($step.await.map_err(|error| refused(&error)));
        }
        $self.agree($what, answers)
    }};
}

impl<'a> Pair<'a> {
    fn new(seed: u64, other: Other<'a>) -> Self {
        let (clock, namespace, compared) = match &other {
            Other::Redis(lane) => (lane.clock.clone(), lane.namespace.clone(), Arc::clone(&lane.store)),
            Other::Plain(clock) => {
                let namespace = Namespace::new("pair").unwrap();
                let plain = in_namespace(__embedded_on(clock.clone()), &namespace);
                (clock.clone(), namespace, Arc::new(plain) as Arc<dyn Store>)
            }
        };
        let server = __server_on(clock.clone());
        let embedded = Arc::new(in_namespace(server.store(), &namespace));
        let shards = [0, 1].map(|index| Shard { index, ..shard() });
        Self {
            seed,
            dice: Dice::new(seed),
            other,
            clock,
            server,
            sides: [embedded, compared],
            shards,
            leaders: [(holder("nobody"), 0), (holder("nobody"), 0)],
            generation: 1,
            number: 0,
            batches: Vec::new(),
            takes: BTreeMap::new(),
            attempts: Vec::new(),
            full: false,
            log: Vec::new(),
        }
    }

    async fn run(mut self, tally: &mut BTreeMap<String, u64>) {
        for shard in [0, 1] {
            self.lead(shard).await;
        }
        for _ in 0..=self.dice.below(LENGTH) {
            for kind in self.step().await {
                *tally.entry(kind).or_default() += 1;
            }
        }
        self.set_full(false).await;
        self.compare_all().await;
    }

    fn agree<T: PartialEq + Debug>(&mut self, what: &str, mut answers: Vec<Told<T>>) -> Option<T> {
        let (other, embedded) = (answers.pop().unwrap(), answers.pop().unwrap());
        self.log.push(format!("{} {what} -> {embedded:?}", self.clock.wall()));
        assert!(
            embedded == other,
            "seed {}: {what}\n  embedded: {embedded:?}\n  other:    {other:?}\nafter\n  {}",
            self.seed,
            self.log.join("\n  ")
        );
        embedded.ok()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.dice.below(100) < percent
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        let at = self.dice.below(all.len() as u64);
        all[usize::try_from(at).unwrap()].clone()
    }

    fn some(&mut self, most: u64) -> u32 {
        u32::try_from(self.dice.below(most)).unwrap()
    }

    fn shard(&mut self) -> usize {
        usize::from(self.chance(20))
    }

    fn lane(&mut self) -> TaskLane {
        let priority = self.of(Priority::ALL);
        let name = self.of(&["charge", "charge", "mail"]);
        lane(priority, name)
    }

    fn worker(&mut self) -> Holder {
        holder(self.of(&["p", "q"]))
    }

    fn pass(&mut self) {
        let span = self.of(&[Duration::from_millis(1), SOON, SOON, SOON, MID, MID, LONG, LONG, DAY]);
        match &self.other {
            Other::Redis(lane) => lane.pass(span),
            Other::Plain(clock) => clock.advance(span),
        }
    }

    async fn set_full(&mut self, full: bool) {
        if let Other::Redis(lane) = &mut self.other {
            lane.set_full(full).await;
            self.server.set_full(full);
            self.full = full;
            self.log.push(format!("full {full}"));
        }
    }

    /// The server forgets its scripts; or everything, with its leases and numbers.
    async fn forgets(&mut self) {
        let all = self.chance(50);
        if let Other::Redis(lane) = &mut self.other {
            if all {
                lane.command(&["FLUSHALL"]).await;
                self.server.flush();
            }
            lane.command(&["SCRIPT", "FLUSH"]).await;
            self.log
                .push(format!("forgets {}", if all { "everything" } else { "scripts" }));
        }
    }

    /// What came of one step, by kinds.
    async fn step(&mut self) -> Vec<String> {
        match self.dice.below(100) {
            0..=9 => self.pass(),
            10..=27 => return self.enqueue().await,
            28..=45 => return self.dispatch().await,
            46..=60 => return self.take().await,
            61..=65 => return self.beat().await,
            66..=76 => return self.finish().await,
            77..=84 => return self.change().await,
            85..=88 => self.list().await,
            89..=90 => self.read().await,
            91 => self.forget().await,
            92..=93 => self.generations().await,
            94..=95 => {
                let shard = self.shard();
                self.lead(shard).await;
            }
            96 => {
                let full = !self.full && self.chance(50);
                self.set_full(full).await;
            }
            97 if self.chance(25) => self.forgets().await,
            _ => self.figures().await,
        }
        Vec::new()
    }

    /// Another leader, or the same one anew; sometimes the lead is given back first.
    async fn lead(&mut self, at: usize) {
        let (old, term) = self.leaders[at].clone();
        if term != 0 && self.chance(80) {
            let request = Release {
                group: self.shards[at].group(),
                holder: old,
                term,
                draining_since: None,
            };
            let mut answers = Vec::new();
            for side in &self.sides {
                answers.push(side.release(request.clone()).await.map_err(|error| refused(&error)));
            }
            self.agree("release", answers);
        }
        let new = holder(self.of(&["x", "y"]));
        let wish = Campaign {
            group: self.shards[at].group(),
            holder: new.clone(),
            ttl: 100 * LONG,
            longest: 100 * LONG,
            known: term,
            first_start: true,
            only_one: false,
            yields: Duration::ZERO,
        };
        let mut answers = Vec::new();
        for side in &self.sides {
            let answer = side.campaign(vec![wish.clone()]).await.pop().unwrap();
            answers.push(match answer {
                Ok(answer) => Ok(match answer.verdict {
                    Verdict::Acquired { term } => Some(term),
                    _ => None,
                }),
                Err(error) => Err(refused(&error)),
            });
        }
        if let Some(Some(term)) = self.agree(&format!("campaign {at} {new}"), answers) {
            self.leaders[at] = (new, term);
        }
    }

    fn due(&mut self) -> Due {
        let spans = [
            Duration::ZERO,
            Duration::ZERO,
            Duration::from_millis(1),
            SOON,
            MID,
            LONG,
        ];
        let span = self.of(&spans);
        if self.chance(70) {
            return Due::After(span);
        }
        let span = SignedDuration::try_from(span).unwrap();
        let now = self.clock.wall();
        Due::At(if self.chance(50) { now - span } else { now + span })
    }

    fn task(&mut self) -> NewTask {
        let key = self.of(&KEYS);
        NewTask {
            key: key.to_owned(),
            lane: self.lane(),
            due: self.due(),
            unique: self.chance(40).then(|| self.of(&UNIQUE).to_owned()),
            once: self.chance(15),
            payload: format!("[{}]", self.number).into(),
        }
    }

    async fn enqueue(&mut self) -> Vec<String> {
        self.number += 1;
        let batch = if !self.batches.is_empty() && self.chance(15) {
            let batches = self.batches.clone();
            self.of(&batches)
        } else {
            let at = self.shard();
            let generation = match self.dice.below(20) {
                0 => self.generation + 1,
                1 => self.generation.saturating_sub(1).max(1),
                _ => self.generation,
            };
            self.generation = self.generation.max(generation);
            let tasks = 1 + self.dice.below(4);
            EnqueueBatch {
                shard: self.shards[at].clone(),
                generation,
                producer: self.worker(),
                number: self.number,
                tasks: (0..tasks).map(|_| self.task()).collect(),
            }
        };
        self.batches.push(batch.clone());
        let answer = both!(self, &format!("{batch:?}"), side, store => store.enqueue(batch.clone()));
        let word = format!("{answer:?}");
        let kinds = [("Moved", "Moved"), ("Some(\"", "instead")];
        let kinds = kinds.into_iter().filter(|(sign, _)| word.contains(sign));
        kinds.map(|(_, kind)| kind.to_owned()).collect()
    }

    async fn dispatch(&mut self) -> Vec<String> {
        let at = self.shard();
        let (mut who, mut term) = self.leaders[at].clone();
        match self.dice.below(20) {
            0 => who = holder("stranger"),
            1 => term -= 1,
            _ => {}
        }
        let request = Dispatch {
            shard: self.shards[at].clone(),
            holder: who,
            term,
            most: self.some(6),
            room: 1 + self.some(5),
            silence: self.of(&[Duration::ZERO, SOON, MID, LONG]),
            connected: self.of(&[Duration::ZERO, SOON, LONG]),
            losses: self.some(3),
            keep: TaskKeep {
                // How much goes at once is each store's own.
                ended: 10_000,
                ended_for: 10_000 * LONG,
                dead: self.of(&[1, 1_000, 1_000]),
                dead_for: self.of(&[MID, 10 * LONG]),
            },
        };
        let answer = both!(self, &format!("{request:?}"), side, store => store.dispatch(request.clone()));
        let word = format!("{answer:?}");
        let kinds = [
            ("NotYours", "NotYours"),
            ("first_due: Some", "moved"),
            ("full: true", "full"),
            ("dead: false", "lost"),
            ("dead: true", "dead"),
        ];
        let kinds = kinds.into_iter().filter(|(sign, _)| word.contains(sign));
        kinds.map(|(_, kind)| kind.to_owned()).collect()
    }

    async fn take(&mut self) -> Vec<String> {
        let (at, worker) = (self.shard(), self.worker());
        self.number += 1;
        let last = self.takes.get(&(at, worker.clone())).cloned();
        let wish = match last {
            Some(last) if self.chance(15) => Take { again: true, ..last },
            _ => {
                let lanes = 1 + self.dice.below(3);
                let one = |pair: &mut Self| LaneRoom {
                    lane: pair.lane(),
                    most: pair.some(4),
                };
                Take {
                    shard: self.shards[at].clone(),
                    holder: worker.clone(),
                    number: self.number,
                    again: self.chance(10),
                    most: self.some(5),
                    lanes: (0..lanes).map(|_| one(self)).collect(),
                }
            }
        };
        self.takes.insert((at, worker), wish.clone());
        let mut begun = Vec::new();
        let answer = both!(self, &format!("{wish:?}"), side, store => async {
            let reply = store.take(wish.clone()).await?;
            begun.push(reply.taken.clone());
            Ok::<_, StoreError>(reply)
        });
        if answer.is_none() {
            return Vec::new();
        }
        let (other, embedded) = (begun.pop().unwrap(), begun.pop().unwrap());
        let kinds = embedded.iter().map(|_| "taken".to_owned()).collect();
        let pairs = embedded.into_iter().zip(other).map(|(one, two)| (at, [one, two]));
        self.attempts.extend(pairs);
        kinds
    }

    /// Mostly the newest attempts.
    fn attempt(&mut self) -> Option<(usize, [Taken; 2])> {
        let newest = self.attempts.len().saturating_sub(6);
        let from = if self.chance(80) { newest } else { 0 };
        let attempts = self.attempts[from..].to_vec();
        (!attempts.is_empty()).then(|| self.of(&attempts))
    }

    async fn beat(&mut self) -> Vec<String> {
        let Some((at, [first, _])) = self.attempt() else {
            return Vec::new();
        };
        let mut attempts = vec![(first.key, first.fence)];
        if let Some((_, [second, _])) = self.attempt() {
            attempts.push((second.key, second.fence));
        }
        let beats = TaskBeats {
            shard: self.shards[at].clone(),
            attempts,
        };
        let answer = both!(self, &format!("{beats:?}"), side, store => store.beat_tasks(beats.clone()));
        answer
            .unwrap_or_default()
            .iter()
            .map(|reply| format!("{reply:?}"))
            .collect()
    }

    fn ending(&mut self) -> TaskEnding {
        let ran = self.of(&[Ran::Error, Ran::Panic, Ran::TimedOut]);
        let error = format!("error {}\nof two lines", self.number);
        match self.dice.below(8) {
            0..=2 => TaskEnding::Done,
            3 | 4 => {
                let after = self.of(&[Duration::ZERO, SOON, MID]);
                TaskEnding::Retry { after, ran, error }
            }
            5 => TaskEnding::Bury { ran, error },
            6 => TaskEnding::Cancelled,
            _ => TaskEnding::HandBack,
        }
    }

    async fn finish(&mut self) -> Vec<String> {
        let Some((at, first)) = self.attempt() else {
            return Vec::new();
        };
        let mut all = vec![(first, self.ending())];
        if let Some((other, second)) = self.attempt()
            && other == at
        {
            all.push((second, self.ending()));
        }
        let end = |taken: &Taken, how: &TaskEnding| TaskEnd {
            key: taken.key.clone(),
            lane: taken.lane.clone(),
            fence: taken.fence,
            unique: taken.unique.clone(),
            generation: taken.generation,
            how: how.clone(),
        };
        let batch = |side: usize| FinishBatch {
            shard: self.shards[at].clone(),
            holder: holder("p"),
            ends: all.iter().map(|(taken, how)| end(&taken[side], how)).collect(),
            keep: TaskKeep::default(),
        };
        let batches = [batch(0), batch(1)];
        let answer = both!(self, &format!("{:?}", batches[0]), side, store => store.finish(batches[side].clone()));
        answer
            .unwrap_or_default()
            .iter()
            .map(|reply| format!("{reply:?}"))
            .collect()
    }

    async fn change(&mut self) -> Vec<String> {
        let (mut at, mut key) = (self.shard(), self.of(&KEYS).to_owned());
        if self.chance(40)
            && let Some((shard, [taken, _])) = self.attempt()
        {
            (at, key) = (shard, taken.key);
        } else if self.chance(50) {
            let dead = self.dead(at).await;
            key = if dead.is_empty() { key } else { self.of(&dead) };
        }
        let change = match self.dice.below(3) {
            0 => TaskChange::Cancel,
            1 => TaskChange::Reschedule(self.due()),
            _ => TaskChange::Retry,
        };
        let request = ChangeTask {
            shard: self.shards[at].clone(),
            key,
            change,
            keep: TaskKeep::default(),
        };
        let answer = both!(self, &format!("{request:?}"), side, store => store.change_task(request.clone()));
        let word = answer.map(|changed| format!("{changed:?}")).unwrap_or_default();
        vec![word.split('(').next().unwrap_or_default().to_owned()]
    }

    /// The keys of dead letters, which a random key seldom is.
    async fn dead(&self, at: usize) -> Vec<String> {
        let request = ListTasks {
            shard: self.shards[at].clone(),
            status: TaskStatus::Dead,
            task: None,
            due_before: None,
            after: None,
            most: 10,
        };
        let page = self.sides[0].tasks().list_tasks(request).await.unwrap();
        page.tasks.into_iter().map(|task| task.key).collect()
    }

    async fn list(&mut self) {
        let request = ListTasks {
            shard: self.shards[self.shard()].clone(),
            status: self.of(TaskStatus::ALL),
            task: self.chance(30).then(|| task_name("charge")),
            due_before: self.chance(30).then(|| self.clock.wall()),
            after: None,
            most: 1 + self.some(4),
        };
        self.list_all(request).await;
    }

    /// All pages of a list, whose bounds are each store's own.
    async fn list_all(&mut self, request: ListTasks) -> Vec<StoredTask> {
        let what = format!("{request:?}");
        let answer = both!(self, &what, side, store => async {
            let (mut request, mut all) = (request.clone(), Vec::new());
            loop {
                let page = store.list_tasks(request.clone()).await?;
                all.extend(page.tasks);
                match page.next {
                    Some(next) => request.after = Some(next),
                    None => break,
                }
            }
            if request.status == TaskStatus::Running {
                // Of those that began at one instant nobody is the first.
                all.sort_by(|one, two| one.key.cmp(&two.key));
            }
            Ok::<_, StoreError>(all)
        });
        answer.unwrap_or_default()
    }

    async fn read(&mut self) {
        let (at, key, unique) = (self.shard(), self.of(&KEYS), self.of(&UNIQUE));
        let shard = self.shards[at].clone();
        both!(self, &format!("task {shard:?} {key}"), side, store => store.task(&shard, key));
        both!(self, &format!("unique {shard:?} {unique}"), side, store => store.unique(&shard, unique));
    }

    async fn forget(&mut self) {
        let (shard, keys) = (self.shards[self.shard()].clone(), [self.of(&KEYS), self.of(&KEYS)]);
        let keys = keys.map(str::to_owned).to_vec();
        let what = format!("forget {shard:?} {keys:?}");
        both!(self, &what, side, store => store.forget_once(&shard, keys.clone()));
    }

    async fn generations(&mut self) {
        let queue = self.shards[0].queue.clone();
        if self.chance(30) {
            let number = 1 + self.some(3);
            let request = Closed { queue, number };
            both!(self, &format!("{request:?}"), side, store => store.close_generation(request.clone()));
            return;
        }
        let shards = self.of(&[None, Some(1), Some(2), Some(4)]);
        let request = OpenQueue { queue, shards };
        both!(self, &format!("{request:?}"), side, store => store.open_queue(request.clone()));
    }

    async fn figures(&mut self) {
        let shard = self.shards[self.shard()].clone();
        both!(self, &format!("figures {shard:?}"), side, store => store.task_figures(&shard));
    }

    /// Everything that can be read of both, and what must hold of it.
    async fn compare_all(&mut self) {
        for shard in self.shards.clone() {
            let mut unfinished = 0;
            let mut counts = BTreeMap::new();
            for status in TaskStatus::ALL {
                let request = ListTasks {
                    shard: shard.clone(),
                    status: *status,
                    task: None,
                    due_before: None,
                    after: None,
                    most: 100,
                };
                let all = self.list_all(request).await;
                counts.insert(*status, all.len() as u64);
                if !status.is_finished() {
                    unfinished += all.len() as u64;
                }
                for task in all {
                    self.look_at(&shard, task).await;
                }
            }
            let figures = both!(self, "figures", side, store => store.task_figures(&shard)).unwrap();
            let known: u64 = figures.unfinished.values().sum();
            assert_eq!(known, unfinished, "seed {}: {figures:?}", self.seed);
            let pending = counts[&TaskStatus::Pending] + counts[&TaskStatus::Failed];
            let running = counts[&TaskStatus::Running];
            assert_eq!(
                (figures.pending, figures.running),
                (pending, running),
                "seed {}",
                self.seed
            );
            assert_eq!(figures.dead, counts[&TaskStatus::Dead], "seed {}", self.seed);
        }
        let queue = self.shards[0].queue.clone();
        let request = OpenQueue { queue, shards: None };
        both!(self, "generations", side, store => store.open_queue(request.clone()));
    }

    async fn look_at(&mut self, shard: &Shard, listed: StoredTask) {
        let key = listed.key.clone();
        let read = both!(self, &key, side, store => store.task(shard, &key)).unwrap();
        let mut read = read.unwrap_or_else(|| panic!("seed {}: {key} is listed and not known", self.seed));
        let carries = read.payload.take().is_some();
        let needs_none = matches!(read.status, TaskStatus::Done | TaskStatus::Cancelled);
        assert_eq!((carries, &read), (!needs_none, &listed), "seed {}", self.seed);
        if let (Some(unique), false) = (&read.unique, read.status.is_finished()) {
            let holder = both!(self, unique, side, store => store.unique(shard, unique)).unwrap();
            assert_eq!(holder.as_ref(), Some(&key), "seed {}: it is unfinished", self.seed);
        }
        assert!(read.ended.is_none_or(|ended: Timestamp| ended >= read.created));
    }
}
