//! One process of the fleet.

use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use leader_core::{Event, Events, EventsError, Instance, Keep, Target, Timing};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::floor::{Floor, now};
use crate::{NAMESPACE, TTL};

/// The words of its command line.
struct Words {
    life: String,
    id: String,
    url: String,
    file: PathBuf,
    register: PathBuf,
    first: bool,
}

impl Words {
    fn read(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut word = |what| words.next().context(what);
        Ok(Self {
            life: word("a life")?,
            id: word("an id")?,
            url: word("a URL")?,
            file: word("a file")?.into(),
            register: word("a register")?.into(),
            first: word("whether it is the first start")? == "first",
        })
    }
}

/// Runs until SIGTERM. Bodies have one thread, so that they start in the order of their fences; telling and listening have another, so that a
/// body that blocks holds up neither.
///
/// # Errors
/// When it cannot start.
pub fn run(words: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let words = Words::read(words)?;
    // One that stands still when the rig dies hears of it by nothing else.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let log = tracing_to(&words.file.with_extension("log"))?;
    let floor = Floor::new(&words.life, &words.file, &words.register)?;
    let beside = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let bodies = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = bodies.block_on(live(words, floor, beside.handle().clone()));
    drop(bodies);
    beside.shutdown_timeout(Duration::from_secs(1));
    drop(log);
    done
}

async fn live(words: Words, floor: Floor, beside: Handle) -> anyhow::Result<()> {
    let bootstrap = leader_core::bootstrap(words.url)
        .namespace(NAMESPACE)
        .service("chaos_fleet")
        .instance_id(words.id)
        .timing(Timing::from_ttl(TTL))
        .drain(Duration::from_secs(2))
        .first_start(words.first)
        .history(Keep::default().runs(2_000).others(2_000))
        .state(floor.clone());
    let told = beside.spawn(follow(bootstrap.events(), floor.clone()));
    let instance = bootstrap.await?;
    witness(instance.clone(), floor.clone());
    beside.spawn(obey(instance.clone(), floor, Handle::current()));
    instance.run_until_shutdown().await?;
    told.await?;
    Ok(())
}

/// Tells of everything that happens, until the instance has stopped.
async fn follow(mut events: Events, floor: Floor) {
    loop {
        match events.recv().await {
            Ok(stamped) => {
                if let Some((event, fields)) = told(stamped.event) {
                    floor.tell(event, stamped.at.as_nanos(), fields);
                }
            }
            Err(EventsError::Lagged(count)) => {
                floor.tell("hole", now(), json!({ "text": format!("{count} events were dropped") }));
            }
            Err(_) => return,
        }
    }
}

fn told(event: Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Started { .. } => ("started", json!({})),
        Event::Stopped { .. } => ("stopped", json!({})),
        Event::Elected { group, term, .. } => ("elected", json!({ "group": group.as_str(), "term": term })),
        Event::Lost {
            group,
            term,
            reason,
            ended,
            ..
        } => {
            let (until, text) = (ended.as_nanos(), reason.as_str());
            (
                "lost",
                json!({ "group": group.as_str(), "term": term, "until": until, "text": text }),
            )
        }
        Event::EnginePanicked { error, .. } => ("panic", json!({ "text": error })),
        Event::RuntimeWedged { running, .. } => ("wedged", json!({ "text": running.join(" ") })),
        Event::Quarantined { group, remaining, .. } => (
            "quarantined",
            json!({ "group": group.as_str(), "text": format!("{remaining:?}") }),
        ),
        Event::Decided {
            job,
            first,
            outcome,
            fence,
            ..
        } => {
            let tick = first.as_millisecond();
            (
                "decided",
                json!({ "job": job.as_str(), "tick": tick, "fence": fence, "text": outcome.as_str() }),
            )
        }
        _ => return None,
    })
}

/// How often the gates are looked at, in nanoseconds.
const LOOK: u64 = 3_000_000;
/// A gap between two looks after which they are not taken for one span.
const GAP: u64 = 20_000_000;
/// How often a span that goes on is told.
const TELL: u64 = 200_000_000;

/// A thread that asks all the time who leads, and tells what it was told, and when it was kept from asking: the library is believed by
/// nothing that it says of itself alone.
fn witness(instance: Instance, floor: Floor) {
    std::thread::spawn(move || {
        let groups: Vec<String> = instance
            .groups()
            .iter()
            .map(|status| status.group.to_string())
            .collect();
        // From the end of the first look to the beginning of the last.
        let mut spans: Vec<Option<(u64, u64)>> = vec![None; groups.len()];
        let mut last = now();
        loop {
            std::thread::sleep(Duration::from_nanos(LOOK));
            let woken = now();
            if woken - last > LOOK + GAP / 2 {
                floor.tell("stall", woken, json!({ "from": last, "until": woken }));
            }
            for (group, span) in groups.iter().zip(&mut spans) {
                let before = now();
                let leads = instance.is_leader(group);
                let after = now();
                let goes_on = span.filter(|(_, until)| leads && before - until < GAP);
                let over = |(from, until): (u64, u64)| {
                    if until > from {
                        floor.tell("seen", until, json!({ "group": group, "from": from, "until": until }));
                    }
                };
                *span = match (*span, goes_on, leads) {
                    (_, Some((from, _)), _) if before.saturating_sub(from) > TELL => {
                        over((from, before));
                        Some((before, before))
                    }
                    (_, Some((from, _)), _) => Some((from, before)),
                    (old, None, _) => {
                        old.into_iter().for_each(over);
                        leads.then_some((after, after))
                    }
                };
            }
            last = now();
        }
    });
}

/// Does what a person might: one command a line.
async fn obey(instance: Instance, floor: Floor, bodies: Handle) {
    let (send, mut lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
        // Whoever has started it is gone: nobody would ever stop it.
        std::process::exit(3);
    });
    while let Some(line) = lines.recv().await {
        let words: Vec<_> = line.split_whitespace().collect();
        let done = match words.as_slice() {
            ["block", millis] => {
                let span = Duration::from_millis(millis.parse().unwrap_or(0));
                bodies.spawn(async move { std::thread::sleep(span) });
                Ok(())
            }
            ["step_down", group] => instance.step_down(group).await.map_err(|error| error.to_string()),
            ["pause", job, gap, millis] => pause(&instance, job, gap, millis).await,
            ["resume", job] => {
                let resumed = instance.control().resume(Target::job(*job)).await;
                resumed.map(drop).map_err(|error| error.to_string())
            }
            _ => Err("not understood".to_owned()),
        };
        let done = done.map_or_else(|error| error, |()| "done".to_owned());
        floor.tell("did", now(), json!({ "text": format!("{line}: {done}") }));
    }
}

/// Pauses a job for some time at the most: whoever asked may not come back.
async fn pause(instance: &Instance, job: &str, gap: &str, millis: &str) -> Result<(), String> {
    let until = Timestamp::now() + SignedDuration::from_millis(millis.parse().unwrap_or(0));
    let pausing = instance.control().pause(Target::job(job)).until(until);
    let pausing = if gap == "owed" { pausing.owed() } else { pausing };
    pausing.await.map(drop).map_err(|error| error.to_string())
}

/// Writes the log of the library to a file beside the other.
fn tracing_to(path: &std::path::Path) -> anyhow::Result<std::fs::File> {
    let file = std::fs::File::create(path)?;
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(file.try_clone()?));
    subscriber.init();
    Ok(file)
}
