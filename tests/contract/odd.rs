//! Leases that are not as this fleet left them: gone before their end, too long, without an end, of somebody else.

use std::time::{Duration, Instant};

use leader_core::__seam::{ActRequest, ClaimReply, Deed, Gap, MakeRequest, Making, TakenOver, Verdict, Want, Writer};
use leader_core::{Holder, Oddity};
use leader_tests::eventually;
use redis::Value;

use crate::bench::{BOUND, Bench, COARSE, LONG, group, holder};

const TTL: Duration = Duration::from_secs(2);

struct Keys {
    lease: String,
    state: String,
}

impl Keys {
    fn of(bench: &Bench) -> Self {
        let lease = format!("{}:leader:cleanup", bench.namespace);
        let state = format!("{{{lease}}}:lease");
        Self { lease, state }
    }
}

async fn command(bench: &Bench, words: &[&str]) -> Value {
    bench.server.as_ref().unwrap().command(words).await
}

async fn campaign(bench: &Bench, who: &Holder, known: u64) -> Verdict {
    bench.ask(bench.wish(who, TTL, known)).await.verdict
}

/// Grants a lease of [`TTL`] and gives its term.
async fn granted(bench: &Bench, who: &Holder) -> u64 {
    match campaign(bench, who, 0).await {
        Verdict::Acquired { term } => term,
        other => panic!("{other:?}"),
    }
}

/// Deleted, evicted, or lost with a part of the data (redbeat#163, RedLock.net#101): its leader believes until its trust ends, and
/// hears of the loss only with its next renewal.
#[tokio::test]
async fn case_19_a_lease_that_vanished_is_not_granted_before_its_end() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let (a, b) = (holder("a"), holder("b"));
    // No later than the server's grant, whose answer may take its time.
    let asked_at = Instant::now();
    let term = granted(&bench, &a).await;
    command(&bench, &["DEL", &keys.lease]).await;
    let Verdict::Quarantined { remaining, .. } = campaign(&bench, &b, term).await else {
        panic!("granted while its leader may believe");
    };
    assert!(remaining <= TTL, "{remaining:?}");
    let mut next = 0;
    while next == 0 {
        match campaign(&bench, &b, term).await {
            Verdict::Acquired { term } => next = term,
            Verdict::Quarantined { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            other => panic!("{other:?}"),
        }
        assert!(asked_at.elapsed() < BOUND);
    }
    assert!(asked_at.elapsed() + COARSE >= TTL, "{:?}", asked_at.elapsed());
    assert!(next > term);
}

/// One that asks has no belief any more, and nobody else can have one.
#[tokio::test]
async fn the_last_leader_gets_a_lease_that_vanished_at_once() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let (a, b) = (holder("a"), holder("b"));
    let term = granted(&bench, &a).await;
    command(&bench, &["DEL", &keys.lease]).await;
    // A ghost from before it led is not a question of one that has lost.
    assert!(matches!(
        campaign(&bench, &a, term - 1).await,
        Verdict::Quarantined { .. }
    ));
    let Verdict::Acquired { term: next } = campaign(&bench, &a, term).await else {
        panic!("not granted");
    };
    assert!(next > term);
    // Given back, it is vacant for everybody.
    bench.release(&a, next, None).await;
    assert!(matches!(campaign(&bench, &b, next).await, Verdict::Acquired { .. }));
}

/// The server's clock was set back, so that the lease would outlast its time (redis#7012); or somebody took its end away.
#[tokio::test]
async fn leases_25_an_own_lease_is_cut_back_to_its_time() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let (a, b) = (holder("a"), holder("b"));
    let term = granted(&bench, &a).await;
    for words in [&["PEXPIRE", &keys.lease, "3600000"][..], &["PERSIST", &keys.lease]] {
        command(&bench, words).await;
        let answer = bench.ask(bench.wish(&b, TTL, term)).await;
        assert_eq!(answer.oddity, Some(Oddity::Clamped), "{words:?}");
        let Verdict::Held {
            remaining: Some(remaining),
            ..
        } = answer.verdict
        else {
            panic!("{answer:?}");
        };
        assert!(remaining <= TTL, "{remaining:?}");
        let Value::Int(left) = command(&bench, &["PTTL", &keys.lease]).await else {
            panic!("no TTL");
        };
        assert!(left > 0 && left <= 2000, "{left}");
        assert_eq!(bench.ask(bench.wish(&b, TTL, term)).await.oddity, None);
        // Its holder renews as before.
        assert!(bench.is_led_by(&a, term).await);
        bench.renew_for(&a, term, TTL).await;
    }
}

