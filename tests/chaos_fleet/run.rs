//! A run: slices of trouble, each with a calm and a judgement at its end.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leader_tests::audit::{Audit, JobState, Line, Violation};
use leader_tests::{RedisServer, dice, say};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::figures::{Vacancies, faults};
use crate::fleet::{Node, Place, Use};
use crate::floor::now;
use crate::jobs::{HELD, JOBS};
use crate::nemesis::{Done, Stage, wall};
use crate::plan::{Slice, plan};
use crate::register::Register;
use crate::{PASSWORD, TTL, server};

/// How many processes the fleet has.
const NODES: usize = 5;
/// About how long a slice lasts, calm included.
const SLICE: u64 = 60;
/// What is set aside for the calm of each.
const CALM: Duration = Duration::from_secs(7);
/// How long the fleet may take to settle everything when nothing goes wrong any more: a quarantine of one TTL and two seconds on a server
/// that was restarted last, the take-over, and bodies of some seconds that wait for each other; on a machine that does other things too.
const SETTLE: Duration = Duration::from_secs(20);
/// How far lines may lie behind what they tell of.
const LAG: Duration = Duration::from_millis(500);
/// For how long, in nanoseconds, what was done may disturb what follows.
const RECENT: u64 = 20_000_000_000;

/// How many seconds a run may last: in less nothing would happen, and all of it is planned at the beginning.
const SHORTEST: u64 = 20;
const LONGEST: u64 = 31 * 86_400;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    seconds: u64,
    seed: u64,
    keep: bool,
}

impl Options {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut seconds, mut seed, mut keep) = (180, None, false);
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().ok_or(format!("{word} wants a number"))?;
                text.parse().map_err(|_| format!("{word} wants a number, not `{text}`"))
            };
            match word.as_str() {
                "--seconds" => seconds = number()?,
                "--seed" => seed = Some(number()?),
                "--keep" => keep = true,
                _ => return Err(format!("`{word}` is not understood")),
            }
        }
        if !(SHORTEST..=LONGEST).contains(&seconds) {
            return Err(format!("--seconds wants {SHORTEST} to {LONGEST}"));
        }
        let seed = seed.unwrap_or_else(dice::seed);
        Ok(Self { seconds, seed, keep })
    }
}

/// A run under way.
struct Run {
    stage: Arc<Stage>,
    register: Register,
    audit: Audit,
    vacancies: Vacancies,
    faults: BTreeMap<crate::plan::Fault, usize>,
    failed: u64,
    settled: Vec<Duration>,
    undecided: usize,
    /// What was done not long ago.
    recent: Vec<Done>,
    folder: PathBuf,
}

/// The folder of a run that may not come to its end: says where it is when it is left.
struct Folder {
    path: PathBuf,
    told: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.told {
            eprintln!("the files are kept in {}", self.path.display());
        }
    }
}

/// Runs, prints, and gives whether nothing was found.
pub async fn run(options: &Options) -> bool {
    let began = Instant::now();
    let slices = (options.seconds / SLICE).max(1);
    let whole = Duration::from_secs(options.seconds) / u32::try_from(slices).unwrap_or(1);
    let length = whole.saturating_sub(CALM);
    say!(
        "seed {}: {NODES} processes, TTL {TTL:?}, {slices} × {length:?} of faults; again with --seconds {} --seed {}",
        options.seed,
        options.seconds,
        options.seed
    );
    let folder = tempfile::Builder::new()
        .prefix("leader-chaos-")
        .tempdir()
        .expect("a folder")
        // Also when the rig itself panics.
        .keep();
    let mut folder = Folder {
        path: folder,
        told: false,
    };
    let mut run = Run::begin(folder.path.clone()).await;
    let mut first_use = Vec::new();
    for (slice, number) in plan(options.seed, length, usize::try_from(slices).unwrap_or(1))
        .into_iter()
        .zip(1..)
    {
        run.trouble(&slice).await;
        run.calm().await;
        run.progress(began.elapsed());
        // What is left of its share of the time is calm, too: who asks for an hour gets one.
        sleep_until(began + whole * number).await;
        if first_use.is_empty() {
            first_use = run.uses();
        }
    }
    let last_use = run.uses();
    run.end().await;
    say!("memory and files after the first slice: {}", first_use.join(", "));
    say!("memory and files after the last slice: {}", last_use.join(", "));
    run.judge_amount(options.seconds);
    let passed = run.report(began.elapsed());
    if passed && !options.keep {
        // Of no use to anybody any more, whether that works or not.
        let _ = std::fs::remove_dir_all(&folder.path);
    } else {
        say!("the files are kept in {}", folder.path.display());
    }
    folder.told = true;
    run.last_line();
    passed
}

