//! The processes of the fleet, each behind a link of its own, and the files that they write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use leader_tests::Proxy;
use leader_tests::audit::Line;
use rustix::process::{Pid, Signal, kill_process};

use crate::PASSWORD;
use crate::floor::now;

/// How long after its start, in nanoseconds, a process may not hear a signal yet.
const LISTENS: u64 = 2_000_000_000;

/// Where the files of a run are.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// The register's socket.
    pub register: PathBuf,
}

/// One life of a process, from its start to its end.
#[derive(Debug)]
struct Life {
    name: String,
    file: PathBuf,
    read: u64,
    rest: Vec<u8>,
    /// When it told that it has joined its fleet.
    started: Option<u64>,
    over: bool,
}

/// One member of the fleet: a link, and a process that comes and goes.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// The link between its processes and the server.
    pub proxy: Proxy,
    place: Place,
    count: u32,
    /// When its present process was asked to stop, and whether it was killed.
    asked: Option<u64>,
    killed: bool,
    child: Option<Child>,
    lives: Vec<Life>,
}

impl Node {
    /// A member without a process.
    pub async fn new(number: usize, port: u16, place: &Place) -> Self {
        Self {
            id: format!("n{number}"),
            proxy: Proxy::start(port).await,
            place: place.clone(),
            count: 0,
            asked: None,
            killed: false,
            child: None,
            lives: Vec::new(),
        }
    }

    /// Starts its next process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, first: bool) -> std::io::Result<()> {
        self.count += 1;
        let name = format!("{}.{}", self.id, self.count);
        let file = self.place.folder.join(format!("{name}.lines"));
        let errors = File::create(self.place.folder.join(format!("{name}.err")))?;
        let url = self.proxy.url().replace("redis://", &format!("redis://:{PASSWORD}@"));
        // Of this program as it runs, whatever has been built since.
        let mut command = Command::new("/proc/self/exe");
        // What is set where the rig is started is no part of the plan.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("LEADER_") {
                command.env_remove(variable);
            }
        }
        let child = command
            .args(["node", &name, &self.id, &url])
            .args([&file, &self.place.register])
            .arg(if first { "first" } else { "again" })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()?;
        self.child = Some(child);
        (self.asked, self.killed) = (None, false);
        self.lives.push(Life {
            name,
            file,
            read: 0,
            rest: Vec::new(),
            started: None,
            over: false,
        });
        Ok(())
    }

    /// The name of its present or last life.
    pub fn life(&self) -> &str {
        self.lives.last().map_or("", |life| &life.name)
    }

    /// Whether it has a process.
    pub fn is_alive(&self) -> bool {
        self.child.is_some()
    }

    /// The id of its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends a signal to its process, if it has one.
    pub fn signal(&mut self, signal: Signal) {
        match signal {
            Signal::TERM => self.asked = self.asked.or(Some(now())),
            Signal::KILL => self.killed = true,
            _ => {}
        }
        if let Some(child) = &self.child {
            // It may have ended, and is not reaped before we do.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Tells its process what to do.
    pub fn command(&mut self, line: &str) {
        if let Some(input) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            // One that has ended hears nothing.
            let _ = writeln!(input, "{line}");
        }
    }

    /// How its process has ended, once it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        if let Some(life) = self.lives.last_mut() {
            life.over = true;
        }
        Some(status)
    }

    /// Whether its process may have ended so: well, or by a signal that was sent and that it could not hear.
    pub fn may_end(&self, status: ExitStatus) -> bool {
        let started = self.lives.last().and_then(|life| life.started);
        match status.signal() {
            Some(9) => self.killed,
            // One that is hit before it listens ends by the signal itself.
            Some(15) => self
                .asked
                .is_some_and(|asked| started.is_none_or(|started| asked < started + LISTENS)),
            _ => status.success(),
        }
    }

    /// What its processes have said of panics, which the library may have survived.
    pub fn panics(&self) -> Vec<String> {
        let said = |life: &Life| {
            let said = std::fs::read_to_string(life.file.with_extension("err")).unwrap_or_default();
            said.contains("panicked at").then(|| format!("{}: {said}", life.name))
        };
        self.lives.iter().filter_map(said).collect()
    }

    /// Whether all threads of its process stand still.
    pub fn is_still(&self) -> bool {
        let Some(tasks) = self
            .pid()
            .and_then(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok())
        else {
            return true;
        };
        // `<id> (<name>) <state> …`
        let mut states = tasks.filter_map(Result::ok).filter_map(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            stat.rsplit_once(") ")?.1.chars().next()
        });
        states.all(|state| state == 'T')
    }

    /// Reads what its processes have told since the last call.
    ///
    /// # Panics
    /// When a file cannot be read, or holds what is no line.
    pub fn read(&mut self) -> Vec<Line> {
        self.lives.iter_mut().flat_map(Life::read).collect()
    }

    /// Deletes the files of processes that have ended before the last call, and have been read.
    pub fn tidy(&mut self) {
        let last = self.lives.len().saturating_sub(1);
        let mut at = 0;
        self.lives.retain(|life| {
            let goes = life.over && at < last;
            at += 1;
            if goes {
                for extension in ["lines", "log", "err"] {
                    let _ = std::fs::remove_file(life.file.with_extension(extension));
                }
            }
            !goes
        });
    }
}

