//! Fenced writes to a real PostgreSQL: an older run is refused, whatever the order in which two transactions meet.

use std::sync::Arc;
use std::time::Duration;

use leader_core::fencing::{Fenced, sql};
use leader_tests::{PostgresServer, eventually};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use leader_tests::dice::Dice;

const SOON: Duration = Duration::from_secs(20);
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const WAYS: [Way; 3] = [Way::Update, Way::Upsert, Way::Guard];

/// How a write is fenced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Update,
    Upsert,
    /// Many tables under one guard.
    Guard,
}

/// A transaction ended as the isolation level says when it cannot see what another one has done: it is to be begun again.
#[derive(Debug, PartialEq)]
struct Again;

/// The tables, with one row under fence 1.
async fn database() -> PostgresServer {
    let server = PostgresServer::start().await;
    let client = server.client().await;
    client.batch_execute(sql::GUARD_TABLE).await.unwrap();
    let tables = "CREATE TABLE report (id bigint PRIMARY KEY, body text NOT NULL, fence bigint NOT NULL);
        CREATE TABLE line (report bigint NOT NULL, text text NOT NULL);
        CREATE TABLE log (at bigserial PRIMARY KEY, fence bigint NOT NULL)";
    client.batch_execute(tables).await.unwrap();
    server
}

async fn reset(client: &Client) {
    let text = "DELETE FROM leader_fence; DELETE FROM report; DELETE FROM line;
        INSERT INTO report VALUES (7, 'first', 1); INSERT INTO line VALUES (7, 'first');
        INSERT INTO leader_fence VALUES ('reports/7', 1)";
    client.batch_execute(text).await.unwrap();
}

async fn begin(client: &Client, level: &str) {
    let text = format!("BEGIN ISOLATION LEVEL {level}");
    client.batch_execute(&text).await.unwrap();
}

/// Writes the report, as a run would in a transaction of its own.
async fn write(client: &Client, way: Way, body: &str, fence: u64) -> Result<Result<(), Fenced>, Again> {
    let number = sql::bigint(fence).unwrap();
    let update = "UPDATE report SET body = $1, fence = $2 WHERE id = 7 AND fence <= $2";
    let upsert = "INSERT INTO report (id, body, fence) VALUES (7, $1, $2)
        ON CONFLICT (id) DO UPDATE SET body = excluded.body, fence = excluded.fence
        WHERE report.fence <= excluded.fence";
    let rows = match way {
        Way::Update => client.execute(update, &[&body, &number]).await,
        Way::Upsert => client.execute(upsert, &[&body, &number]).await,
        Way::Guard => client.execute(sql::RAISE, &[&"reports/7", &number]).await,
    };
    let rows = rows.map_err(|error| {
        let code = error.code().expect("the server's answer");
        assert_eq!(code, &SqlState::T_R_SERIALIZATION_FAILURE, "{error}");
        Again
    })?;
    if way != Way::Guard {
        return Ok(sql::wrote(rows, "report 7", fence));
    }
    if let Err(fenced) = sql::raised(rows, "reports/7", fence) {
        let held = client.query_one(sql::HELD, &[&"reports/7"]).await.unwrap().get(0);
        return Ok(Err(fenced.holding(held)));
    }
    // What is under the guard needs no condition of its own.
    client.execute("DELETE FROM line", &[]).await.unwrap();
    for _ in 0..2 {
        client
            .execute("INSERT INTO line VALUES (7, $1)", &[&body])
            .await
            .unwrap();
    }
    client.execute("UPDATE report SET body = $1", &[&body]).await.unwrap();
    Ok(Ok(()))
}

/// A whole transaction; begun again when the level asks for it.
async fn transact(client: &Client, level: &str, way: Way, body: &str, fence: u64) -> Result<(), Fenced> {
    loop {
        begin(client, level).await;
        let written = write(client, way, body, fence).await;
        let end = if written == Ok(Ok(())) { "COMMIT" } else { "ROLLBACK" };
        client.batch_execute(end).await.unwrap();
        if let Ok(written) = written {
            return written;
        }
    }
}

/// What stands there: the report, and its lines.
async fn stands(client: &Client) -> String {
    let body: String = client.query_one("SELECT body FROM report", &[]).await.unwrap().get(0);
    let lines = client.query("SELECT DISTINCT text FROM line", &[]).await.unwrap();
    let lines: Vec<String> = lines.iter().map(|row| row.get(0)).collect();
    format!("{body}, lines {}", lines.join(" "))
}

