//! One instance per process, for real fleets: what it does is one JSON object per line on stdout; the log goes to stderr.
//!
//! Start several with one `--store` and one `--namespace`, then kill, freeze and stop them: `mono_ns` is the machine's
//! `CLOCK_MONOTONIC`, so the lines of all processes of a machine can be merged by it.

mod register;

use std::io::Write;
use std::time::Duration;

use leader_core::{Clock, Event, Events, EventsError, Moment, State, Tick, Timing, leader_only};
use leader_examples::CommandLine;
use register::Register;
use serde_json::{Map, Value, json};

const USAGE: &str = "\
usage: node --store URL --id NAME --namespace NS --ttl 2s [--first-start] [--only GROUPS] [--register] [--block SPAN] [--seconds N]

  --store URL      the Redis or Valkey server of the fleet
  --id NAME        the name of this instance
  --namespace NS   what separates this fleet from others on the same store
  --ttl SPAN       how long a lease lives, such as 2s
  --first-start    no leader of an earlier life can believe: skips the wait of a group's first start
  --only GROUPS    campaigns in these groups only, such as default,cleanup
  --register       leads one more group, `register`, and writes to a fenced register on the store while it does
  --block SPAN     blocks its only thread for so long, half a second after the start
  --seconds N      stops by itself, as at SIGTERM";

/// Writes this instance's lines.
#[derive(Clone)]
struct Lines {
    instance: String,
}

impl Lines {
    fn instance(&self) -> &str {
        &self.instance
    }

    /// Writes a line, in one piece: a process may be killed at any time.
    fn write(&self, event: &str, mono_ns: u64, fields: Value) -> std::io::Result<()> {
        let mut line = Map::new();
        line.insert("event".to_owned(), event.into());
        line.insert("instance".to_owned(), self.instance.as_str().into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        line.insert("mono_ns".to_owned(), mono_ns.into());
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A body has started. Written by the body itself and before its effect, so that a frozen or killed process has told of every
    /// start; a start that cannot be told fails the run.
    fn tick(&self, tick: &Tick) -> std::io::Result<()> {
        let fields = json!({
            "group": tick.group().as_str(),
            "job": tick.job().as_str(),
            "scheduled_at": tick.scheduled_at().to_string(),
            "fence": tick.fence(),
            "term": tick.term(),
        });
        self.write("tick", mono(), fields)
    }

    /// Tells of everything that happens, until the instance has stopped.
    async fn follow(self, mut events: Events) -> anyhow::Result<()> {
        loop {
            let stamped = match events.recv().await {
                Ok(stamped) => stamped,
                Err(EventsError::Lagged(count)) => anyhow::bail!("{count} events were dropped: the log has a hole"),
                Err(_) => return Ok(()),
            };
            let last = matches!(stamped.event, Event::Stopped { .. });
            if let Some((event, fields)) = told(stamped.event) {
                self.write(event, monotonic(stamped.at), fields)?;
            }
            if last {
                return Ok(());
            }
        }
    }
}

/// An event's line, without what all lines have; `None` for what is not told.
fn told(event: Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Started { .. } => ("started", json!({})),
        Event::Elected { group, term, .. } => ("elected", json!({ "group": group.as_str(), "fence": term })),
        Event::Lost {
            group,
            term,
            reason,
            ended,
            ..
        } => {
            let until_ns = monotonic(ended);
            let fields =
                json!({ "group": group.as_str(), "fence": term, "reason": reason.as_str(), "until_ns": until_ns });
            ("lost", fields)
        }
        Event::Decided {
            job,
            group,
            first,
            last,
            count,
            outcome,
            fence,
            error,
            ..
        } => {
            let mut fields = json!({
                "group": group.as_str(),
                "job": job.as_str(),
                "scheduled_at": first.to_string(),
                "outcome": outcome.as_str(),
            });
            if fence != 0 {
                fields["fence"] = fence.into();
            }
            if count != 1 {
                fields["last"] = last.to_string().into();
                fields["count"] = count.into();
            }
            if !error.is_empty() {
                fields["reason"] = error.into();
            }
            ("outcome", fields)
        }
        Event::Stopped { .. } => ("stopped", json!({})),
        _ => return None,
    })
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
fn mono() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).unwrap_or(0)
}

