//! The operations, each one round trip of one pipeline.

mod follow;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, ConnectionInfo, Pipeline, Value};

use super::answer;
use super::calls::{self, millis};
use super::connection::Connection;
use super::control;
use super::coverage;
use super::findings;
use super::keys::Keys;
use super::made;
use super::script::{self, Call};
use super::subscription::Subscription;
use crate::names::{GroupName, Holder, JobName, Namespace};
use crate::store::control::{ActRequest, Acted, GroupControl};
use crate::store::coverage::Cover;
use crate::store::ledger::{JobLedger, Keep};
use crate::store::made::{MadeList, MadeReply, MakeRequest};
use crate::store::request::{
    Ask, AskReply, Asked, Beats, Campaign, Campaigned, ClaimBatch, Claimed, Release, Renewal, Replaced, SettleBatch,
    Settled, TakeOver, TakenOver, Told,
};
use crate::store::roster::{Enrolled, Entry, Roster};
use crate::store::{Answer, Answers, Ears, Finding, FindingKind, Store, StoreError};

/// How many leases, claims or ends one script takes: a script of 128 holds the server up for about a millisecond.
const CHUNK: usize = 128;

/// The store on one Redis or Valkey server.
#[derive(Debug)]
pub struct RedisStore {
    info: ConnectionInfo,
    address: String,
    pub(super) keys: Keys,
    /// Campaigns, renewals, releases: nothing slow may stand before a renewal.
    lease: Connection,
    /// Everything else.
    commands: Connection,
    /// What is asked about tasks, which may be much.
    #[cfg(feature = "tasks")]
    pub(super) tasks: Connection,
    /// A worker's wait, which stops whatever stands behind it.
    #[cfg(feature = "tasks")]
    pub(super) waiting: Connection,
    pub(super) bound: Duration,
    keep: Keep,
}

impl RedisStore {
    /// A store that connects when it is first asked. `bound` is the longest that any answer takes.
    #[must_use]
    pub fn new(info: &ConnectionInfo, namespace: &Namespace, bound: Duration) -> Self {
        Self {
            address: info.addr().to_string(),
            keys: Keys::new(namespace),
            lease: Connection::new(info, "lease"),
            commands: Connection::new(info, "commands"),
            #[cfg(feature = "tasks")]
            tasks: Connection::new(info, "tasks"),
            #[cfg(feature = "tasks")]
            waiting: Connection::new(info, "waiting"),
            info: info.clone(),
            bound,
            keep: Keep::default(),
        }
    }

    /// The same store, which keeps so many records of each job that it writes of.
    #[must_use]
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    pub(super) async fn query(&self, connection: &Connection, commands: Vec<Cmd>) -> Vec<Result<Value, StoreError>> {
        let count = commands.len();
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        match connection.query(&pipeline, self.bound).await {
            Ok(replies) if replies.len() == count => replies,
            Ok(_) => vec![Err(StoreError::protocol()); count],
            Err(error) => vec![Err(error); count],
        }
    }

    pub(super) async fn ask_one(&self, command: Cmd) -> Result<Value, StoreError> {
        let mut replies = self.query(&self.commands, vec![command]).await;
        replies.pop().unwrap_or_else(|| Err(StoreError::protocol()))
    }

    fn roster_call(&self) -> Call {
        self.keys.roster().into_iter().fold(Call::default(), Call::key)
    }
}

