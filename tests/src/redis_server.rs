//! A real server for one test: its own process, port and directory.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates, Value};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{Certificates, eventually};

/// The binary to run: another one, such as Valkey's, can be named by this environment variable.
const BINARY: &str = "LEADER_TEST_REDIS_SERVER";
/// Starting takes some 20 ms on an idle machine; test machines are not idle.
const START: Duration = Duration::from_secs(20);

/// How a [`RedisServer`] is set up. Without persistence unless it is asked for.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RedisOptions {
    directives: Vec<(String, String)>,
    password: Option<String>,
    certificates: Option<Certificates>,
    #[cfg(target_os = "linux")]
    clock: Option<crate::HandClock>,
}

impl RedisOptions {
    /// Has a wall clock of its own, which stands until it is moved.
    #[cfg(target_os = "linux")]
    pub fn clock(mut self, clock: &crate::HandClock) -> Self {
        self.clock = Some(clock.clone());
        // That thread waits until an instant of the wall clock, which here comes at once or never.
        self.set("jemalloc-bg-thread", "no")
    }

    /// Keeps the data over a restart, synced with every write.
    pub fn appendonly(self, on: bool) -> Self {
        let value = if on { "yes" } else { "no" };
        self.set("appendonly", value).set("appendfsync", "always")
    }

    /// Clients must give this password.
    pub fn requirepass(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.set("requirepass", password)
    }

    /// The memory limit, as `100mb`.
    pub fn maxmemory(self, limit: &str) -> Self {
        self.set("maxmemory", limit)
    }

    /// Serves TLS only, with a certificate from an authority of its own.
    pub fn tls(mut self, on: bool) -> Self {
        self.certificates = on.then(Certificates::generate);
        self
    }