/// The same instant on `CLOCK_MONOTONIC`: the framework's own clock counts suspend as well, so it is ahead by a constant, but for
/// the time since a sleep of the machine.
fn monotonic(at: Moment) -> u64 {
    loop {
        let before = mono();
        let framework = Clock::system().now().as_nanos();
        let after = mono();
        // A process may be frozen between two looks: then they say nothing of each other.
        if after - before < NEAR {
            return at
                .as_nanos()
                .saturating_add(before.midpoint(after))
                .saturating_sub(framework);
        }
    }
}

/// How far apart two looks at clocks may be, in nanoseconds: some hundred are usual.
const NEAR: u64 = 100_000;

/// Each second, in the group `default`.
#[leader_only(every = "1s")]
async fn beat(tick: Tick, State(lines): State<Lines>) -> anyhow::Result<()> {
    lines.tick(&tick)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

/// Each second, in a group of its own.
#[leader_only(group = "cleanup", every = "1s")]
async fn sweep(tick: Tick, State(lines): State<Lines>) -> anyhow::Result<()> {
    lines.tick(&tick)?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

/// Takes longer than its period: every other tick is skipped as overlapping, and a shutdown waits for the body.
#[leader_only(group = "reports", every = "5s")]
async fn digest(tick: Tick, State(lines): State<Lines>) -> anyhow::Result<()> {
    lines.tick(&tick)?;
    tokio::time::sleep(Duration::from_secs(8)).await;
    Ok(())
}

/// Fails every third time, whichever instance runs it.
#[leader_only(every = "2s")]
async fn flaky(tick: Tick, State(lines): State<Lines>) -> anyhow::Result<()> {
    lines.tick(&tick)?;
    anyhow::ensure!(tick.scheduled_at().as_second() / 2 % 3 != 0, "every third time");
    Ok(())
}

// One thread for the bodies: they start, and tell of it, in the order of their fences.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut line = CommandLine::of_process(USAGE);
    let store = line.required("--store");
    let id = line.required("--id");
    let namespace = line.required("--namespace");
    let ttl = line.span("--ttl").unwrap_or_else(|| line.refuse("`--ttl` is missing"));
    let first_start = line.flag("--first-start");
    let only = line.value("--only");
    let register = line.flag("--register");
    let block = line.span("--block");
    let seconds: Option<u32> = line.parsed("--seconds", "a whole number of seconds");
    line.finish();

    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    log.with_writer(std::io::stderr).init();

    let lines = Lines { instance: id.clone() };
    let register = register
        .then(|| Register::new(&store, &namespace, lines.clone()))
        .transpose()?;
    let mut bootstrap = leader_core::bootstrap(store)
        .namespace(namespace)
        .instance_id(id)
        .service("node")
        .timing(Timing::from_ttl(ttl))
        .first_start(first_start)
        // Groups change hands by faults alone.
        .spread(false)
        .groups(register.is_some().then_some(register::GROUP))
        .state(lines.clone());
    if let Some(groups) = only {
        bootstrap = bootstrap.campaign_only(groups.split(','));
    }
    let mut told = tokio::spawn(lines.follow(bootstrap.events()));
    let instance = bootstrap.await?;
    if let Some(register) = register {
        instance.while_leading(register::GROUP, move |lead| register.clone().hold(lead))?;
    }
    if let Some(span) = block {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            std::thread::sleep(span);
        });
    }
    let end = async {
        match seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds.into())).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        stopped = instance.run_until_shutdown() => stopped?,
        () = end => instance.shutdown().await,
        // Only what cannot be written, or a hole in it, ends the telling early.
        early = &mut told => return early?,
    }
    told.await?
}
