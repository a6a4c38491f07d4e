//! One half of a run's work: the same text to a database, a guarded table, a Redis and an HTTP server, each under the run's fence.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::Context;
use leader_core::fencing::http::RequestFence;
use leader_core::fencing::redis::FencedKey;
use leader_core::fencing::sql;
use redis::aio::MultiplexedConnection;
use tokio::sync::Mutex;

/// What the job writes to.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) database: Arc<Mutex<tokio_postgres::Client>>,
    pub(crate) redis: MultiplexedConnection,
    pub(crate) server: SocketAddr,
}

/// One half of one run.
#[derive(Clone)]
pub(crate) struct Half {
    pub(crate) to: Resources,
    pub(crate) fence: u64,
    pub(crate) sent: RequestFence,
    pub(crate) text: String,
}

pub(crate) type Written = Result<(), anyhow::Error>;

impl Half {
    pub(crate) async fn to_database(&self) -> Written {
        let update = "UPDATE report SET body = $1, fence = $2 WHERE id = 7 AND fence <= $2";
        let database = self.to.database.lock().await;
        let rows = database
            .execute(update, &[&self.text, &sql::bigint(self.fence)?])
            .await?;
        Ok(sql::wrote(rows, "report 7", self.fence)?)
    }

    /// The same under a guard.
    pub(crate) async fn to_guarded_table(&self) -> Written {
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

    pub(crate) async fn to_redis(&self) -> Written {
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
    pub(crate) fn to_server(&self) -> Written {
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
}
