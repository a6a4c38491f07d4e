//! A group of its own on one of the stores, and short words for what is asked of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::{
    Beats, Campaign, Campaigned, Claim, ClaimBatch, ClaimReply, Claimed, Cover, End, JobLedger, Overlap, Passed,
    PassedAs, RedisStore, Release, Renewal, Renewed, Replaced, SettleBatch, Settled, Store, TakeOver, TakenOver, Told,
    Verdict, Want, Writer, in_namespace, keeping,
};
use leader_core::{Embedded, GroupName, Holder, InstanceId, JobName, Keep, Namespace, Ran};
use leader_tests::RedisServer;
use tokio::sync::Mutex;

/// A lease that outlives the test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The schedule of every job, unless a test says otherwise.
pub(crate) const SCHEDULE: &str = "every 1s";
/// A server counts in whole milliseconds of a clock that is read once for each command.
pub(crate) const COARSE: Duration = Duration::from_millis(5);
/// The bound of one answer, for a machine that does other things too.
pub(crate) const BOUND: Duration = Duration::from_secs(10);

/// Makes a test for each store out of each case.
macro_rules! on_each_store {
    ($($case:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test] async fn $case() { super::$case($crate::bench::Bench::embedded()).await; })*
        }
        mod redis {
            $(#[tokio::test] async fn $case() { super::$case($crate::bench::Bench::redis().await).await; })*
        }
    };
}

/// One group in a namespace of its own.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) namespace: Namespace,
    pub(crate) group: GroupName,
    pub(crate) server: Option<Arc<RedisServer>>,
}

/// The server that the tests of this process share while one of them runs.
static SERVER: Mutex<Weak<RedisServer>> = Mutex::const_new(Weak::new());

pub(crate) async fn shared_server() -> Arc<RedisServer> {
    let mut shared = SERVER.lock().await;
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(RedisServer::start().await);
    *shared = Arc::downgrade(&server);
    server
}

fn fresh_namespace() -> Namespace {
    static LAST: AtomicU64 = AtomicU64::new(0);
    Namespace::new(format!("case-{}", LAST.fetch_add(1, Ordering::Relaxed))).unwrap()
}

impl Bench {
    /// A leader that has `job` and lacks `other`, which another instance has.
    pub(crate) fn covers_one(&self, holder: &Holder, term: u64) -> Cover {
        Cover {
            group: self.group.clone(),
            holder: holder.clone(),
            term,
            jobs: vec![job("job")],
            elsewhere: Some(vec![job("other")]),
        }
    }

    pub(crate) fn embedded() -> Self {
        let namespace = fresh_namespace();
        let store = Arc::new(in_namespace(Embedded::new(), &namespace));
        Self::on(store, namespace, None)
    }

    /// The same kind of store, on its own group, which keeps so much.
    pub(crate) fn keeping(&self, keep: Keep) -> Self {
        let namespace = fresh_namespace();
        let store: Arc<dyn Store> = match &self.server {
            Some(server) => Arc::new(RedisStore::new(&server.info(), &namespace, BOUND).keeping(keep)),
            None => Arc::new(keeping(in_namespace(Embedded::new(), &namespace), keep)),
        };
        Self::on(store, namespace, self.server.clone())
    }

    /// The same store as another process has it: with connections of its own.
    pub(crate) fn of_another_process(&self) -> Arc<dyn Store> {
        match &self.server {
            Some(server) => Arc::new(RedisStore::new(&server.info(), &self.namespace, BOUND)),
            None => Arc::clone(&self.store),
        }
    }

    pub(crate) async fn redis() -> Self {
        Self::redis_on(shared_server().await)
    }

    pub(crate) fn redis_on(server: Arc<RedisServer>) -> Self {
        let namespace = fresh_namespace();
        let store = Arc::new(RedisStore::new(&server.info(), &namespace, BOUND));
        Self::on(store, namespace, Some(server))
    }

    fn on(store: Arc<dyn Store>, namespace: Namespace, server: Option<Arc<RedisServer>>) -> Self {
        Self {
            store,
            namespace,
            group: group("cleanup"),
            server,
        }
    }

