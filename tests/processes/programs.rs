//! The examples' binaries, built once, and processes that end with their handle.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use leader_tests::eventually;
use rustix::process::{Pid, Signal, kill_process};

/// A folder with the examples' binaries, instead of a build.
const BINARIES: &str = "LEADER_TEST_EXAMPLES";

/// Where an example's binary is; built on the first call.
pub fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let path = FOLDER.get_or_init(folder).join(name);
    assert!(path.exists(), "no binary at {}", path.display());
    path
}

fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os(BINARIES) {
        return folder.into();
    }
    // This binary is `<target>/<profile>/deps/<name>-…`.
    let me = std::env::current_exe().expect("a path");
    let profile = me.ancestors().nth(2).expect("a profile's folder");
    let target = profile.parent().expect("a target folder");
    let word = profile.file_name().and_then(|name| name.to_str()).expect("a profile");
    let word = if word == "debug" { "dev" } else { word };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // The same packages and features as the whole suite, so that nothing is built twice.
    let output = Command::new(cargo)
        .current_dir(workspace)
        .args([
            "build",
            "--workspace",
            "--all-features",
            "--examples",
            "--offline",
            "--profile",
            word,
        ])
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo can be started");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the examples do not build: {log}");
    profile.join("examples")
}

/// A running program; killed when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    out: Lines,
    err: Lines,
}

/// Lines that are read as they come.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn read(source: impl std::io::Read + Send + 'static) -> Self {
        let lines = Self::default();
        let sink = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                sink.0.lock().expect("nobody panics with it").push(line);
            }
        });
        lines
    }

    fn all(&self) -> Vec<String> {
        self.after(0)
    }

    fn after(&self, count: usize) -> Vec<String> {
        self.0.lock().expect("nobody panics with it")[count..].to_vec()
    }

    async fn has(&self, deadline: Duration, what: &str, line: impl Fn(&str) -> bool) -> String {
        let mut found = None;
        eventually(deadline, what, || {
            found = self.all().into_iter().find(|text| line(text));
            let is_there = found.is_some();
            async move { is_there }
        })
        .await;
        found.expect("it is there")
    }
}

impl Process {
    /// Starts an example; `name` is for messages.
    pub fn start(name: &str, command: &mut Command) -> Self {
        Self::spawn(name, command.env_remove("LEADER_REDIS_URL"))
    }

    /// Starts an example that finds its store in the environment.
    pub fn start_on(name: &str, command: &mut Command, url: &str) -> Self {
        Self::spawn(name, command.env("LEADER_REDIS_URL", url))
    }

    fn spawn(name: &str, command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let out = Lines::read(child.stdout.take().expect("piped"));
        let err = Lines::read(child.stderr.take().expect("piped"));
        let name = name.to_owned();
        Self { name, child, out, err }
    }

    /// What it has written to stdout so far.
    pub fn out(&self) -> Vec<String> {
        self.out.all()
    }

    /// What it has written to stdout after its first `count` lines.
    pub fn out_after(&self, count: usize) -> Vec<String> {
        self.out.after(count)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the child is ours");
    }

    /// Whether all its threads stand still.
    pub fn is_still(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it is there");
        // `<id> (<name>) <state> …`
        let mut states = tasks.map(|task| {
            let stat = std::fs::read_to_string(task.expect("readable").path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
        });
        states.all(|state| state == Some('T'))
    }

    /// Whether it has a handler for a signal, which would end it otherwise.
    pub fn catches(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
    }

    /// Waits for its end.
    pub async fn ended(&mut self, deadline: Duration) -> ExitStatus {
        let mut status = None;
        let what = format!("{} ends", self.name);
        eventually(deadline, &what, || {
            status = self.child.try_wait().expect("the child is ours");
            let ended = status.is_some();
            async move { ended }
        })
        .await;
        status.expect("it has ended")
    }

    /// Waits for a line of stdout.
    pub async fn says(&self, deadline: Duration, what: &str, line: impl Fn(&str) -> bool) -> String {
        self.out.has(deadline, what, line).await
    }

    /// Waits for a line of stderr.
    pub async fn logs(&self, deadline: Duration, what: &str, line: impl Fn(&str) -> bool) -> String {
        self.err.has(deadline, what, line).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let err = self.err.all();
            let tail = &err[err.len().saturating_sub(60)..];
            eprintln!("--- the log of {}:\n{}", self.name, tail.join("\n"));
        }
    }
}