/// The mark of the last renewal lies in the future: it counts from now, and once.
#[tokio::test]
async fn a_renewal_of_the_future_makes_nobody_wait_longer_than_one_lease() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let (a, b) = (holder("a"), holder("b"));
    let term = granted(&bench, &a).await;
    command(&bench, &["DEL", &keys.lease]).await;
    command(&bench, &["HSET", &keys.state, "seen", "99999999999999"]).await;
    let began = Instant::now();
    assert!(matches!(campaign(&bench, &b, term).await, Verdict::Quarantined { .. }));
    eventually(BOUND, "it is granted", || async {
        matches!(campaign(&bench, &b, term).await, Verdict::Acquired { .. })
    })
    .await;
    let took = began.elapsed();
    assert!(took + COARSE >= TTL && took < 2 * TTL, "{took:?}");
}

#[tokio::test]
async fn what_is_odd_about_a_lease_is_said() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let a = holder("a");
    for (words, oddity, holder) in [
        (
            &["SET", &keys.lease, "pod-7", "PX", "60000"][..],
            Oddity::Foreign,
            Some("pod-7"),
        ),
        (&["SET", &keys.lease, "pod-7"], Oddity::Endless, Some("pod-7")),
        (&["LPUSH", &keys.lease, "x"], Oddity::WrongType, None),
    ] {
        command(&bench, &["DEL", &keys.lease]).await;
        command(&bench, words).await;
        for _ in 0..2 {
            let answer = bench.campaign(&a, 0).await;
            assert_eq!(answer.oddity, Some(oddity));
            assert_eq!(answer.holder.as_ref().map(Holder::as_str), holder);
            assert!(matches!(answer.verdict, Verdict::Held { .. }), "{answer:?}");
        }
    }
}

/// Beyond 2^53 the scripts' numbers are no longer told apart: nothing is granted, and the error says what to delete.
#[tokio::test]
async fn a_counter_that_cannot_rise_grants_nothing() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let a = holder("a");
    let term = bench.acquire(&a).await;
    bench.release(&a, term, None).await;
    let fence = format!("{{{}}}:fence", keys.lease);
    for junk in ["1e300", "9007199254740992", "1000000000000000000"] {
        command(&bench, &["SET", &fence, junk]).await;
        let answer = bench.store.campaign(vec![bench.wish(&a, TTL, term)]).await.remove(0);
        let error = answer.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(&fence), "{source}");
    }
    command(&bench, &["DEL", &fence]).await;
    assert!(matches!(campaign(&bench, &a, term).await, Verdict::Acquired { .. }));
    // Nor does anybody learn a term that cannot be: it would have to be above it for ever.
    command(&bench, &["HSET", &keys.state, "term", "1000000000000000000"]).await;
    for who in [&a, &holder("b")] {
        let answer = bench.store.campaign(vec![bench.wish(who, TTL, term)]).await.remove(0);
        assert!(answer.is_err(), "{answer:?}");
    }
}

/// What somebody else wrote into the place of a waiting tick stands in nobody's way, and gets into no record.
#[tokio::test]
async fn a_waiting_tick_that_is_none_is_dropped() {
    use crate::bench::{after, claim};
    use leader_core::__seam::{TakenOver, Want};

    let bench = Bench::redis().await;
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let mut cursor = bench.cursor(&a, term, "job").await;
    let job = format!("{{{}}}:job:job", Keys::of(&bench).lease);
    for (number, junk) in (1..).zip(["garbage", "", "1e300", "-5"]) {
        command(&bench, &["HSET", &job, "waiting", junk]).await;
        let TakenOver::Yours { waiting, .. } = bench.take_over(&a, term, &["job"]).await else {
            panic!("not yours");
        };
        assert_eq!(waiting, [None], "{junk}");
        let tick = after(cursor, 1);
        let fence = bench.win(&a, term, claim("job", number, cursor, tick, Want::Run)).await;
        bench.settle("job", fence, leader_core::Ran::Ok).await;
        let ledger = bench.ledger("job").await;
        assert_eq!((ledger.waiting, ledger.decided()), (None, number), "{junk}");
        cursor = tick;
    }
}

