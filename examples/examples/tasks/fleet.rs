//! The instances: in this process on the embedded store, or a process for each on Redis.

use std::process::Stdio;
use std::time::Duration;

use leader_core::{Bootstrap, Embedded, Timing, testing};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::ledger::Ledger;
use crate::options::{Instance, Options};
use crate::work::Toil;

/// How long a lease and an attempt live that are not heard of: what a killed instance had goes on after that.
pub const TTL: Duration = Duration::from_secs(2);

/// Where the fleet meets.
pub enum Ground {
    Embedded {
        store: Embedded,
        ledger: Ledger,
    },
    Redis {
        url: String,
        /// Before all keys of this run.
        namespace: String,
        ledger: Ledger,
    },
}

/// One instance that works.
pub struct Worker {
    pub name: String,
    life: Life,
}

enum Life {
    Here(leader_core::Instance),
    Process(Child),
    Killed,
}

/// What every instance of the run has in common.
fn common(bootstrap: Bootstrap, id: &str, ledger: &Ledger, toil: Toil) -> Bootstrap {
    bootstrap
        .instance_id(id.to_owned())
        .service("tasks")
        .timing(Timing::from_ttl(TTL))
        // Nobody can have led here before.
        .first_start(true)
        .state(ledger.clone())
        .state(toil)
}

impl Ground {
    /// # Errors
    /// A server that is not there.
    pub async fn find(options: &Options) -> anyhow::Result<Self> {
        let Some(url) = options.url.clone() else {
            let (store, ledger) = (Embedded::new(), Ledger::in_memory());
            return Ok(Self::Embedded { store, ledger });
        };
        let micros = jiff::Timestamp::now().as_microsecond();
        let namespace = format!("midnight-{}-{micros}", std::process::id());
        let ledger = Ledger::on_redis(&url, &namespace).await?;
        Ok(Self::Redis { url, namespace, ledger })
    }

    pub fn ledger(&self) -> &Ledger {
        match self {
            Self::Embedded { ledger, .. } | Self::Redis { ledger, .. } => ledger,
        }
    }

    /// An instance in this process.
    pub fn instance(&self, id: &str, toil: Toil) -> Bootstrap {
        let bootstrap = match self {
            Self::Embedded { store, .. } => leader_core::bootstrap(store.clone()),
            Self::Redis { url, namespace, .. } => leader_core::bootstrap(url.as_str()).namespace(namespace.clone()),
        };
        common(bootstrap, id, self.ledger(), toil)
    }

    /// One more instance that works.
    ///
    /// # Errors
    /// What the start of one says.
    pub async fn join(&self, name: String, work: Duration) -> anyhow::Result<Worker> {
        let life = match self {
            Self::Embedded { .. } => Life::Here(self.instance(&name, Toil(work)).await?),
            Self::Redis { url, namespace, .. } => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--instance", &name, "--namespace", namespace]);
                command.args(["--work", &format!("{}ms", work.as_millis().max(1))]);
                command.env("LEADER_REDIS_URL", url);
                // Its end tells the instance to stop, however this process ends.
                command.stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
                Life::Process(command.spawn()?)
            }
        };
        Ok(Worker { name, life })
    }

    /// Takes everything of the run out of the store.
    ///
    /// # Errors
    /// A server that does not answer.
    pub async fn clean(&self) -> anyhow::Result<()> {
        let Self::Redis { url, namespace, .. } = self else {
            return Ok(());
        };
        let mut connection = redis::Client::open(url.as_str())?
            .get_multiplexed_async_connection()
            .await?;
        let mut cursor = String::from("0");
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor)
                .arg("MATCH")
                .arg(format!("*{namespace}:*"))
                .arg("COUNT")
                .arg(2000);
            let (next, keys): (String, Vec<String>) = scan.query_async(&mut connection).await?;
            if !keys.is_empty() {
                let _: u64 = redis::cmd("UNLINK").arg(keys).query_async(&mut connection).await?;
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }
}

impl Worker {
    pub fn is_killed(&self) -> bool {
        matches!(self.life, Life::Killed)
    }

    /// Ends it without a word, and says how.
    ///
    /// # Errors
    /// What the system says.
    pub async fn kill(&mut self) -> anyhow::Result<&'static str> {
        match std::mem::replace(&mut self.life, Life::Killed) {
            Life::Here(instance) => {
                testing::kill(&instance);
                Ok("nothing of it runs on, nothing is released and nobody told, as in a killed process")
            }
            Life::Process(mut child) => {
                child.kill().await?;
                Ok("SIGKILL")
            }
            Life::Killed => Ok("it was killed before"),
        }
    }

    /// Lets it stop by itself.
    pub async fn stop(&mut self) {
        match &mut self.life {
            Life::Here(instance) => instance.shutdown().await,
            Life::Process(child) => {
                drop(child.stdin.take());
                // What does not end in time is killed when it is dropped.
                let _ = tokio::time::timeout(5 * TTL, child.wait()).await;
            }
            Life::Killed => {}
        }
    }
}

/// The life of an instance that is a process of its own: until its standard input ends.
///
/// # Errors
/// What its start says.
pub async fn serve(instance: Instance) -> anyhow::Result<()> {
    let Instance {
        url,
        namespace,
        id,
        work,
    } = instance;
    let ledger = Ledger::on_redis(&url, &namespace).await?;
    let bootstrap = leader_core::bootstrap(url).namespace(namespace);
    let instance = common(bootstrap, &id, &ledger, Toil(work)).await?;
    let mut input = tokio::io::stdin();
    // Nothing is written to it: whatever this gives, its end has come.
    let _ = input.read(&mut [0]).await;
    instance.shutdown().await;
    // A read that is under way would keep the process.
    std::process::exit(0)
}