    /// Any other line of the configuration file.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.directives.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(self) -> RedisServer {
        RedisServer::with(self).await
    }
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    options: RedisOptions,
    port: u16,
    directory: TempDir,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a server without persistence or password.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start() -> Self {
        RedisOptions::default().start().await
    }

    /// Says how a server is to be set up.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    async fn with(options: RedisOptions) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("leader-redis-")
            .tempdir()
            .expect("a temporary directory");
        if let Some(certificates) = &options.certificates {
            certificates.write_to(directory.path());
        }
        let mut server = Self {
            options,
            port: 0,
            directory,
            child: None,
        };
        // Between the look for a free port and the server's bind anybody may take it.
        for _ in 0..20 {
            server.port = free_port();
            if server.launch().await.is_ok() {
                return server;
            }
        }
        panic!("no server started: {}", server.log());
    }

    /// The URL that a client of this server uses.
    #[must_use]
    pub fn url(&self) -> String {
        let credentials = match &self.options.password {
            Some(password) => format!(":{password}@"),
            None => String::new(),
        };
        let port = self.port;
        if self.options.certificates.is_some() {
            format!("rediss://{credentials}localhost:{port}/")
        } else {
            format!("redis://{credentials}127.0.0.1:{port}/")
        }
    }

    /// What the `redis` crate connects by; trusts the server's own authority under TLS.
    ///
    /// # Panics
    /// Never on a started server.
    #[must_use]
    pub fn info(&self) -> ConnectionInfo {
        let client = match &self.options.certificates {
            None => Client::open(self.url()),
            Some(certificates) => trusting(&self.url(), &certificates.authority),
        };
        client.expect("the URL is valid").get_connection_info().clone()
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it keeps its files.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Changes a line of the configuration file, from the next start on.
    pub fn change(&mut self, name: &str, value: &str) {
        self.options.directives.retain(|(other, _)| other != name);
        self.options.directives.push((name.to_owned(), value.to_owned()));
    }

    /// The id of the server's process.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// How long ago it was started, in whole seconds, as it tells itself.
    ///
    /// # Panics
    /// When the server does not answer.
    pub async fn uptime(&self) -> Duration {
        Duration::from_secs(
            self.fact("server", "uptime_in_seconds")
                .await
                .parse()
                .expect("a number"),
        )
    }

    /// One line of `INFO`.
    ///
    /// # Panics
    /// When the server does not answer, or tells nothing of this name.
    pub async fn fact(&self, section: &str, name: &str) -> String {
        let text = self.tells(section).await;
        let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned());
        text.lines()
            .find_map(value)
            .unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Runs one command as a user without limits, on a socket that no fault of the network touches.
    ///
    /// # Panics
    /// When the server does not answer within 5 s; an error of the command is a [`Value::ServerError`].
    pub async fn command(&self, words: &[&str]) -> Value {
        self.try_command(words)
            .await
            .unwrap_or_else(|error| panic!("{words:?}: {error}; {}", self.log()))
    }

    /// A section of what the server tells of itself.
    ///
    /// # Panics
    /// When the server does not answer within 5 s.
    pub async fn tells(&self, section: &str) -> String {
        match self.command(&["INFO", section]).await {
            Value::BulkString(text) => String::from_utf8_lossy(&text).into_owned(),
            Value::VerbatimString { text, .. } => text,
            other => panic!("an unexpected answer to INFO: {other:?}"),
        }
    }

    async fn try_command(&self, words: &[&str]) -> redis::RedisResult<Value> {
        let user = RedisConnectionInfo::default()
            .set_username("harness")
            .set_password("any");
        let info = ConnectionAddr::Unix(self.control())
            .into_connection_info()?
            .set_redis_settings(user);
        let client = Client::open(info)?;
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(5)))
            .set_response_timeout(Some(Duration::from_secs(5)));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut command = redis::Cmd::new();
        command.arg(words);
        connection.send_packed_command(&command).await
    }

    /// Ends it as an operator would, with SIGTERM.
    ///
    /// # Panics
    /// When it does not end within 10 s.
    pub async fn stop(&mut self) {
        self.signal(Signal::TERM);
        self.ended().await;
    }

    /// Ends it as a crash would, with SIGKILL.
    ///
    /// # Panics
    /// When it does not end within 10 s.
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }

    /// Starts it again on the same port; ends it first when it runs.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restart(&mut self, keep_data: bool) {
        if self.child.is_some() {
            self.stop().await;
        }
        if !keep_data {
            let _ = std::fs::remove_dir_all(self.directory.path().join("appendonlydir"));
            let _ = std::fs::remove_file(self.directory.path().join("dump.rdb"));
        }
        if let Err(status) = self.launch().await {
            panic!("the server did not come back ({status}): {}", self.log());
        }
    }

    /// Freezes the process (SIGSTOP): the kernel still accepts connections for it.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen process go on (SIGCONT).
    ///
    /// # Panics
    /// When it does not run.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("the server runs");
        kill_process(Pid::from_child(child), signal).expect("the child is ours");
    }

    async fn ended(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        eventually(Duration::from_secs(10), "the server ends", || {
            let ended = child.try_wait().expect("the child is ours").is_some();
            async move { ended }
        })
        .await;
    }

    /// Starts the process; an early end, as when the port is taken, is the error.
    async fn launch(&mut self) -> Result<(), ExitStatus> {
        let file = self.directory.path().join("redis.conf");
        std::fs::write(&file, self.configuration()).expect("the directory is writable");
        let _ = std::fs::remove_file(self.control());
        let binary = std::env::var(BINARY).unwrap_or_else(|_| "redis-server".to_owned());
        let mut command = Command::new(&binary);
        #[cfg(target_os = "linux")]
        if let Some(clock) = &self.options.clock {
            clock.give_to(&mut command);
        }
        let mut child = command
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("`{binary}` cannot be started ({error}): `tests/run` installs it"));
        let deadline = tokio::time::Instant::now() + START;
        loop {
            if let Some(status) = child.try_wait().expect("the child is ours") {
                return Err(status);
            }
            if let Ok(Value::SimpleString(_) | Value::Okay) = self.try_command(&["PING"]).await {
                self.child = Some(child);
                return Ok(());
            }
            if tokio::time::Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server did not answer within {START:?}: {}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn configuration(&self) -> String {
        let directory = self.directory.path().display();
        let mut text = format!(
            "bind 127.0.0.1\nprotected-mode no\ndaemonize no\ndir {directory}\nlogfile {directory}/log\n\
             save \"\"\nappendonly no\nmaxmemory-policy noeviction\nenable-debug-command yes\n\
             unixsocket {}\nuser harness on nopass ~* &* +@all\n",
            self.control().display()
        );
        let port = self.port;
        let ports = if self.options.certificates.is_some() {
            format!(
                "port 0\ntls-port {port}\ntls-auth-clients no\ntls-cert-file {directory}/certificate.pem\n\
                 tls-key-file {directory}/key.pem\ntls-ca-cert-file {directory}/authority.pem\n"
            )
        } else {
            format!("port {port}\n")
        };
        text.push_str(&ports);
        for (name, value) in &self.options.directives {
            writeln!(text, "{name} {value}").expect("a string takes everything");
        }
        text
    }

    /// The socket that the harness itself uses.
    fn control(&self) -> PathBuf {
        self.directory.path().join("control")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn trusting(url: &str, authority: &str) -> redis::RedisResult<Client> {
    Client::build_with_tls(
        url,
        TlsCertificates {
            client_tls: None,
            root_cert: Some(authority.as_bytes().to_vec()),
        },
    )
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .expect("loopback has a free port")
        .port()
}