/// What cannot be read of one job stops neither it nor the others of its group.
#[tokio::test]
async fn an_illegible_job_fails_nobody() {
    use crate::bench::{after, claim};
    use leader_core::__seam::{ClaimReply, TakenOver, Want};

    let bench = Bench::redis().await;
    let a = holder("a");
    let term = bench.acquire(&a).await;
    // Both begin at one instant.
    let TakenOver::Yours { cursors, .. } = bench.take_over(&a, term, &["job", "beside"]).await else {
        panic!("not yours");
    };
    let mut cursor = cursors[0];
    let job = format!("{{{}}}:job:job", Keys::of(&bench).lease);
    let junk = [
        "garbage",
        "||||||",
        "1|schedule|x|2|y|3|z",
        "1|schedule|5",
        // Runs that pause, as somebody else may write them.
        "1|schedule|5|2|1|3|z#1|1|9|garbage",
        "1|schedule|5|2|1|3|z#1|many|9|ran.error",
        "1|schedule|5|2|1|3|z#1|1|soon|ran.error",
        "x|schedule|5|2|1|3|z#1|1|99999999999999999999|ran.garbage",
        "1|schedule|5|2|1|3|z#1|1|99999999999999999999|ran.error",
    ];
    for (number, junk) in (1..).step_by(2).zip(junk) {
        command(&bench, &["HSET", &job, "open", junk]).await;
        let taken = bench.take_over(&a, term, &["job", "beside"]).await;
        assert!(matches!(taken, TakenOver::Yours { .. }), "{junk}");
        let look = claim("job", number + 100, cursor, cursor, Want::Look);
        let looked = bench.claim(&a, term, look).await;
        assert!(matches!(looked, ClaimReply::Looked(_)), "{junk}: {looked:?}");
        let tick = after(cursor, 1);
        let claims = vec![
            claim("job", number, cursor, tick, Want::Run),
            claim("beside", number + 1, cursor, tick, Want::Run),
        ];
        let replies = bench.claim_all(&a, term, claims).await;
        for (name, reply) in ["job", "beside"].into_iter().zip(replies) {
            let ClaimReply::Won { fence } = reply else {
                panic!("{name} with {junk}: {reply:?}");
            };
            bench.settle(name, fence, leader_core::Ran::Ok).await;
        }
        assert_eq!(bench.ledger("job").await.pending(), 0, "{junk}");
        cursor = tick;
    }
    for junk in ["garbage", "", "1e300"] {
        command(&bench, &["HSET", &job, "cursor", junk]).await;
        let TakenOver::Yours { cursors, now, .. } = bench.take_over(&a, term, &["job", "beside"]).await else {
            panic!("not yours");
        };
        assert_eq!(cursors, [now, cursor], "it starts anew, and the other goes on");
    }
}

/// A tick is any instant, and both scripts read it alike.
#[tokio::test]
async fn a_run_of_a_tick_before_1970_is_taken_over_as_any_other() {
    use crate::bench::claim;
    use leader_core::__seam::{ClaimReply, TakenOver, Want};

    let bench = Bench::redis().await;
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let job = format!("{{{}}}:job:job", Keys::of(&bench).lease);
    let line = "-1000|schedule|5|2|1|3|z#1|1|99999999999999|ran.error";
    command(&bench, &["HSET", &job, "open", line]).await;
    let TakenOver::Yours { open, .. } = bench.take_over(&a, term, &["job"]).await else {
        panic!("not yours");
    };
    let look = claim("job", 1, cursor, cursor, Want::Look);
    let ClaimReply::Looked(looked) = bench.claim(&a, term, look).await else {
        panic!("not looked at");
    };
    assert_eq!(open[0].pausing.len(), 1);
    assert_eq!(open[0].pausing, looked.pausing);
}

