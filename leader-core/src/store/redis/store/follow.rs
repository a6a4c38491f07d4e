//! What is asked under a name that a job no longer has: the answer tells the other, and it is asked under that.

use ::redis::Cmd;

use super::{CHUNK, RedisStore};
use crate::names::{GroupName, JobName};
use crate::store::error::StoreError;
use crate::store::ledger::JobLedger;
use crate::store::redis::answer::{self, Told};
use crate::store::redis::{calls, coverage};
use crate::store::request::{End, SettleBatch, Settled, TakeOver, TakenOver};

/// How often a name is followed to another.
const HOPS: usize = 16;

fn circle() -> StoreError {
    answer::odd("circle of names")
}

impl RedisStore {
    pub(super) async fn take_over_as_kept(&self, mut request: TakeOver) -> Result<TakenOver, StoreError> {
        for _ in 0..HOPS {
            let value = self.ask_one(coverage::take_over(&self.keys, &request)).await?;
            let moved = coverage::moved(&value)?;
            if moved.is_empty() {
                return answer::taken_over(value, &request.jobs);
            }
            for job in &mut request.jobs {
                if let Some(kept_as) = moved.get(job) {
                    *job = kept_as.clone();
                }
            }
        }
        Err(circle())
    }

    pub(super) async fn settle_all(&self, batches: Vec<SettleBatch>) -> Vec<Result<Vec<Settled>, StoreError>> {
        let mut answers = Vec::new();
        for (batch, told) in batches.iter().zip(self.settle_once(&batches).await) {
            answers.push(match told {
                Ok(told) => self.follow(batch, told).await,
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn follow(&self, batch: &SettleBatch, told: Vec<Told>) -> Result<Vec<Settled>, StoreError> {
        let mut settled = Vec::new();
        for (end, told) in batch.ends.iter().zip(told) {
            settled.push(match told {
                Told::Settled(settled) => settled,
                Told::Moved(job) => self.settle_as(&batch.group, end, job).await?,
            });
        }
        Ok(settled)
    }

    async fn settle_as(&self, group: &GroupName, end: &End, mut job: JobName) -> Result<Settled, StoreError> {
        for _ in 0..HOPS {
            let batch = SettleBatch {
                group: group.clone(),
                ends: vec![End { job, ..end.clone() }],
            };
            let told = self.settle_once(&[batch]).await.pop();
            match told.ok_or_else(StoreError::protocol)??.pop() {
                Some(Told::Settled(settled)) => return Ok(settled),
                Some(Told::Moved(other)) => job = other,
                None => return Err(StoreError::protocol()),
            }
        }
        // No run is found in a circle of names; what ends beside it is settled.
        Ok(Settled::Fenced)
    }

    async fn settle_once(&self, batches: &[SettleBatch]) -> Vec<Result<Vec<Told>, StoreError>> {
        let mut sizes = Vec::new();
        let mut commands = Vec::new();
        for batch in batches {
            let chunks: Vec<_> = batch.ends.chunks(CHUNK).collect();
            sizes.push(chunks.iter().map(|chunk| chunk.len()).collect::<Vec<_>>());
            commands.extend(
                chunks
                    .iter()
                    .map(|chunk| calls::settle(&self.keys, &self.keep, &batch.group, chunk)),
            );
        }
        let mut replies = self.query(&self.commands, commands).await.into_iter();
        let mut join = |sizes: &Vec<usize>| {
            let parts: Vec<_> = sizes.iter().zip(replies.by_ref()).collect();
            let mut all = Vec::new();
            for (size, reply) in parts {
                all.extend(answer::settled(reply?, *size)?);
            }
            Ok(all)
        };
        sizes.iter().map(&mut join).collect()
    }

    pub(super) async fn ledger_as_kept(&self, group: &GroupName, job: &JobName) -> Result<JobLedger, StoreError> {
        let mut job = job.clone();
        // Asked once more than it is followed.
        for _ in 0..=HOPS {
            let mut replies = self.query(&self.commands, self.reads(group, &job)).await.into_iter();
            let mut next = || replies.next().unwrap_or_else(|| Err(StoreError::protocol()));
            let (hash, ran, passed) = (next()?, next()?, next()?);
            // What cannot be read of the coverage is of no job's own.
            let told = next().ok().and_then(|value| answer::text(value).ok());
            let moved = next().ok().and_then(|value| answer::text(value).ok());
            if let Some(other) = moved.and_then(|name| JobName::new(name).ok()) {
                job = other;
                continue;
            }
            let mut ledger = answer::ledger(hash, ran, passed)?;
            ledger.absences = coverage::absences(&told.unwrap_or_default());
            return Ok(ledger);
        }
        Err(circle())
    }

    fn reads(&self, group: &GroupName, job: &JobName) -> Vec<Cmd> {
        let keys = self.keys.jobs(group);
        let mut all = ::redis::cmd("HGETALL");
        all.arg(keys.job(job));
        let list = |key: String| {
            let mut range = ::redis::cmd("LRANGE");
            range.arg(key).arg(0).arg(-1);
            range
        };
        let field = |key: String, field: &str| {
            let mut get = ::redis::cmd("HGET");
            get.arg(key).arg(field);
            get
        };
        vec![
            all,
            list(keys.ran(job)),
            list(keys.passed(job)),
            field(self.keys.coverage(group), job.as_str()),
            field(keys.job(job), "moved"),
        ]
    }
}
