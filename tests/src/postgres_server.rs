//! A real PostgreSQL for one test: its own data, and a socket in its own directory.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// The folder of `initdb` and `postgres`, where they are not to be looked for.
const BINARIES: &str = "LEADER_TEST_POSTGRES_BIN";
/// Where Debian puts them, by version, and off the PATH.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Starting takes a fraction of a second on an idle machine; test machines are not idle.
const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(10);
const USER: &str = "leader";

/// A running server, without a port; ended when dropped.
#[derive(Debug)]
pub struct PostgresServer {
    directory: TempDir,
    child: Child,
}

/// Whom the server runs as: it refuses to be root.
#[derive(Clone, Copy, Debug)]
struct Account {
    user: u32,
    group: u32,
}

impl PostgresServer {
    /// Makes an empty database, starts a server on it, and waits until it answers.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("leader-pg-")
            .tempdir()
            .expect("a temporary directory");
        let account = geteuid().is_root().then(Account::unprivileged);
        if let Some(Account { user, group }) = account {
            chown(directory.path(), Some(user), Some(group)).expect("root may give it away");
        }
        let binaries = binaries();
        let data = directory.path().join("data");
        make(&mut command(&binaries.join("initdb"), account, directory.path()), &data);
        let log = std::fs::File::create(directory.path().join("log")).expect("the directory is writable");
        let child = command(&binaries.join("postgres"), account, directory.path())
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "fsync=off"])
            .arg("-k")
            .arg(directory.path())
            .stderr(log)
            .spawn()
            .expect("it was there to make the database");
        let mut server = Self { directory, child };
        server.answers().await;
        server
    }

    /// A new connection, which ends with its client.
    ///
    /// # Panics
    /// When the server does not take it.
    pub async fn client(&self) -> Client {
        self.try_client()
            .await
            .unwrap_or_else(|error| panic!("no connection ({error}): {}", self.log()))
    }

    /// Where it keeps its files and its socket.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    async fn try_client(&self) -> Result<Client, tokio_postgres::Error> {
        let mut config = Config::new();
        config.host_path(self.directory.path()).user(USER).dbname("postgres");
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn answers(&mut self) {
        let began = Instant::now();
        while self.try_client().await.is_err() {
            let ended = self.child.try_wait().expect("the child is ours");
            assert!(ended.is_none(), "the server ended ({ended:?}): {}", self.log());
            assert!(
                began.elapsed() < START,
                "the server did not answer within {START:?}: {}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Its quick end, without a checkpoint. A kill would leave its children and a piece of shared memory behind.
        let _ = kill_process(Pid::from_child(&self.child), Signal::QUIT);
        let began = Instant::now();
        while began.elapsed() < STOP {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Account {
    /// The account that came with the server, or the one that nobody uses.
    fn unprivileged() -> Self {
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let find = |name: &str| accounts.lines().find_map(|line| Self::read(line, name));
        find("postgres")
            .or_else(|| find("nobody"))
            .expect("PostgreSQL refuses to run as root, and there is neither an account `postgres` nor `nobody`")
    }

    /// `<name>:<password>:<user>:<group>:…`
    fn read(line: &str, name: &str) -> Option<Self> {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let (user, group) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { user, group })
    }
}

fn command(binary: &Path, account: Option<Account>, directory: &Path) -> Command {
    let mut command = Command::new(binary);
    // The folder that the tests run in may be closed to others.
    command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(Account { user, group }) = account {
        // Root's other groups are left behind with this.
        command.uid(user).gid(group);
    }
    command
}

fn make(initdb: &mut Command, data: &Path) {
    let output = initdb
        .arg("-D")
        .arg(data)
        .args([
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
            "--username",
            USER,
        ])
        .output()
        .unwrap_or_else(|error| panic!("{initdb:?} cannot be started ({error}): `tests/run` installs it"));
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "no database was made: {log}");
}

fn binaries() -> PathBuf {
    if let Some(folder) = std::env::var_os(BINARIES) {
        return folder.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_both = |folder: &PathBuf| folder.join("initdb").exists() && folder.join("postgres").exists();
    let mut of_debian: Vec<_> = std::fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    // The newest first, as far as names tell.
    of_debian.sort();
    std::env::split_paths(&path)
        .chain(of_debian.into_iter().rev())
        .find(has_both)
        .unwrap_or_else(|| {
            panic!("no `initdb` and `postgres` on the PATH or below {DEBIAN}: `tests/run` installs them")
        })
}
