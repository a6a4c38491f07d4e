//! The ledger, as the store keeps it: every due tick has one outcome, and bodies and ledger tell the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{Audit, JobSpec, Loss};

/// What the store keeps of one job, read in one step.
#[derive(Clone, Debug, Default)]
pub struct JobState {
    /// Just before it was read, as lines have it.
    pub at: u64,
    /// The server's clock, in milliseconds.
    pub now: i64,
    /// The job's hash.
    pub fields: BTreeMap<String, String>,
    /// The records of its runs.
    pub ran: Vec<String>,
    /// The records of its other ticks.
    pub passed: Vec<String>,
}

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;
/// How much earlier than its tick a body may seem to begin: the server's clock is read between two looks at ours.
const EARLY: u64 = 100_000_000;
/// How late a body is that nothing has held up.
pub(super) const IN_TIME: u64 = 1_000_000_000;

/// What is not decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending(pub String);

/// One record.
#[derive(Clone, Debug)]
struct Record {
    first: i64,
    last: i64,
    count: i64,
    outcome: String,
    scheduled: bool,
    fence: u64,
    tries: u32,
}

impl Record {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split('|').collect();
        let [first, last, count, outcome, origin, fence, _, _, _, _, .., tries] = words.as_slice() else {
            return None;
        };
        Some(Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            count: count.parse().ok()?,
            outcome: (*outcome).to_owned(),
            scheduled: *origin == "schedule",
            fence: fence.parse().ok()?,
            tries: tries.parse().ok()?,
        })
    }
}

impl JobState {
    /// Whether there is anything.
    fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn number(&self, field: &str) -> Option<i64> {
        self.fields.get(field)?.parse().ok()
    }

    /// Since when the job has been known. A job without a leader, whose state was lost while it was claimed, has been since its schedule was
    /// written again.
    fn since(&self) -> Option<i64> {
        let written = self
            .fields
            .get("schedule_about")
            .and_then(|about| about.split('|').next());
        self.number("since").or_else(|| written?.parse().ok())
    }

    /// The ticks of the schedule that have begun a run that has not ended, or wait.
    fn pending(&self) -> Vec<i64> {
        let open = self.fields.get("open").map_or("", String::as_str);
        let runs = open.split_whitespace().filter_map(|run| {
            let mut words = run.split('|');
            let tick = words.next()?.parse().ok()?;
            (words.next()? == "schedule").then_some(tick)
        });
        runs.chain(self.number("waiting")).collect()
    }

    fn outcomes(&self) -> BTreeMap<&str, i64> {
        let counted = self.fields.iter().filter_map(|(field, value)| {
            let outcome = field.strip_prefix("n:")?;
            Some((outcome, value.parse().ok()?))
        });
        counted.collect()
    }

    /// What of the ticks up to `until` is not decided yet.
    ///
    /// # Errors
    /// The first such thing, in words.
    pub fn settled(&self, spec: JobSpec, until: i64) -> Result<(), Pending> {
        let Some(cursor) = self.number("cursor") else {
            return Err(Pending(format!("`{}` has no cursor", spec.name)));
        };
        // A job that has begun after that owes nothing.
        let last = until.div_euclid(spec.period) * spec.period;
        if cursor < last {
            return Err(Pending(format!(
                "`{}` is decided up to {cursor}, and {last} was due",
                spec.name
            )));
        }
        match self.pending().into_iter().find(|tick| *tick <= until) {
            Some(tick) => Err(Pending(format!("`{}` has {tick} open: {:?}", spec.name, self.fields))),
            None => Ok(()),
        }
    }
}

/// What was read of each job last.
#[derive(Debug, Default)]
pub(super) struct Ledgers(BTreeMap<String, Last>);

#[derive(Clone, Debug)]
struct Last {
    /// When it was read.
    at: u64,
    since: i64,
    cursor: i64,
    now: i64,
    outcomes: BTreeMap<String, i64>,
    pending: Vec<i64>,
    /// How many ticks since its beginning were decided in an earlier era only.
    forgotten: i64,
}

/// What there is between two looks at one job.
#[derive(Debug)]
struct Look<'a> {
    /// Up to where all was decided at the last look, or since when the job has been known.
    since: i64,
    cursor: i64,
    /// When the last look was, if that was in the same era.
    read_before: Option<u64>,
    pending: &'a [i64],
}

impl Ledgers {
    /// The newest reading of the server's clock, in milliseconds.
    pub(super) fn newest(&self) -> i64 {
        self.0.values().map(|last| last.now).max().unwrap_or(0)
    }
}

/// How many ticks lie in (after, until].
fn ticks(period: i64, after: i64, until: i64) -> i64 {
    until.div_euclid(period) - after.div_euclid(period)
}

