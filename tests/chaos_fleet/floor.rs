//! What a process tells of itself: lines of JSON in a file of its own.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use leader_core::Tick;
use serde_json::{Value, json};

use crate::register;

/// `CLOCK_BOOTTIME` in nanoseconds: the same for all processes of a machine.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// Where a process writes, and what its bodies need.
#[derive(Clone, Debug)]
pub struct Floor {
    life: Arc<str>,
    file: Arc<File>,
    register: Arc<Path>,
}

impl Floor {
    /// The floor of one life of a process.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn new(life: &str, file: &Path, register: &Path) -> std::io::Result<Self> {
        Ok(Self {
            life: life.into(),
            file: Arc::new(OpenOptions::new().create(true).append(true).open(file)?),
            register: register.into(),
        })
    }

    /// Writes a line in one piece, past every buffer of the process: a kill can cost the last one at the most.
    pub fn tell(&self, event: &str, at: u64, fields: Value) {
        let mut line = json!({ "event": event, "life": &*self.life, "at": at });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        let mut text = line.to_string();
        text.push('\n');
        // A process that cannot tell is of no use: the run would judge half of it.
        if let Err(error) = (&*self.file).write_all(text.as_bytes()) {
            eprintln!("nothing can be told: {error}");
            std::process::abort();
        }
    }

    /// Writes to the fenced register; whether it took it.
    ///
    /// # Errors
    /// When the register does not answer.
    pub async fn write(&self, key: &str, fence: u64) -> std::io::Result<bool> {
        register::write(&self.register, key, fence, &self.life).await
    }

    /// A body: tells of its start before anything else, writes, waits, writes again and tells how it ended.
    ///
    /// # Errors
    /// When it is to fail, or the register does not answer.
    pub async fn perform(&self, tick: &Tick, takes: Duration, fails: bool) -> anyhow::Result<()> {
        let began = now();
        self.tell(
            "start",
            began,
            json!({
                "group": tick.group().as_str(),
                "job": tick.job().as_str(),
                "tick": tick.scheduled_at().as_millisecond(),
                "attempt": tick.attempt(),
                "fence": tick.fence(),
                "term": tick.term(),
            }),
        );
        let mut presence = Presence {
            floor: self.clone(),
            job: tick.job().as_str().to_owned(),
            fence: tick.fence(),
            polled: began,
            result: None,
        };
        // Bodies beside each other write to different places.
        let key = match tick.job().as_str() {
            job @ ("parallel" | "flaky_beside") => format!("{job}@{}", tick.scheduled_at().as_millisecond()),
            job => job.to_owned(),
        };
        self.write(&key, tick.fence()).await?;
        let end = began + u64::try_from(takes.as_nanos()).unwrap_or(0);
        while now() < end {
            presence.polled = now();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        presence.polled = now();
        self.write(&key, tick.fence()).await?;
        presence.polled = now();
        presence.result = Some(if fails { "error" } else { "ok" });
        anyhow::ensure!(!fails, "as chance has it");
        Ok(())
    }
}

/// Tells of a body's end, also when it is dropped.
struct Presence {
    floor: Floor,
    job: String,
    fence: u64,
    polled: u64,
    result: Option<&'static str>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        let event = if self.result.is_some() { "end" } else { "gone" };
        let fields = json!({
            "job": self.job,
            "fence": self.fence,
            "until": self.polled,
            "text": self.result.unwrap_or_default(),
        });
        self.floor.tell(event, now(), fields);
    }
}