/// One group whose keys are of no use does not stand in the way of the others that are asked for with it.
#[tokio::test]
async fn a_broken_group_fails_alone() {
    let bench = Bench::redis().await;
    let keys = Keys::of(&bench);
    let a = holder("a");
    command(&bench, &["SET", &keys.state, "no hash"]).await;
    let mut wishes: Vec<_> = ["x", "cleanup", "y"]
        .iter()
        .map(|name| {
            let mut wish = bench.wish(&a, LONG, 0);
            wish.group = group(name);
            wish
        })
        .collect();
    let answers = bench.store.campaign(wishes.clone()).await;
    let verdicts: Vec<_> = answers
        .iter()
        .map(|answer| answer.as_ref().map(|answer| &answer.verdict))
        .collect();
    assert!(matches!(verdicts[0], Ok(Verdict::Acquired { .. })), "{verdicts:?}");
    assert!(matches!(verdicts[2], Ok(Verdict::Acquired { .. })), "{verdicts:?}");
    let error = answers[1].as_ref().unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{error:?}");
    // And is as good as new once it is mended.
    command(&bench, &["DEL", &keys.state]).await;
    let alone = bench.store.campaign(vec![wishes.remove(1)]).await.remove(0).unwrap();
    assert!(matches!(alone.verdict, Verdict::Acquired { .. }), "{alone:?}");
}

/// What says that the whole server is the wrong one is an error of the whole call, after which another server is looked for.
#[tokio::test]
async fn a_server_that_may_not_write_fails_the_whole_call() {
    let server = std::sync::Arc::new(leader_tests::RedisServer::start().await);
    let bench = Bench::redis_on(std::sync::Arc::clone(&server));
    let a = holder("a");
    bench.acquire(&a).await;
    let client = || async {
        let Value::BulkString(list) = server.command(&["CLIENT", "LIST", "TYPE", "normal"]).await else {
            panic!("no list");
        };
        let list = String::from_utf8(list).unwrap();
        let ours = list.lines().find(|line| line.contains("name=leader:lease"));
        ours.map(|line| line.split(' ').next().unwrap_or_default().to_owned())
    };
    let before = client().await;
    assert!(before.is_some());
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).await;
    let wishes = ["x", "y"].map(|name| {
        let mut wish = bench.wish(&a, LONG, 0);
        wish.group = group(name);
        wish
    });
    for answer in bench.store.campaign(wishes.to_vec()).await {
        assert_eq!(answer.unwrap_err().code(), Some("READONLY"));
    }
    server.command(&["REPLICAOF", "NO", "ONE"]).await;
    eventually(BOUND, "another connection serves", || async {
        let answers = bench.store.campaign(wishes.to_vec()).await;
        answers.iter().all(Result::is_ok)
    })
    .await;
    assert_ne!(client().await, before);
}