impl Run {
    async fn begin(folder: PathBuf) -> Self {
        let server = RedisServer::options()
            .appendonly(true)
            .requirepass(PASSWORD)
            .start()
            .await;
        let register = folder.join("register");
        let place = Place {
            folder: folder.clone(),
            register: register.clone(),
        };
        let register = Register::serve(&register).expect("a socket");
        let mut nodes = Vec::new();
        for number in 1..=NODES {
            let mut node = Node::new(number, server.port(), &place).await;
            node.start(true).expect("a process");
            nodes.push(node);
        }
        let audit = Audit::new(&JOBS, &[HELD, "default"]);
        let log = File::create(folder.join("nemesis")).expect("a file");
        let stage = Arc::new(Stage::new(nodes, server, audit.groups(), log));
        let run = Self {
            stage,
            register,
            audit,
            vacancies: Vacancies::default(),
            faults: BTreeMap::new(),
            failed: 0,
            settled: Vec::new(),
            undecided: 0,
            recent: Vec::new(),
            folder,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !run.vacant().is_empty() {
            assert!(Instant::now() < deadline, "nobody leads {:?}", run.vacant());
            sleep(Duration::from_millis(50)).await;
        }
        // A server that was just started may have lost its last writes, so that hand-overs wait.
        while run.stage.server.lock().await.uptime().await < TTL + Duration::from_secs(3) {
            sleep(Duration::from_millis(50)).await;
        }
        run
    }

    /// The groups that nobody leads.
    fn vacant(&self) -> Vec<&'static str> {
        self.stage.read();
        let leaders = self.stage.leaders();
        let groups = self.audit.groups().iter().copied();
        groups.filter(|group| leaders.of(group).is_none()).collect()
    }

    fn uses(&self) -> Vec<String> {
        let members = self.stage.members.iter().filter_map(|member| {
            let node = member.node();
            Some(format!("{} {}", node.life(), Use::of(node.pid()?)))
        });
        let own = format!("the rig {}", Use::of(std::process::id()));
        members.chain([own]).collect()
    }

    async fn trouble(&self, slice: &Slice) {
        let began = Instant::now();
        let mut deeds = JoinSet::new();
        for deed in &slice.deeds {
            sleep_until(began + deed.at).await;
            deeds.spawn(Arc::clone(&self.stage).perform(*deed));
        }
        sleep_until(began + slice.length).await;
        deeds.join_all().await;
        self.stage.heal();
        self.stage.note("calm");
    }

    /// What is not settled yet of everything that was due by `until`.
    async fn unsettled(&self, until: i64) -> Vec<String> {
        let vacant = self.vacant().into_iter();
        let mut all: Vec<_> = vacant.map(|group| format!("nobody leads `{group}`")).collect();
        let server = self.stage.server.lock().await;
        for spec in JOBS {
            if let Err(pending) = server::state(&server, spec).await.settled(spec, until) {
                all.push(pending.0);
            }
        }
        all
    }

    /// Lets the fleet settle everything, and judges it.
    async fn calm(&mut self) {
        let (began, until) = (Instant::now(), wall());
        let unsettled = loop {
            let unsettled = self.unsettled(until).await;
            if unsettled.is_empty() || began.elapsed() > SETTLE {
                break unsettled;
            }
            sleep(Duration::from_millis(100)).await;
        };
        self.settled.push(began.elapsed());
        self.undecided += unsettled.len();
        self.audit
            .check(unsettled.is_empty(), "everything is settled in time", now(), || {
                format!("not within {SETTLE:?}: {unsettled:?}")
            });
        let states = server::states(&*self.stage.server.lock().await).await;
        self.judge(states).await;
    }

    async fn judge(&mut self, states: Vec<JobState>) {
        let cutoff = now();
        sleep(LAG).await;
        self.stage.read();
        let lines = self.stage.lines();
        let facts = std::mem::take(&mut *self.stage.facts());
        for deed in &facts.done {
            *self.faults.entry(deed.fault).or_default() += 1;
        }
        self.recent.extend(facts.done);
        self.vacancies.measure(&facts.endings, &self.recent, &lines);
        self.recent.retain(|deed| deed.until > cutoff.saturating_sub(RECENT));
        for (life, still) in facts.stills {
            self.audit.stood_still(&life, still);
        }
        for (life, at) in facts.ends {
            self.audit.ended(&life, at);
        }
        facts.losses.into_iter().for_each(|loss| self.audit.lost(loss));
        let troubles = facts.troubles;
        self.audit
            .check(troubles.is_empty(), "processes start, stop and end well", 0, || {
                format!("{troubles:?}")
            });
        let panics: Vec<_> = self
            .stage
            .members
            .iter()
            .flat_map(|member| member.node().panics())
            .collect();
        self.audit
            .check(panics.is_empty(), "nobody panics", 0, || panics.join("\n"));
        let mut found = self.audit.slice(lines.clone(), self.register.effects(), cutoff);
        for states in facts.eras.into_iter().chain([states]) {
            for (spec, state) in JOBS.into_iter().zip(&states) {
                self.audit.judge_ledger(spec, state);
            }
        }
        found.extend(self.audit.findings());
        self.show(&found, &lines);
        // Of a run with a violation everything is kept.
        if self.failed == 0 {
            for member in &self.stage.members {
                member.node().tidy();
            }
        }
    }

