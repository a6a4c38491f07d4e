//! Judges what a fleet of processes has told, and what the store keeps of it, by reading of its own: nothing here comes from the library.
//!
//! A run is judged in slices, so that it may last for hours: what no later line can contradict is forgotten.

mod beliefs;
mod bodies;
mod effects;
mod ledger;
mod numbers;
mod shares;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use beliefs::{Belief, Seen};
use bodies::Body;
pub use effects::Effect;
pub use ledger::{JobState, Pending};

/// How far a look at the clock may lie behind the step that it belongs to: a thread may be held up in between.
const PREEMPTION: u64 = 20_000_000;
/// For how long what has ended is kept to be compared with what comes.
const MEMORY: u64 = 120_000_000_000;
/// For how long, in milliseconds, the starts of a tick are kept.
const TICKS: i64 = 600_000;

/// One line of one process. All instants are nanoseconds of `CLOCK_BOOTTIME`, which all processes of a machine share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Line {
    /// What happened.
    pub event: String,
    /// The process that tells it.
    pub life: String,
    /// When.
    pub at: u64,
    /// Of which group.
    pub group: String,
    /// Of which job.
    pub job: String,
    /// The planned instant, in milliseconds since 1970.
    pub tick: i64,
    /// Which try.
    pub attempt: u32,
    /// The fence of a body.
    pub fence: u64,
    /// The term of a leadership, or of a body.
    pub term: u64,
    /// The beginning of a span.
    pub from: u64,
    /// The end of a span, or of belief; when a body was last polled.
    pub until: u64,
    /// A result or a reason.
    pub text: String,
}

/// What a job allows.
#[allow(clippy::struct_excessive_bools, reason = "each is a rule of its own")]
#[derive(Clone, Copy, Debug)]
pub struct JobSpec {
    /// Its name.
    pub name: &'static str,
    /// Its group.
    pub group: &'static str,
    /// Its ticks are the multiples of this, in milliseconds since 1970.
    pub period: i64,
    /// How many further tries a run has.
    pub retries: u32,
    /// Runs may be under way side by side.
    pub beside: bool,
    /// A body goes on after its leadership.
    pub finishes: bool,
    /// It needs no leader.
    pub unled: bool,
    /// No tick of it may be missed.
    pub owes_all: bool,
    /// What its body brings about by itself, and for how many of a hundred due ticks at least, however bad the days are.
    pub shows: &'static [(&'static str, u64)],
}

/// A span in which a process stood still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Still {
    /// When it was told to stop.
    pub from: u64,
    /// When it was let go on.
    pub until: u64,
}

/// When the store lost what it knew: the end of an era.
///
/// What was claimed before it and is claimed again after it cannot be told from a first claim where no leader has to be waited for: of such a
/// tick only the fencing rules are demanded. Where there is a leader, jobs start anew when the first one after the quarantine has taken
/// over, so that nothing is run twice even then. That nobody believes beside somebody else, and that terms and fences rise, is demanded across
/// it; so is one outcome of each tick, by the ledger of each era, but for those that were decided in an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Just before.
    pub from: u64,
    /// When the store served again.
    pub until: u64,
}

impl Loss {
    /// How long after its claim a body may be started.
    const START: u64 = 1_000_000_000;

    /// Whether what was started at the first instant may have been forgotten when something was claimed that was started at the second.
    fn parts(&self, first: u64, second: u64) -> bool {
        first < self.until + Self::START && self.from < second
    }
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// Around when; 0 where it has no instant.
    pub at: u64,
    /// What was seen.
    pub text: String,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// How many rules were checked for how many groups and jobs.
    pub checks: u64,
    /// Leaderships.
    pub elected: u64,
    /// Bodies started.
    pub starts: u64,
    /// For how long two have believed at once, in nanoseconds.
    pub overlap: u64,
    /// Ticks that were started more often than allowed, outside the spans that the store has lost.
    pub doubled: u64,
    /// The same inside those spans: no violation.
    pub doubled_in_losses: u64,
    /// Starts and polls that were cut in two by a stop of the process, between the guard's look at the clock and the body's own.
    pub cuts: u64,
    /// Writes that the fenced register took and refused.
    pub effects: [u64; 2],
    /// Ticks that fell due, and how many had which outcome.
    pub due: u64,
    /// By outcome.
    pub outcomes: BTreeMap<String, u64>,
    /// Bodies that returned well, and whose run the ledger has as something else.
    pub unheard: u64,
    /// By job: ticks that fell due, and how many of them had which outcome.
    pub of_jobs: BTreeMap<&'static str, (u64, BTreeMap<String, u64>)>,
    /// Further tries that were started.
    pub again: u64,
    /// Bodies that were started in time, and those that were compared with their tick.
    pub in_time: [u64; 2],
}