impl Audit {
    /// Judges what the store keeps of a job, at the end of a slice: all that was told before has been given to [`slice`](Self::slice).
    pub fn judge_ledger(&mut self, spec: JobSpec, state: &JobState) {
        let job = spec.name;
        self.counts.checks += 6;
        // An era later.
        let era_ended = |last: &Last| {
            self.losses
                .iter()
                .any(|loss| last.at < loss.until && loss.from < state.at)
        };
        let known = self.ledgers.0.get(job).filter(|last| !era_ended(last)).cloned();
        if let Some(last) = known.filter(|last| state.is_empty() || state.since() != Some(last.since)) {
            let text = format!("`{job}` began at {}, and now it has {:?}", last.since, state.fields);
            self.find("a job begins once", 0, text);
        }
        if state.is_empty() {
            // Just lost, and nobody has begun anew: there is nothing that could be wrong.
            return;
        }
        let (Some(since), Some(cursor)) = (state.since(), state.number("cursor")) else {
            self.find(
                "due = outcomes + pending",
                0,
                format!("`{job}` has no beginning or no cursor: {:?}", state.fields),
            );
            return;
        };
        let (outcomes, pending) = (state.outcomes(), state.pending());
        let last = self.ledgers.0.get(job).filter(|last| last.since == since).cloned();
        let before = last.as_ref().map_or(since, |last| last.cursor);
        self.count_outcomes(spec, &outcomes, last.as_ref(), ticks(spec.period, before, cursor));
        if spec.owes_all {
            let missed: Vec<_> = outcomes
                .iter()
                .filter(|(outcome, _)| outcome.starts_with("missed"))
                .collect();
            if !missed.is_empty() {
                self.find("what is owed is not missed", 0, format!("`{job}`: {missed:?}"));
            }
        }
        let read_before = last.as_ref().map(|last| last.at);
        let counted = last.as_ref().map(|last| last.outcomes.clone());
        let (open_before, forgotten) = last.map(|last| (last.pending, last.forgotten)).unwrap_or_default();
        let is_new = |tick: i64| before < tick && tick <= cursor || open_before.contains(&tick);
        let look = Look {
            since: before,
            cursor,
            read_before,
            pending: &pending,
        };
        let forgotten = forgotten + self.judge_records(spec, state, &look, is_new, counted.as_ref());
        let due = ticks(spec.period, since, cursor) - forgotten;
        let decided: i64 = outcomes.values().sum();
        if decided + i64::try_from(pending.len()).unwrap_or(0) != due {
            let text = format!(
                "`{job}`: {due} due, {decided} decided, pending {pending:?}: {:?}",
                state.fields
            );
            self.find("due = outcomes + pending", 0, text);
        }
        let outcomes = outcomes
            .into_iter()
            .map(|(outcome, count)| (outcome.to_owned(), count))
            .collect();
        let last = Last {
            at: state.at,
            since,
            cursor,
            now: state.now,
            outcomes,
            pending,
            forgotten,
        };
        self.ledgers.0.insert(job.to_owned(), last);
    }

    fn count_outcomes(&mut self, spec: JobSpec, now: &BTreeMap<&str, i64>, last: Option<&Last>, due: i64) {
        self.counts.due += u64::try_from(due).unwrap_or(0);
        let of_job = self.counts.of_jobs.entry(spec.name).or_default();
        of_job.0 += u64::try_from(due).unwrap_or(0);
        for (outcome, count) in now {
            let before = last.and_then(|last| last.outcomes.get(*outcome)).copied().unwrap_or(0);
            if *count < before {
                let text = format!("`{}`: {outcome} from {before} to {count}", spec.name);
                self.find("counts never fall", 0, text);
            }
            let more = u64::try_from(count - before).unwrap_or(0);
            *self.counts.outcomes.entry((*outcome).to_owned()).or_default() += more;
            let of_job = self.counts.of_jobs.entry(spec.name).or_default();
            *of_job.1.entry((*outcome).to_owned()).or_default() += more;
        }
    }

