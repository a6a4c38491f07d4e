//! Other queues, each run as a process of its own that tells how long it took: `tests/peers`, built when it is asked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use leader_tests::RedisServer;

use crate::AT_ONCE;
use crate::meter::rate;

/// Those in Rust: the word that chooses one, what it is called, and how many tasks it gets.
///
/// One script of `apalis-redis` moves all that is due with one command, and fails above some 7,990: Lua has no room for so many arguments.
const IN_RUST: [(&str, &str, u32); 4] = [
    ("rsmq-batch", "rsmq_async, in batches", AT_ONCE),
    ("rsmq-single", "rsmq_async, one at a time", AT_ONCE),
    ("apalis", "apalis-redis", 7_500),
    ("oxana", "oxana", AT_ONCE),
];

/// One of them, ready to run.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// How many tasks it gets.
    pub(crate) tasks: u32,
    program: PathBuf,
    word: OsString,
}

impl Peer {
    /// Stores its tasks on an empty server and runs them; tasks per second from when its workers start.
    pub(crate) async fn run(&self, server: &RedisServer) -> f64 {
        server.command(&["FLUSHALL"]).await;
        let mut command = tokio::process::Command::new(&self.program);
        command.arg(&self.word).arg(server.port().to_string());
        command.arg(self.tasks.to_string()).stderr(Stdio::inherit());
        let ended = command.kill_on_drop(true).output().await.expect("it was built");
        server.command(&["FLUSHALL"]).await;
        let told = String::from_utf8_lossy(&ended.stdout);
        let seconds = told.trim().strip_prefix("seconds ").map(str::parse);
        match seconds {
            Some(Ok(seconds)) if ended.status.success() => rate(self.tasks, Duration::from_secs_f64(seconds)),
            _ => panic!("{}: {}, and it has told {told:?}", self.name, ended.status),
        }
    }
}

/// Builds them in a directory of their own beside this program's. The one on Node is left out, with a word, where it cannot be had.
pub(crate) fn prepare() -> Vec<Peer> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let program = std::env::current_exe().expect("a program");
    // It is `<profile>/deps/tasks-..` there.
    let target = program
        .ancestors()
        .nth(3)
        .expect("cargo has put it there")
        .join("peers");
    println!("building other queues in {}", target.display());
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--release", "--locked", "--quiet", "--manifest-path"]);
    build.arg(package.join("Cargo.toml")).arg("--target-dir").arg(&target);
    assert!(went_well(&mut build), "the peers cannot be built: {build:?}");
    let peer = |(word, name, tasks): (&str, _, _)| Peer {
        name,
        tasks,
        program: target.join("release/leader-peers"),
        word: word.into(),
    };
    let mut peers: Vec<_> = IN_RUST.into_iter().map(peer).collect();
    match on_node(&package.join("node"), &target.join("node")) {
        Ok(peer) => peers.push(peer),
        Err(why) => println!("bullmq is skipped: {why}"),
    }
    peers
}

fn went_well(command: &mut Command) -> bool {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn on_node(package: &Path, directory: &Path) -> Result<Peer, String> {
    if !went_well(Command::new("node").arg("--version")) {
        return Err("there is no `node`".to_owned());
    }
    let told = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(directory).map_err(told)?;
    for file in ["package.json", "package-lock.json", "bullmq.mjs"] {
        std::fs::copy(package.join(file), directory.join(file)).map_err(told)?;
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--silent", "--no-audit", "--no-fund"]);
    if !went_well(install.current_dir(directory)) {
        return Err("`npm ci` has failed".to_owned());
    }
    Ok(Peer {
        name: "bullmq",
        tasks: AT_ONCE,
        program: "node".into(),
        word: directory.join("bullmq.mjs").into(),
    })
}