    pub(crate) fn wish(&self, holder: &Holder, ttl: Duration, known: u64) -> Campaign {
        Campaign {
            group: self.group.clone(),
            holder: holder.clone(),
            ttl,
            longest: ttl,
            known,
            first_start: true,
            only_one: false,
            yields: Duration::ZERO,
        }
    }

    pub(crate) async fn campaign(&self, holder: &Holder, known: u64) -> Campaigned {
        self.ask(self.wish(holder, LONG, known)).await
    }

    pub(crate) async fn ask(&self, wish: Campaign) -> Campaigned {
        let mut answers = self.store.campaign(vec![wish]).await;
        assert_eq!(answers.len(), 1);
        answers.pop().unwrap().unwrap()
    }

    /// Campaigns as a candidate does: with what it has learnt.
    pub(crate) async fn acquire_for(&self, holder: &Holder, ttl: Duration) -> u64 {
        let mut known = 0;
        for _ in 0..3 {
            match self.ask(self.wish(holder, ttl, known)).await.verdict {
                Verdict::Acquired { term } => return term,
                Verdict::Stale { term } => known = term,
                other => panic!("not vacant: {other:?}"),
            }
        }
        panic!("stale for ever");
    }

    pub(crate) async fn acquire(&self, holder: &Holder) -> u64 {
        self.acquire_for(holder, LONG).await
    }

    pub(crate) async fn renew_for(&self, holder: &Holder, term: u64, ttl: Duration) -> Renewed {
        let renewal = Renewal {
            group: self.group.clone(),
            holder: holder.clone(),
            term,
            ttl,
        };
        let mut answers = self.store.renew(vec![renewal], Vec::new()).await.renewed;
        assert_eq!(answers.len(), 1);
        answers.pop().unwrap().unwrap()
    }

    pub(crate) async fn renew(&self, holder: &Holder, term: u64) -> Renewed {
        self.renew_for(holder, term, LONG).await
    }

    pub(crate) async fn is_led_by(&self, holder: &Holder, term: u64) -> bool {
        matches!(self.renew(holder, term).await, Renewed::Yes { .. })
    }

    pub(crate) async fn beat(&self, fences: &[u64]) {
        let beats = Beats {
            group: self.group.clone(),
            fences: fences.to_vec(),
        };
        assert!(self.beats(beats).await.is_empty(), "nothing is replaced");
    }

    /// Gives signs of life; the runs that are to end.
    pub(crate) async fn beats(&self, beats: Beats) -> Vec<Replaced> {
        self.told(beats).await.replaced
    }

    /// The same, with everything that is told.
    pub(crate) async fn told(&self, beats: Beats) -> Told {
        let told = self.store.renew(Vec::new(), vec![beats]).await;
        assert!(told.renewed.is_empty());
        assert_eq!(told.beaten, [true]);
        told
    }

    pub(crate) async fn release(&self, holder: &Holder, term: u64, draining_since: Option<Timestamp>) {
        let request = Release {
            group: self.group.clone(),
            holder: holder.clone(),
            term,
            draining_since,
        };
        self.store.release(request).await.unwrap();
    }

    pub(crate) async fn take_over(&self, holder: &Holder, term: u64, jobs: &[&str]) -> TakenOver {
        let request = TakeOver {
            group: self.group.clone(),
            holder: holder.clone(),
            term,
            jobs: jobs.iter().map(|name| job(name)).collect(),
            schedules: jobs.iter().map(|_| SCHEDULE.into()).collect(),
            writer: Writer::default(),
            elsewhere: None,
            was: Vec::new(),
            beside: Vec::new(),
        };
        self.store.take_over(request).await.unwrap()
    }

    /// The cursor of one job, which the holder must lead.
    pub(crate) async fn cursor(&self, holder: &Holder, term: u64, name: &str) -> Timestamp {
        match self.take_over(holder, term, &[name]).await {
            TakenOver::Yours { cursors, .. } => cursors[0],
            TakenOver::NotYours => panic!("not led by {holder}"),
        }
    }