/// The judge.
#[derive(Debug)]
pub struct Audit {
    jobs: Vec<JobSpec>,
    groups: Vec<&'static str>,
    pending: Vec<Line>,
    beliefs: Vec<Belief>,
    seen: Vec<Seen>,
    bodies: Vec<Body>,
    stills: BTreeMap<String, Vec<Still>>,
    /// When a process could last do anything.
    ends: BTreeMap<String, u64>,
    losses: Vec<Loss>,
    /// When each tick of a job without a leader was first told to be decided.
    decided: BTreeMap<(&'static str, i64), u64>,
    numbers: numbers::Numbers,
    register: effects::Register,
    ledgers: ledger::Ledgers,
    freezes: u64,
    told: BTreeSet<Violation>,
    found: Vec<Violation>,
    counts: Counts,
}

impl Audit {
    /// A judge of these jobs, and of these groups besides theirs.
    #[must_use]
    pub fn new(jobs: &[JobSpec], groups: &[&'static str]) -> Self {
        let of_jobs = jobs.iter().map(|job| job.group);
        let groups: BTreeSet<_> = of_jobs.chain(groups.iter().copied()).collect();
        Self {
            jobs: jobs.to_vec(),
            groups: groups.into_iter().collect(),
            pending: Vec::new(),
            beliefs: Vec::new(),
            seen: Vec::new(),
            bodies: Vec::new(),
            stills: BTreeMap::new(),
            ends: BTreeMap::new(),
            losses: Vec::new(),
            decided: BTreeMap::new(),
            numbers: numbers::Numbers::default(),
            register: effects::Register::default(),
            ledgers: ledger::Ledgers::default(),
            freezes: 0,
            told: BTreeSet::new(),
            found: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Every group that is judged.
    #[must_use]
    pub fn groups(&self) -> &[&'static str] {
        &self.groups
    }

    /// A process stood still.
    pub fn stood_still(&mut self, life: &str, still: Still) {
        self.freezes += 1;
        self.stills.entry(life.to_owned()).or_default().push(still);
    }

    /// A process has ended: it could do nothing after `at`.
    pub fn ended(&mut self, life: &str, at: u64) {
        self.ends.insert(life.to_owned(), at);
    }

    /// The store has lost what it knew.
    pub fn lost(&mut self, loss: Loss) {
        self.losses.push(loss);
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Judges what was told up to `cutoff`; later lines are kept for the next slice, but for those that tell of an end. Every process must have
    /// had the time to tell of everything up to then.
    pub fn slice(&mut self, lines: Vec<Line>, effects: Vec<Effect>, cutoff: u64) -> Vec<Violation> {
        self.pending.extend(lines);
        let is_due = |line: &Line| line.at <= cutoff || matches!(line.event.as_str(), "lost" | "end" | "gone");
        let (mut due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending).into_iter().partition(is_due);
        self.pending = later;
        due.sort_by_key(|line| line.at);
        for line in due.iter().filter(|line| line.event == "stall") {
            let still = Still {
                from: line.from,
                until: line.until,
            };
            self.stills.entry(line.life.clone()).or_default().push(still);
        }
        for line in &due {
            match line.event.as_str() {
                "elected" => self.elected(line),
                // It began after the cut, and is judged with its beginning.
                "lost" | "end" | "gone" if line.at > cutoff && !self.knows(line) => self.pending.push(line.clone()),
                "lost" => self.lose(line),
                "seen" => self.saw(line),
                "start" => self.started(line),
                "end" | "gone" => self.body_ended(line),
                "decided" => {
                    if let Some(spec) = self.spec(&line.job).filter(|spec| spec.unled) {
                        self.decided.entry((spec.name, line.tick)).or_insert(line.at);
                    }
                }
                "hole" | "panic" | "error" => {
                    self.find("the fleet is well", line.at, format!("{}: {}", line.life, line.text));
                }
                _ => {}
            }
        }
        self.counts.checks += 1;
        self.judge_beliefs();
        self.judge_bodies();
        self.judge_effects(effects);
        self.judge_cuts();
        self.forget(cutoff);
        std::mem::take(&mut self.found)
    }

    /// What was found outside a slice, by [`judge_ledger`](Self::judge_ledger) and [`check`](Self::check).
    pub fn findings(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.found)
    }

    /// One more check, made by the caller.
    pub fn check(&mut self, holds: bool, rule: &'static str, at: u64, text: impl FnOnce() -> String) {
        self.counts.checks += 1;
        if !holds {
            self.find(rule, at, text());
        }
    }

    /// Whether the beginning of what this line ends was told.
    fn knows(&self, line: &Line) -> bool {
        if line.event == "lost" {
            let of =
                |belief: &Belief| belief.life == line.life && belief.group == line.group && belief.term == line.term;
            self.beliefs.iter().any(of)
        } else {
            self.bodies
                .iter()
                .any(|body| body.life == line.life && body.fence == line.fence)
        }
    }

    /// Whether the store may have forgotten one claim of a job when it granted another.
    fn is_forgotten(&self, spec: JobSpec, first: u64, second: u64) -> bool {
        spec.unled && self.losses.iter().any(|loss| loss.parts(first, second))
    }

    fn find(&mut self, rule: &'static str, at: u64, text: String) {
        let violation = Violation { rule, at, text };
        if self.told.insert(violation.clone()) {
            self.found.push(violation);
        }
    }

    fn spec(&self, job: &str) -> Option<JobSpec> {
        self.jobs.iter().find(|spec| spec.name == job).copied()
    }

    /// The earliest instant at which the step that ended with this look at the clock can have begun.
    fn effective(&self, life: &str, at: u64) -> u64 {
        let stills = self.stills.get(life).map_or(&[][..], Vec::as_slice);
        let around = |still: &&Still| still.from <= at && at <= still.until + PREEMPTION;
        let from = stills.iter().filter(around).map(|still| still.from).min();
        from.unwrap_or(at).saturating_sub(PREEMPTION)
    }

    /// A stop of a process falls between two neighbouring instructions now and then, and not each time: a guard that did not look again
    /// after a stop would let hundreds pass.
    fn judge_cuts(&mut self) {
        let most = 2 + self.freezes / 20;
        let (cuts, freezes) = (self.counts.cuts, self.freezes);
        self.check(cuts <= most, "hardly any step is cut in two by a stop", 0, || {
            format!("{cuts} starts or polls after {freezes} stops, at most {most}")
        });
    }

    fn forget(&mut self, now: u64) {
        let old = now.saturating_sub(MEMORY);
        self.beliefs.retain(|belief| belief.until > old);
        self.seen.retain(|seen| seen.until > old);
        self.bodies.retain(|body| body.until > old);
        for stills in self.stills.values_mut() {
            stills.retain(|still| still.until > old);
        }
        let ends = &self.ends;
        self.stills
            .retain(|life, stills| !stills.is_empty() || !ends.contains_key(life));
        self.ends.retain(|_, at| *at > old);
        self.numbers.forget(old);
        let newest = self.ledgers.newest();
        self.numbers.forget_ticks(newest - TICKS);
        self.decided.retain(|(_, tick), _| *tick > newest - TICKS);
        self.losses.retain(|loss| loss.until > old);
        self.told.clear();
    }
}