    /// Prints what was found, with what was told around it.
    fn show(&mut self, found: &[Violation], lines: &[Line]) {
        const AROUND: u64 = 1_500_000_000;
        self.failed += found.len() as u64;
        for violation in found {
            say!("VIOLATION: {}: {}", violation.rule, violation.text);
            let near = lines
                .iter()
                .filter(|line| line.at.abs_diff(violation.at) < AROUND && line.event != "seen");
            let mut near: Vec<_> = near.collect();
            near.sort_by_key(|line| line.at);
            for line in near.iter().take(80) {
                say!("    {line:?}");
            }
        }
        if !found.is_empty() {
            say!("    more in {}", self.folder.display());
        }
    }

    /// Stops everybody, and judges what is left.
    async fn end(&mut self) {
        for member in &self.stage.members {
            member.node().signal(Signal::TERM);
        }
        for member in 0..NODES {
            let ended = self.stage.has_ended(member, Duration::from_secs(20)).await;
            self.audit
                .check(ended, "processes start, stop and end well", now(), || {
                    format!("n{} does not stop", member + 1)
                });
        }
        let states = server::states(&*self.stage.server.lock().await).await;
        self.judge(states).await;
    }

    /// A run in which hardly anything happened has shown nothing: ninety faults and twenty-five changes of leaders are the least of three
    /// minutes, and half as many of a short run, which is calm for much of its time.
    fn judge_amount(&mut self, seconds: u64) {
        let least = |in_three_minutes: u64| in_three_minutes * seconds / if seconds < 180 { 360 } else { 180 };
        let faults = self.faults.values().sum::<usize>() as u64;
        let changes = self.changes();
        self.audit.check(
            faults >= least(90) && changes >= least(25),
            "enough has happened",
            0,
            || format!("{faults} faults and {changes} changes of leaders in {seconds} s"),
        );
        for (signal, median, most) in self.vacancies.medians() {
            self.audit.check(median <= most, "a group is led again soon", 0, || {
                format!(
                    "half of the takeovers after {signal} took {median:?} or more, and should take {most:?} at the most"
                )
            });
        }
        // Chance has its way with a few ticks.
        if seconds >= 60 {
            self.audit.judge_shares();
        }
        let found = self.audit.findings();
        self.show(&found, &[]);
    }

    /// How often a group got another leader.
    fn changes(&self) -> u64 {
        let first = self.audit.groups().len() as u64;
        self.audit.counts().elected.saturating_sub(first)
    }

    /// A line after each slice.
    fn progress(&self, took: Duration) {
        let (counts, failed) = (self.audit.counts(), self.failed);
        let faults: usize = self.faults.values().sum();
        let settled = self.settled.last().copied().unwrap_or_default();
        say!(
            "{took:>6.0?}: {faults} faults, {} leaderships, {} bodies, settled within {settled:.1?}, {failed} violations",
            counts.elected,
            counts.starts
        );
    }

    fn report(&mut self, took: Duration) -> bool {
        let counts = self.audit.counts().clone();
        say!("{}", faults(&self.faults));
        say!(
            "leader changes: {}; bodies started: {}; took {took:.0?}",
            self.changes(),
            counts.starts
        );
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let overlap = counts.overlap as f64 / 1e6;
        say!(
            "two believers at once: {overlap} ms; steps cut in two by a stop: {}",
            counts.cuts
        );
        let outcomes: Vec<_> = counts
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{outcome} {count}"))
            .collect();
        let sum = |prefix: &str| {
            let of = counts
                .outcomes
                .iter()
                .filter(|(outcome, _)| outcome.starts_with(prefix));
            of.map(|(_, count)| count).sum::<u64>()
        };
        say!(
            "ticks due: {}; run {}, missed {}, skipped for an overlap {}, paused {}, open when an era ended {} ({})",
            counts.due,
            sum("ran."),
            sum("missed."),
            sum("overlap_skipped"),
            sum("paused"),
            counts.due.saturating_sub(sum("")),
            outcomes.join(", ")
        );
        say!(
            "doubled: {} (in spans that the store lost: {}); results that were not heard in time: {}",
            counts.doubled,
            counts.doubled_in_losses,
            counts.unheard
        );
        say!(
            "writes to the fenced register: {} taken, {} refused",
            counts.effects[0],
            counts.effects[1]
        );
        let longest = self.settled.iter().max().copied().unwrap_or_default();
        say!(
            "settled after each slice: within {longest:.1?}; undecided: {}",
            self.undecided
        );
        for line in self.vacancies.lines() {
            say!("{line}");
        }
        self.failed == 0
    }

    fn last_line(&self) {
        let checks = self.audit.counts().checks;
        say!("{} passed, {} failed", checks.saturating_sub(self.failed), self.failed);
    }
}
