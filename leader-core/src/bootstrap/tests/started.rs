//! What the log and the handle say of a start.

use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;

use super::*;

/// What this thread has logged while it lived.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics here").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// The lines with a part.
    fn lines(&self, part: &str) -> Vec<String> {
        let text = self.0.lock().expect("no test panics here").clone();
        let text = String::from_utf8(text).expect("text");
        text.lines()
            .filter(|line| line.contains(part))
            .map(str::to_owned)
            .collect()
    }
}

/// By the embedded store's clock, which is right, on a machine whose wall clock is an hour ahead.
#[tokio::test]
async fn what_comes_next_is_told_by_the_fleets_clock() {
    let log = Log::default();
    let listening = log.listen();
    let before = jiff::Timestamp::now();
    let ahead = SignedDuration::from_hours(1);
    let changed = given(&[]).job("scheduled", |job| job.every("1m"));
    let instance = changed.__wall_ahead(ahead).await.unwrap();
    drop(listening);
    let near = |at: jiff::Timestamp| {
        let away = at.duration_since(before);
        assert!(away.is_positive() && away < SignedDuration::from_mins(3), "{at}");
    };
    let told = log.lines("instance started");
    // Of whichever job: at some hours another one's tick is as near.
    let next = told[0].split("next=\"").nth(1).expect("the next tick");
    let (_, at) = next.split('"').next().unwrap().split_once(" at ").expect("when");
    near(at.parse().unwrap());
    near(instance.preview("scheduled", 1).unwrap()[0].at);
    let jobs = instance.jobs();
    let scheduled = jobs.iter().find(|job| job.name.as_str() == "scheduled").unwrap();
    near(scheduled.next.unwrap());
    instance.shutdown().await;
}

#[tokio::test]
async fn grace_and_jitter_are_shown_as_they_are_in_force() {
    let log = Log::default();
    let listening = log.listen();
    let changed = given(&[]).job("scheduled", |job| job.every("2s").jitter("1m"));
    let changed = changed.job("zoned", |job| job.cron("0 0 1-7 1 MON").grace("90m"));
    let instance = changed.await.unwrap();
    drop(listening);
    let jobs = instance.jobs();
    let of = |name: &str| {
        let job = jobs.iter().find(|job| job.name.as_str() == name).unwrap();
        (job.grace, job.jitter)
    };
    // Both end with the distance to the next tick.
    assert_eq!(of("scheduled"), (Duration::from_secs(2), Duration::from_millis(1999)));
    assert_eq!(of("zoned"), (Duration::from_secs(5400), Duration::from_secs(600)));
    assert_eq!(of("standing"), (Duration::ZERO, Duration::ZERO));
    let line = |name: &str| log.lines(&format!(" job job={name} ")).pop().expect(name);
    assert!(
        line("zoned").ends_with(r#" grace="1h30m" jitter="10m""#),
        "{}",
        line("zoned")
    );
    let scheduled = line("scheduled");
    assert!(scheduled.ends_with(r#"every 2s jitter="1m""#), "{scheduled}");
    assert!(log.lines("has no tick any more").is_empty());
    instance.shutdown().await;
}

#[tokio::test]
async fn a_schedule_that_is_over_is_warned_of() {
    let log = Log::default();
    let listening = log.listen();
    let over = given(&[]).job("zoned", |job| job.cron("0 0 0 1 1 ? 2001").days(Days::Unsaid));
    let instance = over.await.unwrap();
    drop(listening);
    let told = log.lines("has no tick any more");
    assert!(
        told.len() == 1 && told[0].contains("WARN") && told[0].contains("job=zoned"),
        "{told:?}"
    );
    instance.shutdown().await;
}