    pub(crate) fn batch(&self, holder: &Holder, term: u64, claims: Vec<Claim>) -> ClaimBatch {
        ClaimBatch {
            group: self.group.clone(),
            holder: holder.clone(),
            term,
            known: 0,
            claiming: claims.iter().map(|claim| claim.number).min().unwrap_or(u64::MAX),
            first: 0,
            silence: LONG,
            patience: LONG,
            connected: Duration::ZERO,
            claims,
            writer: Writer::default(),
        }
    }

    pub(crate) async fn claim_batch(&self, batch: ClaimBatch) -> Claimed {
        let mut answers = self.store.claim(vec![batch]).await;
        assert_eq!(answers.len(), 1);
        answers.pop().unwrap().unwrap()
    }

    pub(crate) async fn claim_all(&self, holder: &Holder, term: u64, claims: Vec<Claim>) -> Vec<ClaimReply> {
        let count = claims.len();
        match self.claim_batch(self.batch(holder, term, claims)).await {
            Claimed::Yours(replies) => {
                assert_eq!(replies.len(), count);
                replies
            }
            Claimed::NotYours => panic!("not led by {holder}"),
        }
    }

    pub(crate) async fn claim(&self, holder: &Holder, term: u64, claim: Claim) -> ClaimReply {
        self.claim_all(holder, term, vec![claim]).await.pop().unwrap()
    }

    /// Claims a run, which must be won.
    pub(crate) async fn win(&self, holder: &Holder, term: u64, claim: Claim) -> u64 {
        match self.claim(holder, term, claim).await {
            ClaimReply::Won { fence } => fence,
            other => panic!("not won: {other:?}"),
        }
    }

    pub(crate) async fn settle_all(&self, ends: Vec<End>) -> Vec<Settled> {
        let batch = SettleBatch {
            group: self.group.clone(),
            ends,
        };
        let mut answers = self.store.settle(vec![batch]).await;
        assert_eq!(answers.len(), 1);
        answers.pop().unwrap().unwrap()
    }

    pub(crate) async fn settle(&self, name: &str, fence: u64, ran: Ran) -> Settled {
        self.settle_all(vec![end(name, fence, ran)]).await.pop().unwrap()
    }

    pub(crate) async fn ledger(&self, name: &str) -> JobLedger {
        self.store.ledger(&self.group, &job(name)).await.unwrap()
    }
}

pub(crate) fn group(name: &str) -> GroupName {
    GroupName::new(name.to_owned()).unwrap()
}

pub(crate) fn job(name: &str) -> JobName {
    JobName::new(name.to_owned()).unwrap()
}

/// The process of an instance.
pub(crate) fn holder(instance: &str) -> Holder {
    process(instance, 7)
}

/// One of several processes of one instance id.
pub(crate) fn process(instance: &str, nonce: u64) -> Holder {
    Holder::new(&InstanceId::new(instance.to_owned()).unwrap(), nonce)
}

pub(crate) fn end(name: &str, fence: u64, ran: Ran) -> End {
    End {
        job: job(name),
        fence,
        ran,
        error: String::new(),
        again_in: None,
    }
}

/// `cursor` and so many seconds.
pub(crate) fn after(cursor: Timestamp, seconds: i64) -> Timestamp {
    cursor + SignedDuration::from_secs(seconds)
}

pub(crate) fn claim(name: &str, number: u64, cursor: Timestamp, tick: Timestamp, want: Want) -> Claim {
    Claim {
        job: job(name),
        number,
        tick,
        cursor,
        want,
        overlap: Overlap::Skip,
        passed: Vec::new(),
        alive: Vec::new(),
        further: None,
        schedule: SCHEDULE.into(),
        adopts: "".into(),
        meets: None,
    }
}

pub(crate) fn passed(reason: impl Into<PassedAs>, first: Timestamp, last: Timestamp, count: u64) -> Passed {
    Passed {
        reason: reason.into(),
        first,
        last,
        count,
    }
}