/// What was acknowledged returns after a fail-over to a replica that lagged behind (redis#5433): the run is found open again. Its token
/// tells: whoever ran it passes how far it has come, and is not given the tick a second time; another settles it and does not run it.
#[tokio::test]
async fn leases_19_a_run_that_a_fail_over_forgot_to_be_settled_is_not_run_again_by_its_runner() {
    use crate::bench::{after, claim, end};
    use leader_core::__seam::{ClaimReply, Settled, Want};
    use leader_core::Ran;
    use leader_tests::RedisServer;

    let primary = RedisServer::options()
        .set("repl-diskless-sync-delay", "0")
        .start()
        .await;
    let replica = RedisServer::start().await;
    let bench = Bench::redis_on(std::sync::Arc::new(primary));
    let primary = bench.server.clone().unwrap();
    replica
        .command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()])
        .await;
    eventually(BOUND, "the replica follows", || async {
        replica.fact("replication", "master_link_status").await == "up"
    })
    .await;
    let a = holder("a");
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let tick = after(cursor, 1);
    let fence = bench.win(&a, term, claim("job", 1, cursor, tick, Want::Run)).await;
    // The replica has the claim, and lags behind from here on.
    eventually(BOUND, "the replica has the claim", || async {
        let keys = Keys::of(&bench);
        let beats = format!("{{{}}}:beats", keys.lease);
        !matches!(replica.command(&["HGET", &beats, &fence.to_string()]).await, Value::Nil)
    })
    .await;
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(bench.settle_all(vec![end("job", fence, Ran::Ok)]).await, [Settled::Yes]);
    let next = bench
        .win(&a, term, claim("job", 2, tick, after(tick, 1), Want::Run))
        .await;
    assert_eq!(bench.settle_all(vec![end("job", next, Ran::Ok)]).await, [Settled::Yes]);

    let promoted = Bench {
        store: std::sync::Arc::new(leader_core::__seam::RedisStore::new(
            &replica.info(),
            &bench.namespace,
            BOUND,
        )),
        namespace: bench.namespace.clone(),
        group: bench.group.clone(),
        server: Some(std::sync::Arc::new(replica)),
    };
    // The lease was kept: its leader goes on, and knows how far it has come.
    assert!(promoted.is_led_by(&a, term).await);
    assert_eq!(promoted.ledger("job").await.open.len(), 1);
    // The result is taken once more by its token, and only once.
    let settled = promoted.settle_all(vec![end("job", fence, Ran::Ok), end("job", fence, Ran::Ok)]);
    assert_eq!(settled.await, [Settled::Yes, Settled::Fenced]);
    let floor = after(tick, 1);
    let again = promoted.claim(&a, term, claim("job", 3, floor, floor, Want::Run)).await;
    assert!(
        matches!(again, ClaimReply::Moved { cursor, .. } if cursor == floor),
        "{again:?}"
    );
    // Fences rise above what the promoted server has forgotten, because the leader tells it.
    let mut batch = promoted.batch(&a, term, vec![claim("job", 4, floor, after(floor, 1), Want::Run)]);
    batch.known = next;
    let leader_core::__seam::Claimed::Yours(replies) = promoted.claim_batch(batch).await else {
        panic!("not led");
    };
    assert!(
        matches!(replies[0], ClaimReply::Won { fence } if fence > next),
        "{replies:?}"
    );
}

/// The state is all that an operator may have deleted, to have another leader: what people have asked for, and made, is in force still.
#[tokio::test]
async fn what_was_asked_for_and_made_outlasts_the_state() {
    use crate::bench::{after, claim, job};

    let bench = Bench::redis().await;
    let (keys, a) = (Keys::of(&bench), holder("a"));
    let term = bench.acquire(&a).await;
    let cursor = bench.cursor(&a, term, "job").await;
    let pause = ActRequest {
        group: bench.group.clone(),
        job: Some(job("job")),
        deed: Deed::pause(Gap::Owed, None),
        by: String::new(),
        reason: String::new(),
    };
    bench.store.act(pause).await.unwrap();
    let making = MakeRequest {
        group: bench.group.clone(),
        name: job("made"),
        what: Making::Make {
            handler: job("handler"),
            schedule: "every 1s".into(),
            payload: "null".into(),
        },
        by: String::new(),
        writer: Writer::default(),
    };
    bench.store.make(making).await.unwrap();
    let before = bench.store.control(&bench.group).await.unwrap();
    bench.release(&a, term, None).await;
    command(&bench, &["DEL", &keys.state]).await;
    let term = bench.acquire(&a).await;
    let TakenOver::Yours { control, .. } = bench.take_over(&a, term, &["job"]).await else {
        panic!("not led");
    };
    let now = bench.store.control(&bench.group).await.unwrap();
    // A leader reads what it has not heard of, which it tells by these numbers.
    let made = command(&bench, &["HGET", &keys.state, "made"]).await;
    assert!(control > before.number && now.number == control, "{control} {now:?}");
    assert_eq!(made, Value::BulkString(control.to_string().into_bytes()));
    let wish = claim("job", 1, cursor, after(cursor, 1), Want::Run);
    assert_eq!(bench.claim(&a, term, wish).await, ClaimReply::Held { until: None });
    // Once.
    let TakenOver::Yours { control: again, .. } = bench.take_over(&a, term, &["job"]).await else {
        panic!("not led");
    };
    assert_eq!(again, control);
}
