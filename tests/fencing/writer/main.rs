//! A service for the test `frozen`: its job writes to three resources in two halves, the second by work that nobody can cancel.
//!
//! `fenced_writer <id> <redis url> <socket folder of PostgreSQL> <address of an HTTP server>`. The second half waits until the key
//! `go:<id>` is there. Lines of JSON on stdout tell of each half.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use leader_core::fencing::http::RequestFence;
use leader_core::fencing::redis::FencedKey;
use leader_core::fencing::{Fenced, sql};
use leader_core::{State, Tick, Timing, leader_only};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio_postgres::NoTls;

const TTL: Duration = Duration::from_millis(1_500);

/// What the job writes to.
#[derive(Clone)]
struct Resources {
    database: Arc<Mutex<tokio_postgres::Client>>,
    redis: MultiplexedConnection,
    server: SocketAddr,
    may_go_on: watch::Receiver<bool>,
}

/// One half of one run.
#[derive(Clone)]
struct Half {
    to: Resources,
    fence: u64,
    sent: RequestFence,
    text: String,
}

type Written = Result<(), anyhow::Error>;

impl Half {
    async fn to_database(&self) -> Written {
        let update = "UPDATE report SET body = $1, fence = $2 WHERE id = 7 AND fence <= $2";
        let database = self.to.database.lock().await;
        let rows = database
            .execute(update, &[&self.text, &sql::bigint(self.fence)?])
            .await?;
        Ok(sql::wrote(rows, "report 7", self.fence)?)
    }

    /// The same under a guard.
    async fn to_guarded_table(&self) -> Written {
        let name = "frozen/lines";
        let mut database = self.to.database.lock().await;
        let transaction = database.transaction().await?;
        let rows = transaction
            .execute(sql::RAISE, &[&name, &sql::bigint(self.fence)?])
            .await?;
        sql::raised(rows, name, self.fence)?;
        transaction
            .execute("INSERT INTO line VALUES ($1)", &[&self.text])
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    async fn to_redis(&self) -> Written {
        let script = FencedKey::new("report:7")?.set(self.fence, self.text.clone());
        let mut command = redis::cmd("EVAL");
        command
            .arg(&*script.source)
            .arg(script.keys.len())
            .arg(&script.keys)
            .arg(&script.args);
        let answer: Vec<Vec<u8>> = command.query_async(&mut self.to.redis.clone()).await?;
        script.read(&answer)?;
        Ok(())
    }

    /// By blocking calls, as of a client that knows no other.
    fn to_server(&self) -> Written {
        let mut stream = TcpStream::connect(self.to.server)?;
        let [(group, name), (fence, number)] = self.sent.headers();
        let (text, length) = (&self.text, self.text.len());
        write!(
            stream,
            "PUT /reports/7 HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{group}: {name}\r\n{fence}: {number}\r\n\
             content-length: {length}\r\n\r\n{text}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 200") {
            return Ok(());
        }
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        anyhow::bail!("{}: {body}", answer.lines().next().unwrap_or_default())
    }

    fn tell(&self, half: &str, to: &str, written: &Written) {
        let refusal = written.as_ref().err().map(ToString::to_string);
        let is_fenced = written.as_ref().is_err_and(anyhow::Error::is::<Fenced>);
        println!(
            "{}",
            json!({ "half": half, "to": to, "fence": self.fence, "refusal": refusal, "is_fenced": is_fenced })
        );
    }
}

#[leader_only(group = "frozen", every = "1s")]
async fn publish(tick: Tick, State(to): State<Resources>) -> anyhow::Result<()> {
    let mut half = Half {
        fence: tick.fence(),
        sent: RequestFence::from(&tick),
        text: format!("first half under {}", tick.fence()),
        to,
    };
    half.tell("first", "database", &half.to_database().await);
    half.tell("first", "table", &half.to_guarded_table().await);
    half.tell("first", "redis", &half.to_redis().await);
    half.tell("first", "server", &half.to_server());
    half.text = format!("second half under {}", half.fence);
    let (of_task, of_thread) = (half.clone(), half);
    // Neither is within reach of whoever drops this body.
    let task = tokio::spawn(async move {
        let mut may_go_on = of_task.to.may_go_on.clone();
        let _ = may_go_on.wait_for(|go| *go).await;
        of_task.tell("second", "database", &of_task.to_database().await);
        of_task.tell("second", "table", &of_task.to_guarded_table().await);
        of_task.tell("second", "redis", &of_task.to_redis().await);
    });
    let thread = tokio::task::spawn_blocking(move || {
        while !*of_thread.to.may_go_on.borrow() {
            std::thread::sleep(Duration::from_millis(1));
        }
        of_thread.tell("second", "server", &of_thread.to_server());
    });
    task.await?;
    thread.await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || {
        words
            .next()
            .context("fenced_writer <id> <redis url> <socket folder> <address>")
    };
    let (id, url, folder, server) = (word()?, word()?, word()?, word()?.parse()?);
    let mut config = tokio_postgres::Config::new();
    config.host_path(folder).user("leader").dbname("postgres");
    let (database, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    let redis = redis::Client::open(url.clone())?
        .get_multiplexed_async_connection()
        .await?;
    let (go, may_go_on) = watch::channel(false);
    let (mut asking, key) = (redis.clone(), format!("go:{id}"));
    tokio::spawn(async move {
        while !matches!(asking.exists(&key).await, Ok(true)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        go.send_replace(true);
        // Without it the receivers would take its end for an answer.
        go.closed().await;
    });
    let resources = Resources {
        database: Arc::new(Mutex::new(database)),
        redis,
        server,
        may_go_on,
    };
    let instance = leader_core::bootstrap(url)
        .state(resources)
        .namespace("frozen")
        .service("fenced_writer")
        .instance_id(id)
        .first_start(true)
        .timing(Timing::from_ttl(TTL))
        .await?;
    instance.run_until_shutdown().await?;
    Ok(())
}