    /// The records of what was decided since the last look: one for each tick, and what the bodies have told. Gives how many have none
    /// because they were decided before the store forgot.
    fn judge_records(
        &mut self,
        spec: JobSpec,
        state: &JobState,
        look: &Look<'_>,
        is_new: impl Fn(i64) -> bool,
        counted: Option<&BTreeMap<String, i64>>,
    ) -> i64 {
        let job = spec.name;
        let (mut forgotten, pending) = (0, look.pending);
        let mut recorded = BTreeMap::<&str, i64>::new();
        let mut decided: BTreeSet<i64> = pending.iter().copied().collect();
        let mut runs = BTreeMap::new();
        for line in state.ran.iter().chain(&state.passed) {
            let Some((record, outcome)) = Record::read(line).zip(line.split('|').nth(3)) else {
                self.find("a record can be read", 0, format!("`{job}`: {line}"));
                continue;
            };
            if !record.scheduled {
                continue;
            }
            let first = (record.first - 1).div_euclid(spec.period);
            let all: Vec<_> = (first + 1..=record.last.div_euclid(spec.period))
                .map(|at| at * spec.period)
                .collect();
            if i64::try_from(all.len()) != Ok(record.count) {
                self.find("a record counts its ticks", 0, format!("`{job}`: {line}"));
            }
            for tick in all {
                if is_new(tick) {
                    *recorded.entry(outcome).or_default() += 1;
                }
                if !decided.insert(tick) {
                    self.find("a tick has one outcome", 0, format!("`{job}`: {tick} has two: {line}"));
                }
            }
            if record.fence != 0 {
                runs.insert(record.last, record);
            }
        }
        // Between two looks at one era, or from its beginning where that is known for certain.
        if counted.is_some() || !spec.unled {
            let mut more = state.outcomes();
            for (outcome, before) in counted.into_iter().flatten() {
                *more.entry(outcome).or_default() -= before;
            }
            more.retain(|_, count| *count != 0);
            if more != recorded {
                let text = format!("`{job}`: counted {more:?}, recorded {recorded:?}");
                self.find("counts and records tell the same", 0, text);
            }
        }
        let mut tick = look.since.div_euclid(spec.period) * spec.period + spec.period;
        while tick <= look.cursor {
            if !decided.contains(&tick) && self.was_decided_before_a_loss(spec, tick, state.at) {
                forgotten += 1;
            } else if !decided.contains(&tick) {
                self.find("a tick has an outcome", 0, format!("`{job}`: {tick} has none"));
            }
            tick += spec.period;
        }
        self.compare(spec, state, &runs, is_new, look);
        forgotten
    }

    /// Whoever heard of a decision goes on behind it, also where the store has forgotten it and has been taught an earlier tick by a late
    /// claim. Where there is a leader, jobs start anew after a loss.
    fn was_decided_before_a_loss(&self, spec: JobSpec, tick: i64, read: u64) -> bool {
        let told = self.decided.get(&(spec.name, tick));
        let mut losses = self.losses.iter().filter(|loss| loss.until <= read);
        spec.unled && told.is_some_and(|told| losses.any(|loss| *told < loss.until + Loss::START))
    }

    /// Every body that was started has its record, and no record says better of a body than it has told itself.
    fn compare(
        &mut self,
        spec: JobSpec,
        state: &JobState,
        runs: &BTreeMap<i64, Record>,
        is_new: impl Fn(i64) -> bool,
        look: &Look<'_>,
    ) {
        let (job, pending, read) = (spec.name, look.pending, state.at);
        let mut results = BTreeMap::new();
        let (mut found, mut early) = (Vec::new(), Vec::new());
        let at_of = |tick: i64| read.saturating_add_signed((tick - state.now).saturating_mul(MS));
        let judged = look.read_before.unwrap_or(0)..read;
        for body in self.bodies.iter().filter(|body| body.job == job) {
            results.insert(body.fence, body.result.clone());
            if judged.contains(&body.from) {
                let due = at_of(body.tick);
                if body.from + EARLY < due {
                    early.push((body.from, format!("due {due}: {body:?}")));
                }
                if body.attempt == 1 {
                    self.counts.in_time[0] += u64::from(body.from < due + IN_TIME);
                    self.counts.in_time[1] += 1;
                }
            }
            // What another era has of it is not in this one's ledger.
            let mut losses = self.losses.iter();
            let is_of_another =
                read < body.from || losses.any(|loss| loss.until <= read && loss.parts(body.from, read));
            // A tick that was decided long ago may not be run now.
            let is_late = look.read_before.is_some_and(|before| before < body.from);
            if (is_late || is_new(body.tick)) && !is_of_another && !pending.contains(&body.tick) {
                match runs.get(&body.tick) {
                    Some(record) if body.attempt <= record.tries && body.fence <= record.fence => {}
                    other => found.push((body.from, format!("the ledger has {other:?} of {body:?}"))),
                }
            }
        }
        for (at, text) in found {
            self.find("the ledger has every body", at, text);
        }
        for (at, text) in early {
            self.find("no body before its tick", at, text);
        }
        for record in runs.values().filter(|record| is_new(record.last)) {
            let told = results.get(&record.fence).map_or("", String::as_str);
            let recorded = record.outcome.strip_prefix("ran.").unwrap_or(&record.outcome);
            if matches!(recorded, "ok" | "error") && told != recorded {
                let text = format!("`{job}`: the body told `{told}`: {record:?}");
                self.find("the ledger has what the body told", 0, text);
            }
            self.counts.unheard += u64::from(told == "ok" && recorded != "ok");
        }
    }
}
