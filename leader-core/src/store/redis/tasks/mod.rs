//! Tasks on Redis: one Lua file for each atomic step, streams with consumer groups for what is due.

mod answers;
mod calls;
mod scripts;

use std::time::Duration;

use ::redis::Value;

use super::answer::{odd, text};
use super::script::Call;
use super::store::RedisStore;
use crate::store::tasks::{
    AwaitTasks, BeatReply, ChangeTask, Changed, Closed, Dispatch, DispatchReply, EnqueueBatch, EnqueueReply,
    FinishBatch, FinishReply, Generations, ListTasks, OpenQueue, Shard, ShardFigures, StoredTask, Take, TakeReply,
    TaskBeats, TaskPage, TaskStore,
};
use crate::store::{Answer, StoreError};
use scripts::Script;

impl RedisStore {
    /// One call of a script, by its digest. Where the server does not know it, nothing has run, and the text is sent.
    async fn run(&self, script: &'static Script, call: Call) -> Result<Value, StoreError> {
        let mut replies = self.query(&self.tasks, vec![call.by_digest(&script.digest)]).await;
        let answer = replies.pop().unwrap_or_else(|| Err(StoreError::protocol()));
        if !matches!(&answer, Err(error) if error.code() == Some("NOSCRIPT")) {
            return answer;
        }
        let mut replies = self.query(&self.tasks, vec![call.eval(script.text)]).await;
        replies.pop().unwrap_or_else(|| Err(StoreError::protocol()))
    }
}

impl TaskStore for RedisStore {
    fn open_queue(&self, request: OpenQueue) -> Answer<'_, Generations> {
        Box::pin(async move {
            let shards = request.shards.map(|shards| shards.to_string()).unwrap_or_default();
            let call = Call::default()
                .key(self.keys.queue(&request.queue))
                .arg("open")
                .arg(shards);
            answers::generations(self.run(&scripts::QUEUE, call).await?)
        })
    }

    fn close_generation(&self, request: Closed) -> Answer<'_, Generations> {
        Box::pin(async move {
            let call = Call::default()
                .key(self.keys.queue(&request.queue))
                .arg("close")
                .arg(request.number);
            answers::generations(self.run(&scripts::QUEUE, call).await?)
        })
    }

    fn enqueue(&self, batch: EnqueueBatch) -> Answer<'_, EnqueueReply> {
        Box::pin(async move {
            let call = calls::enqueue(&self.keys, &batch);
            answers::enqueued(self.run(&scripts::ENQUEUE, call).await?, &batch)
        })
    }

    fn forget_once<'a>(&'a self, shard: &'a Shard, keys: Vec<String>) -> Answer<'a, ()> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(());
            }
            let mut command = ::redis::cmd("HDEL");
            command.arg(self.keys.of_tasks(shard, "once")).arg(keys);
            self.ask_one(command).await.map(drop)
        })
    }

    fn unique<'a>(&'a self, shard: &'a Shard, unique: &'a str) -> Answer<'a, Option<String>> {
        Box::pin(async move {
            let mut command = ::redis::cmd("HGET");
            command.arg(self.keys.of_tasks(shard, "unique")).arg(unique);
            match self.ask_one(command).await? {
                Value::Nil => Ok(None),
                key => text(key).map(Some),
            }
        })
    }

    fn dispatch(&self, request: Dispatch) -> Answer<'_, DispatchReply> {
        Box::pin(async move {
            let call = calls::dispatch(&self.keys, &request);
            answers::dispatched(self.run(&scripts::DISPATCH, call).await?)
        })
    }

    fn take(&self, request: Take) -> Answer<'_, TakeReply> {
        Box::pin(async move {
            let call = calls::take(&self.keys, &request);
            answers::taken(self.run(&scripts::TAKE, call).await?)
        })
    }

    fn await_tasks(&self, request: AwaitTasks) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut command = ::redis::cmd("BLPOP");
            for shard in &request.shards {
                for task in &request.tasks {
                    command.arg(self.keys.of_tasks(shard, &format!("bell:{task}")));
                }
            }
            // Whole milliseconds; 0 would be for ever.
            let bound = request.bound.max(Duration::from_millis(1));
            command.arg(format!("{:.3}", bound.as_secs_f64()));
            let mut pipeline = ::redis::Pipeline::with_capacity(1);
            pipeline.add_command(command);
            let mut replies = self.waiting.query(&pipeline, bound + self.bound).await?;
            replies.pop().unwrap_or_else(|| Err(odd("answer to a wait"))).map(drop)
        })
    }

    fn beat_tasks(&self, request: TaskBeats) -> Answer<'_, Vec<BeatReply>> {
        Box::pin(async move {
            let mut told = Vec::with_capacity(request.attempts.len());
            for some in request.attempts.chunks(calls::MOST) {
                let call = calls::beat(&self.keys, &request.shard, some);
                told.extend(answers::beaten(self.run(&scripts::BEAT, call).await?, some.len())?);
            }
            Ok(told)
        })
    }

    fn finish(&self, batch: FinishBatch) -> Answer<'_, Vec<FinishReply>> {
        Box::pin(async move {
            let mut told = Vec::with_capacity(batch.ends.len());
            for some in batch.ends.chunks(calls::MOST) {
                let call = calls::finish(&self.keys, &batch, some);
                told.extend(answers::finished(self.run(&scripts::FINISH, call).await?, some.len())?);
            }
            Ok(told)
        })
    }

    fn change_task(&self, request: ChangeTask) -> Answer<'_, Changed> {
        Box::pin(async move {
            let call = calls::change(&self.keys, &request);
            answers::changed(self.run(&scripts::CHANGE, call).await?)
        })
    }

    fn task<'a>(&'a self, shard: &'a Shard, key: &'a str) -> Answer<'a, Option<StoredTask>> {
        Box::pin(async move {
            let keys = [key.to_owned()];
            let call = calls::read(&self.keys, shard, true, &keys);
            let told = answers::read(self.run(&scripts::TASK, call).await?, &keys)?;
            Ok(told.into_iter().next().flatten())
        })
    }

    fn list_tasks(&self, request: ListTasks) -> Answer<'_, TaskPage> {
        Box::pin(async move {
            let call = calls::list(&self.keys, &request);
            let (next, keys) = answers::listed(self.run(&scripts::LIST, call).await?)?;
            let mut tasks = Vec::with_capacity(keys.len());
            for some in keys.chunks(calls::MOST) {
                let call = calls::read(&self.keys, &request.shard, false, some);
                tasks.extend(
                    answers::read(self.run(&scripts::TASK, call).await?, some)?
                        .into_iter()
                        .flatten(),
                );
            }
            // They may have moved since they were named.
            tasks.retain(|task: &StoredTask| {
                task.status == request.status
                    && request.task.as_ref().is_none_or(|name| *name == task.lane.task)
                    && request.due_before.is_none_or(|before| task.due < before)
            });
            Ok(TaskPage { tasks, next })
        })
    }

    fn task_figures<'a>(&'a self, shard: &'a Shard) -> Answer<'a, ShardFigures> {
        Box::pin(async move {
            let call = Call::default().key(self.keys.of_tasks(shard, "tasks"));
            answers::figures(self.run(&scripts::FIGURES, call).await?)
        })
    }
}
