//! Three instances in one process on one store: who leads what, and every tick run once, while leaders are stopped, killed, frozen
//! and told to step down.
//!
//! On a terminal a live view with keys, elsewhere plain lines; `--script` does what the keys do, `--json` tells the sums alone.

mod fleet;
mod jobs;
mod options;
mod report;
mod terminal;
mod view;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use fleet::{Fleet, TTL};
use jobs::GROUPS;
use options::{Act, FREEZE, Options};
use report::Report;
use terminal::{Key, Terminal};
use view::{Changes, View};

/// How often acts are tried and keys are read.
const BEAT: Duration = Duration::from_millis(50);
/// How often the view is renewed.
const FRAME: Duration = Duration::from_millis(200);
/// How long an act waits for a leader to do it to.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where the view goes.
enum Face {
    Screen(Terminal),
    Lines(Changes),
    Silent,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::of_process();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    log.with_writer(std::io::stderr).init();
    match run(options).await {
        Ok(report) if report.is_good() => ExitCode::SUCCESS,
        Ok(report) => {
            eprintln!("error: {}", report.line());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> anyhow::Result<Report> {
    let end = options.seconds;
    let json = options.json;
    let mut fleet = Fleet::start().await?;
    let mut face = if json {
        Face::Silent
    } else if std::io::stdout().is_terminal() {
        Terminal::take().map_or_else(|_| Face::Lines(Changes::default()), Face::Screen)
    } else {
        Face::Lines(Changes::default())
    };
    play(&mut fleet, options, &mut face).await?;

    let standing = report::standing(&fleet);
    let until = Timestamp::now();
    fleet.stop().await;
    let report = Report::read(&fleet, until).await?;
    fleet.observer.shutdown().await;
    // The terminal is given back first: what follows stays on it.
    let lines = matches!(face, Face::Lines(_));
    drop(face);
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", report::json(standing, &report))?;
    } else {
        let span = end.map(|end| format!(" after {end} s")).unwrap_or_default();
        writeln!(out, "{}stopped{span}: {}", if lines { "\n" } else { "" }, report.line())?;
    }
    out.flush()?;
    Ok(report)
}

/// An act that waits for its moment, or for somebody to do it to.
struct Due {
    act: Act,
    by: Instant,
}

/// Runs the show until its end.
async fn play(fleet: &mut Fleet, options: Options, face: &mut Face) -> anyhow::Result<()> {
    let began = Instant::now();
    let end = options
        .seconds
        .map(|seconds| began + Duration::from_secs(seconds.into()));
    let mut script = options.script.into_iter().peekable();
    let mut due: VecDeque<Due> = VecDeque::new();
    let mut note = String::new();
    let mut chosen = 0;
    let (_keyless, mut keys) = mpsc::unbounded_channel();
    if let Face::Screen(_) = &face {
        keys = terminal::keys();
    }
    let mut beat = tokio::time::interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut frame = began;
    let mut signal = std::pin::pin!(signal());
    loop {
        tokio::select! {
            _ = beat.tick() => {}
            () = &mut signal => return Ok(()),
            Some(key) = keys.recv() => match key {
                Key::Quit => return Ok(()),
                Key::NextGroup => chosen = (chosen + 1) % GROUPS.len(),
                Key::Letter(letter) => {
                    if let Some(act) = act_of(letter, GROUPS[chosen]) {
                        let by = Instant::now() + PATIENCE;
                        due.push_back(Due { act, by });
                        frame = Instant::now();
                    }
                }
            },
        }
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            return Ok(());
        }
        while let Some((at, act)) = script.next_if(|(at, _)| now >= began + *at) {
            let by = began + at + PATIENCE;
            due.push_back(Due { act, by });
        }
        if let Some(next) = due.front() {
            let said = match fleet.act(&next.act).await {
                Some(done) => Some(done),
                None if now >= next.by => Some(format!("could not {}: there is none", next.act)),
                None => None,
            };
            if let Some(said) = said {
                due.pop_front();
                tell(face, &said)?;
                note = said;
            }
        }
        if now >= frame {
            frame = now + FRAME;
            show(fleet, face, began.elapsed(), end.map(|end| end - began), chosen, &note).await?;
        }
    }
}

fn act_of(letter: char, group: &'static str) -> Option<Act> {
    Some(match letter {
        'k' => Act::Kill(group),
        's' => Act::Stop(group),
        'f' => Act::Freeze(group, FREEZE),
        'd' => Act::StepDown(group),
        'r' => Act::Restart,
        _ => return None,
    })
}

/// Says what was done, where there is no screen that shows it.
fn tell(face: &Face, said: &str) -> std::io::Result<()> {
    match face {
        Face::Lines(_) => writeln!(std::io::stdout(), "{} {said}", Timestamp::now().strftime("%H:%M:%S")),
        Face::Silent if said.starts_with("could not") => writeln!(std::io::stderr(), "warning: {said}"),
        Face::Screen(_) | Face::Silent => Ok(()),
    }
}

async fn show(
    fleet: &Fleet,
    face: &mut Face,
    passed: Duration,
    of: Option<Duration>,
    chosen: usize,
    note: &str,
) -> anyhow::Result<()> {
    match face {
        Face::Silent => {}
        Face::Lines(changes) => {
            let text = changes.since(&View::of(fleet).await?);
            std::io::stdout().write_all(text.as_bytes())?;
        }
        Face::Screen(terminal) => {
            let of = of.map(|of| format!(" of {of:?}")).unwrap_or_default();
            let instances = fleet.members.len();
            let head = format!(
                "cluster_cron: {instances} instances, TTL {TTL:?}, {} s{of}",
                passed.as_secs()
            );
            let group = GROUPS[chosen];
            let foot = [
                note.to_owned(),
                format!("{group}: s stop  k kill  f freeze  d step-down  | tab group  r restart  q quit"),
            ];
            let lines = View::of(fleet).await?.screen(terminal::height(), &head, &foot);
            terminal.draw(&lines)?;
        }
    }
    Ok(())
}

/// Completes at a signal that means the end.
#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    let mut waiting = tokio::task::JoinSet::new();
    for mut installed in kinds.into_iter().filter_map(|kind| signal(kind).ok()) {
        waiting.spawn(async move { installed.recv().await });
    }
    if waiting.join_next().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Completes at a signal that means the end.
#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