impl Store for RedisStore {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn inspect(&self) -> Answer<'_, Vec<Finding>> {
        Box::pin(async move {
            match self.ask_one(::redis::cmd("INFO")).await {
                Ok(info) => answer::text(info).map(|info| findings::judge(&info)),
                Err(error) if error.is_of_the_question() => Ok(vec![Finding {
                    kind: FindingKind::Unknown,
                    text: "the server does not answer `INFO`, so that its version and settings could not be checked, and every hand-over \
                           takes more than a TTL because nobody can tell that the server was not just restarted: allow this user \
                           the command `INFO`"
                        .to_owned(),
                }]),
                Err(error) => Err(error),
            }
        })
    }

    fn campaign(&self, requests: Vec<Campaign>) -> Answers<'_, Campaigned> {
        Box::pin(async move {
            let call = |requests: &[Campaign]| calls::campaign(&self.keys, requests);
            let chunks = || requests.chunks(CHUNK);
            let replies = self.query(&self.lease, chunks().map(call).collect()).await;
            let mut answers = Vec::with_capacity(requests.len());
            for (chunk, reply) in chunks().zip(replies) {
                let refused = reply.as_ref().err().and_then(StoreError::code);
                if chunk.len() > 1 && matches!(refused, Some("CROSSSLOT" | "NOPERM")) {
                    // Where one of them may not be asked for, others may.
                    let each = chunk.iter().map(std::slice::from_ref).map(call).collect();
                    let replies = self.query(&self.lease, each).await;
                    answers.extend(replies.into_iter().flat_map(|reply| answer::campaigned(reply, 1)));
                } else {
                    answers.extend(answer::campaigned(reply, chunk.len()));
                }
            }
            answers
        })
    }

    fn renew(&self, renewals: Vec<Renewal>, beats: Vec<Beats>) -> Pin<Box<dyn Future<Output = Told> + Send + '_>> {
        Box::pin(async move {
            let renew = |renewal: &Renewal| {
                Call::default()
                    .key(self.keys.lease(&renewal.group))
                    .key(self.keys.state(&renewal.group))
                    .arg(&renewal.holder)
                    .arg(renewal.term)
                    .arg(millis(renewal.ttl))
                    .eval(script::RENEW)
            };
            let beat = |beats: &Beats| {
                let mut call = Call::default().key(self.keys.beats(&beats.group));
                for fence in &beats.fences {
                    call.push(fence);
                }
                call.eval(script::BEAT)
            };
            // Renewals first: they are what time is short for.
            let commands = renewals.iter().map(renew).chain(beats.iter().map(beat)).collect();
            let mut replies = self.query(&self.lease, commands).await;
            let (mut replaced, mut gone, mut beaten) = (Vec::new(), Vec::new(), Vec::new());
            for (beats, reply) in beats.iter().zip(replies.drain(renewals.len()..)) {
                let answer = reply.and_then(answer::beaten);
                beaten.push(answer.is_ok());
                let run = |fence| Replaced {
                    group: beats.group.clone(),
                    fence,
                };
                match answer {
                    Ok((to_end, others)) => {
                        replaced.extend(to_end.into_iter().map(run));
                        gone.extend(others.into_iter().map(run));
                    }
                    Err(error) => tracing::debug!(%error, "heartbeats of runs were not taken"),
                }
            }
            let renewed = replies.into_iter().map(|reply| reply.and_then(answer::renewed));
            Told {
                renewed: renewed.collect(),
                replaced,
                beaten,
                gone,
            }
        })
    }

    fn release(&self, request: Release) -> Answer<'_, ()> {
        Box::pin(async move {
            let since = request.draining_since.map(|at| at.as_millisecond().to_string());
            let call = Call::default()
                .key(self.keys.lease(&request.group))
                .key(self.keys.state(&request.group))
                .arg(&request.holder)
                .arg(request.term)
                .arg(since.unwrap_or_default())
                .arg(self.keys.channel())
                .arg(&request.group)
                .eval(script::RELEASE);
            let mut replies = self.query(&self.lease, vec![call]).await;
            replies.pop().unwrap_or_else(|| Err(StoreError::protocol())).map(drop)
        })
    }

    fn ask(&self, request: Ask) -> Answer<'_, AskReply> {
        Box::pin(async move {
            let Asked { by, reason } = &request.asked;
            let call = Call::default()
                .key(self.keys.lease(&request.group))
                .key(self.keys.state(&request.group))
                .arg(request.term.unwrap_or(0))
                .arg(millis(request.ends_after))
                .arg(format_args!("{by} {reason}"))
                .arg(self.keys.channel())
                .arg(&request.group);
            answer::asked(self.ask_one(call.eval(script::ASK)).await?)
        })
    }

    fn take_over(&self, request: TakeOver) -> Answer<'_, TakenOver> {
        Box::pin(self.take_over_as_kept(request))
    }

    fn cover(&self, request: Cover) -> Answer<'_, bool> {
        Box::pin(async move {
            let answer = answer::text(self.ask_one(coverage::cover(&self.keys, &request)).await?)?;
            Ok(answer == "yours")
        })
    }

    fn claim(&self, batches: Vec<ClaimBatch>) -> Answers<'_, Claimed> {
        Box::pin(async move {
            let chunks = |batch: &ClaimBatch| -> Vec<(usize, Cmd)> {
                let chunk = |claims: &[crate::store::Claim]| {
                    (claims.len(), calls::claim(&self.keys, &self.keep, batch, claims))
                };
                if batch.claims.is_empty() {
                    // Whose the lease is, is told all the same.
                    return vec![chunk(&[])];
                }
                batch.claims.chunks(CHUNK).map(chunk).collect()
            };
            let calls: Vec<Vec<(usize, Cmd)>> = batches.iter().map(chunks).collect();
            let sizes: Vec<Vec<usize>> = calls
                .iter()
                .map(|calls| calls.iter().map(|call| call.0).collect())
                .collect();
            let commands = calls.into_iter().flatten().map(|(_, call)| call).collect();
            let mut replies = self.query(&self.commands, commands).await.into_iter();
            let mut join = |sizes: &Vec<usize>| {
                // A batch is taken as a whole: where one part has no answer the batch is asked again.
                let parts: Vec<_> = sizes.iter().zip(replies.by_ref()).collect();
                let mut all = Vec::new();
                for (size, reply) in parts {
                    match answer::claimed(reply?, *size)? {
                        Claimed::Yours(some) => all.extend(some),
                        Claimed::NotYours => return Ok(Claimed::NotYours),
                    }
                }
                Ok(Claimed::Yours(all))
            };
            sizes.iter().map(&mut join).collect()
        })
    }

    fn settle(&self, batches: Vec<SettleBatch>) -> Answers<'_, Vec<Settled>> {
        Box::pin(self.settle_all(batches))
    }

    fn ledger<'a>(&'a self, group: &'a GroupName, job: &'a JobName) -> Answer<'a, JobLedger> {
        Box::pin(self.ledger_as_kept(group, job))
    }

    fn act(&self, request: ActRequest) -> Answer<'_, Acted> {
        Box::pin(async move {
            let value = self.ask_one(control::act(&self.keys, &request)).await?;
            control::acted(value)
        })
    }

    fn control<'a>(&'a self, group: &'a GroupName) -> Answer<'a, GroupControl> {
        Box::pin(async move { control::controlled(self.ask_one(control::control(&self.keys, group)).await?) })
    }

    fn make(&self, request: MakeRequest) -> Answer<'_, MadeReply> {
        Box::pin(async move { made::reply(self.ask_one(made::make(&self.keys, &self.keep, &request)).await?) })
    }

    fn made<'a>(&'a self, group: &'a GroupName, after: u64) -> Answer<'a, MadeList> {
        Box::pin(async move { made::listed(self.ask_one(made::list(&self.keys, group, after)).await?) })
    }

    fn enrol(&self, entry: Entry) -> Answer<'_, Enrolled> {
        Box::pin(async move {
            let call = self
                .roster_call()
                .arg(&entry.holder)
                .arg(&entry.service)
                .arg(millis(entry.ttl))
                .arg(entry.digest)
                .arg(&entry.beat)
                .arg(entry.introduction.as_deref().unwrap_or_default());
            answer::enrolled(self.ask_one(call.eval(script::ENROL)).await?)
        })
    }

    fn leave(&self, holder: Holder) -> Answer<'_, ()> {
        Box::pin(async move {
            let call = self.roster_call().arg(&holder);
            self.ask_one(call.eval(script::LEAVE)).await.map(drop)
        })
    }

    fn roster(&self) -> Answer<'_, Roster> {
        Box::pin(async move {
            let call = self.roster_call();
            answer::roster(self.ask_one(call.eval(script::ROSTER)).await?)
        })
    }

    #[cfg(feature = "tasks")]
    fn tasks(&self) -> &dyn crate::store::TaskStore {
        self
    }

    fn listen(&self, ears: Arc<dyn Ears>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let (gap, deaf) = (Arc::clone(&ears), Arc::clone(&ears));
            let told = move |message: String| {
                // Anything else is somebody else's message, or one of a newer version.
                let words: Vec<_> = message.split(' ').collect();
                if let [kind, group, term] = words.as_slice()
                    && let Ok(term) = term.parse()
                {
                    match *kind {
                        "released" => ears.released(group, term),
                        "asked" => ears.asked(group, term),
                        "controlled" => ears.controlled(group, term),
                        #[cfg(feature = "tasks")]
                        "due" => {
                            let millis = i64::try_from(term).unwrap_or(i64::MAX);
                            if let Ok(at) = jiff::Timestamp::from_millisecond(millis) {
                                ears.due(group, at);
                            }
                        }
                        _ => {}
                    }
                }
            };
            let gap = move || gap.gap();
            let channel = self.keys.channel();
            let advice = format!("allow this user the channel `{channel}`");
            let refused = move |error: StoreError| deaf.deaf(error.with_advice(advice.clone()));
            match Subscription::run(self.info.clone(), channel, told, gap, refused).await {}
        })
    }
}