/// What stands there after a write, by the way in which it was written.
fn by(way: Way, body: &str) -> String {
    let lines = if way == Way::Guard { body } else { "first" };
    format!("{body}, lines {lines}")
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Waits until a transaction waits for another one.
async fn waits(observer: &Client, pid: i32) {
    eventually(SOON, "the second transaction waits for the first", || async {
        let blocked = "SELECT cardinality(pg_blocking_pids($1)) > 0";
        observer.query_one(blocked, &[&pid]).await.unwrap().get(0)
    })
    .await;
}

fn is_refused(way: Way, written: Result<(), Fenced>, fence: u64) {
    let fenced = written.expect_err("an older run");
    assert_eq!(fenced.fence, fence);
    let text = fenced.to_string();
    if way == Way::Guard {
        assert!(text.contains("under fence 9; this run is over"), "{text}");
    } else {
        assert!(text.contains("no row of `report 7` took fence 5"), "{text}");
    }
}

#[tokio::test]
async fn an_older_fence_is_refused_and_an_equal_one_is_not() {
    let server = database().await;
    let (old, new) = (server.client().await, server.client().await);
    for (level, way) in LEVELS.iter().flat_map(|level| WAYS.map(|way| (*level, way))) {
        reset(&new).await;
        assert_eq!(transact(&old, level, way, "old", 5).await, Ok(()), "{way:?} {level}");
        assert_eq!(transact(&new, level, way, "new", 9).await, Ok(()));
        is_refused(way, transact(&old, level, way, "older", 5).await, 5);
        assert_eq!(stands(&new).await, by(way, "new"), "{way:?} {level}");
        // The same run once more, as after an answer that was lost, and as its second write.
        assert_eq!(transact(&new, level, way, "new", 9).await, Ok(()));
        assert_eq!(transact(&new, level, way, "again", 9).await, Ok(()));
        assert_eq!(transact(&old, level, way, "newest", 10).await, Ok(()));
        assert_eq!(stands(&new).await, by(way, "newest"));
    }
}

/// The old transaction has its view of the data before the new one begins, which writes and commits first.
#[tokio::test]
async fn an_older_transaction_that_began_first_is_refused_when_it_writes() {
    let server = database().await;
    let (old, new) = (server.client().await, server.client().await);
    for (level, way) in LEVELS.iter().flat_map(|level| WAYS.map(|way| (*level, way))) {
        reset(&new).await;
        begin(&old, level).await;
        assert_eq!(stands(&old).await, by(Way::Update, "first"));
        assert_eq!(transact(&new, level, way, "new", 9).await, Ok(()));
        let written = write(&old, way, "old", 5).await;
        old.batch_execute("ROLLBACK").await.unwrap();
        if level == "READ COMMITTED" {
            is_refused(way, written.expect("no error at this level"), 5);
        } else {
            assert_eq!(written, Err(Again), "{way:?} {level}");
            is_refused(way, transact(&old, level, way, "old", 5).await, 5);
        }
        assert_eq!(stands(&new).await, by(way, "new"), "{way:?} {level}");
    }
}

/// The new one has written and not committed; the old one, begun before it, waits, and is refused when it may go on.
#[tokio::test]
async fn an_older_transaction_that_has_to_wait_is_refused_afterwards() {
    let server = database().await;
    let (new, observer) = (server.client().await, server.client().await);
    for (level, way) in LEVELS.iter().flat_map(|level| WAYS.map(|way| (*level, way))) {
        reset(&observer).await;
        let old = server.client().await;
        let waiting = pid(&old).await;
        begin(&old, level).await;
        begin(&new, level).await;
        assert_eq!(write(&new, way, "new", 9).await, Ok(Ok(())));
        let old = tokio::spawn(async move {
            let written = write(&old, way, "old", 5).await;
            old.batch_execute("ROLLBACK").await.unwrap();
            match written {
                Ok(written) => written,
                Err(Again) => transact(&old, level, way, "old", 5).await,
            }
        });
        waits(&observer, waiting).await;
        new.batch_execute("COMMIT").await.unwrap();
        is_refused(way, old.await.unwrap(), 5);
        assert_eq!(stands(&observer).await, by(way, "new"), "{way:?} {level}");
    }
}

/// The old one has written and not committed: the new one waits, and writes over it. And where the new one rolls back, nothing keeps
/// the old one out.
#[tokio::test]
async fn a_newer_transaction_waits_for_an_older_one_and_writes_over_it() {
    let server = database().await;
    let (old, observer) = (server.client().await, server.client().await);
    for (level, way) in LEVELS.iter().flat_map(|level| WAYS.map(|way| (*level, way))) {
        for end in ["COMMIT", "ROLLBACK"] {
            reset(&observer).await;
            let new = server.client().await;
            let waiting = pid(&new).await;
            begin(&old, level).await;
            assert_eq!(write(&old, way, "old", 5).await, Ok(Ok(())));
            let new = tokio::spawn(async move { transact(&new, level, way, "new", 9).await });
            waits(&observer, waiting).await;
            old.batch_execute(end).await.unwrap();
            assert_eq!(new.await.unwrap(), Ok(()), "{way:?} {level} {end}");
            assert_eq!(stands(&observer).await, by(way, "new"), "{way:?} {level} {end}");
        }
        reset(&observer).await;
        begin(&old, level).await;
        assert_eq!(write(&old, way, "newer", 9).await, Ok(Ok(())));
        old.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(transact(&old, level, way, "old", 5).await, Ok(()), "{way:?} {level}");
        assert_eq!(stands(&observer).await, by(way, "old"));
    }
}

/// A row that is gone has no fence; its guard is still there.
#[tokio::test]
async fn a_guard_outlives_the_row_that_it_guards() {
    let server = database().await;
    let client = server.client().await;
    reset(&client).await;
    let delete = "DELETE FROM report WHERE id = 7 AND fence <= $1";
    assert_eq!(client.execute(delete, &[&9_i64]).await.unwrap(), 1);
    // The trap that the page warns of.
    assert_eq!(write(&client, Way::Upsert, "old", 5).await, Ok(Ok(())));

    reset(&client).await;
    assert_eq!(write(&client, Way::Guard, "new", 9).await, Ok(Ok(())));
    client.batch_execute("DELETE FROM report").await.unwrap();
    is_refused(Way::Guard, write(&client, Way::Guard, "old", 5).await.unwrap(), 5);
    // And a missing row is not told as a newer run.
    let rows = client.execute(delete, &[&9_i64]).await.unwrap();
    let text = sql::wrote(rows, "report 7", 9).unwrap_err().to_string();
    assert!(text.contains("or there is no such row"), "{text}");
}

/// Raised before anything was read: what the run computes from is not changed behind its back.
#[tokio::test]
async fn a_guard_that_was_raised_keeps_older_runs_out_before_anything_is_written() {
    let server = database().await;
    let (old, new) = (server.client().await, server.client().await);
    reset(&new).await;
    assert_eq!(new.execute(sql::RAISE, &[&"reports/7", &9_i64]).await.unwrap(), 1);
    let read = stands(&new).await;
    is_refused(
        Way::Guard,
        transact(&old, "READ COMMITTED", Way::Guard, "old", 5).await,
        5,
    );
    assert_eq!(stands(&new).await, read);
    // Each resource for itself.
    assert_eq!(old.execute(sql::RAISE, &[&"reports/8", &5_i64]).await.unwrap(), 1);
}

/// The highest fence that is a fence.
#[tokio::test]
async fn the_highest_fence_fits() {
    let server = database().await;
    let client = server.client().await;
    reset(&client).await;
    let highest = u64::try_from(i64::MAX).unwrap();
    for way in WAYS {
        assert_eq!(write(&client, way, "last", highest).await, Ok(Ok(())), "{way:?}");
        let fenced = write(&client, way, "old", highest - 1).await.unwrap().unwrap_err();
        assert_eq!(fenced.held, (way == Way::Guard).then_some(highest));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_racing_writers_never_go_back() {
    let seed = leader_tests::dice::seed();
    println!("LEADER_CHAOS_SEED={seed}");
    let server = Arc::new(database().await);
    let race = |number: u64| {
        let server = Arc::clone(&server);
        async move {
            let mut dice = Dice::new(seed ^ number);
            let client = server.client().await;
            let mut accepted = 0;
            for round in 0..500 {
                // Rising, with a long look back.
                let fence = round + dice.below(200);
                begin(&client, LEVELS[0]).await;
                let number = sql::bigint(fence).unwrap();
                let rows = client.execute(sql::RAISE, &[&"race", &number]).await.unwrap();
                let is_accepted = sql::raised(rows, "race", fence).is_ok();
                if is_accepted {
                    accepted += 1;
                    let log = "INSERT INTO log (fence) VALUES ($1)";
                    client.execute(log, &[&number]).await.unwrap();
                }
                client.batch_execute("COMMIT").await.unwrap();
            }
            accepted
        }
    };
    let (one, other) = tokio::join!(tokio::spawn(race(1)), tokio::spawn(race(2)));
    let accepted = one.unwrap() + other.unwrap();
    let client = server.client().await;
    let log = client.query("SELECT fence FROM log ORDER BY at", &[]).await.unwrap();
    let log: Vec<i64> = log.iter().map(|row| row.get(0)).collect();
    println!("{accepted} of 1000 accepted");
    assert_eq!(log.len(), accepted);
    assert!(log.is_sorted(), "{log:?}");
    let held: i64 = client.query_one(sql::HELD, &[&"race"]).await.unwrap().get(0);
    assert_eq!(Some(&held), log.last());
}