impl Life {
    fn read(&mut self) -> Vec<Line> {
        let Ok(mut file) = File::open(&self.file) else {
            // It has not come so far yet.
            return Vec::new();
        };
        file.seek(SeekFrom::Start(self.read)).expect("a file of ours");
        let before = self.rest.len();
        file.read_to_end(&mut self.rest).expect("a file of ours");
        self.read += (self.rest.len() - before) as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let whole: Vec<_> = self.rest.drain(..=end).collect();
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let name = &self.name;
        let lines: Vec<Line> = lines
            .map(|line| {
                let text = String::from_utf8_lossy(line);
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
            })
            .collect();
        let started = lines.iter().find(|line| line.event == "started");
        self.started = self.started.or(started.map(|line| line.at));
        lines
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Who leads, by the processes' own last words.
#[derive(Debug, Default)]
pub struct Leaders(BTreeMap<String, (String, u64)>);

impl Leaders {
    /// Hears more of what was told, in any order between processes.
    pub fn hear(&mut self, lines: &[Line]) {
        for line in lines {
            match line.event.as_str() {
                "elected" if self.0.get(&line.group).is_none_or(|(_, term)| *term < line.term) => {
                    self.0.insert(line.group.clone(), (line.life.clone(), line.term));
                }
                "lost" if self.0.get(&line.group).is_some_and(|(_, term)| *term == line.term) => {
                    self.0.remove(&line.group);
                }
                _ => {}
            }
        }
    }

    /// The life that leads a group.
    pub fn of(&self, group: &str) -> Option<&str> {
        Some(&self.0.get(group)?.0)
    }

    /// The groups that a life leads.
    pub fn led_by(&self, life: &str) -> Vec<String> {
        let of = self.0.iter().filter(|(_, (leader, _))| leader == life);
        of.map(|(group, _)| group.clone()).collect()
    }
}

/// What a process has in use: its memory in KiB, and its open files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Resident.
    pub kib: u64,
    /// Files, sockets and the like.
    pub files: usize,
}

impl Use {
    /// That of a process of this machine.
    pub fn of(pid: u32) -> Self {
        let root = Path::new("/proc").join(pid.to_string());
        let status = std::fs::read_to_string(root.join("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Self {
            kib: kib.unwrap_or(0),
            files: std::fs::read_dir(root.join("fd")).map_or(0, Iterator::count),
        }
    }
}

impl std::fmt::Display for Use {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.1} MiB/{} files",
            f64::from(u32::try_from(self.kib).unwrap_or(u32::MAX)) / 1024.0,
            self.files
        )
    }
}

/// A line of the rig itself, for whoever reads the files.
pub fn note(file: &mut File, text: &str) {
    // Nobody's judgement hangs on it.
    let _ = writeln!(file, "{} {text}", now());
}
