//! Five processes that dispatch and run a thousand tasks a second, and a nemesis that kills, freezes and cuts off one of them every second.
//!
//! `task_chaos [--seconds N] [--seed S]`. At the end each task that was stored must have had its effect, behind its fence, exactly once and not before it
//! was due; or be among the dead letters because it was lost with its workers too often.

mod ledger;
mod nemesis;
mod node;
mod producer;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use leader_core::{Instance, TaskQuery, TaskStatus, Timing};
use leader_tests::{RedisServer, dice, say};

use ledger::Ledger;
use nemesis::Fleet;

/// What separates the fleet from others.
const NAMESPACE: &str = "task-chaos";
/// How long a lease, and an attempt that is not heard of, lives.
const TTL: Duration = Duration::from_secs(2);
/// How many processes.
const NODES: usize = 5;
/// Tasks a second.
const RATE: u64 = 1_000;
/// How long after the end of all faults everything may take.
const CALM: Duration = Duration::from_secs(90);

const USAGE: &str = "\
usage: task_chaos [--seconds N] [--seed S]

  --seconds N   how long, 5 to 3600; 180 unless said
  --seed S      repeats what is done, when and to whom";

struct Options {
    seconds: u64,
    seed: u64,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seconds: 180,
        seed: dice::seed(),
    };
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let number: u64 = value
            .parse()
            .map_err(|_| format!("`{word}` needs a number, not `{value}`"))?;
        match word.as_str() {
            "--seconds" if (5..=3600).contains(&number) => options.seconds = number,
            "--seconds" => return Err(format!("`--seconds {number}` is out of range")),
            "--seed" => options.seed = number,
            other => return Err(format!("`{other}` is unknown")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "node").is_some() {
        return node::main(words);
    }
    let options = match options(words) {
        Ok(options) => options,
        Err(refusal) => {
            eprintln!("{refusal}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let faults = runtime.block_on(run(&options));
    for fault in &faults {
        say!("VIOLATION: {fault}");
    }
    say!("{} violations; seed {}", faults.len(), options.seed);
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

async fn run(options: &Options) -> Vec<String> {
    let server = RedisServer::options().appendonly(true).start().await;
    let ledger = Ledger::open(&server.url()).await.expect("the server answers");
    let instance = leader_core::bootstrap(server.url())
        .namespace(NAMESPACE)
        .service("task-chaos")
        .instance_id("producer")
        .first_start(true)
        .campaign(false)
        .timing(Timing::from_ttl(TTL))
        .state(ledger.clone())
        .tasks(|tasks| tasks.work(false).keep_ended(1_000, Duration::from_secs(3_600)))
        .await
        .expect("the producer starts");
    let mut fleet = Fleet::start(&server, options.seed).await;
    let began = Instant::now();
    let span = Duration::from_secs(options.seconds);
    let producing = tokio::spawn(producer::produce(instance.clone(), options.seed, span));
    while began.elapsed() < span {
        fleet.strike(&instance, began).await;
    }
    fleet.heal();
    let stored = producing.await.expect("the producer ends");
    let faults = settle(&instance, &ledger, &stored).await;
    say!("{}", fleet.summary());
    fleet.end();
    instance.shutdown().await;
    faults
}

/// Waits until everything has ended, and looks at what has come of it.
async fn settle(instance: &Instance, ledger: &Ledger, stored: &[producer::Stored]) -> Vec<String> {
    let tasks = instance.tasks();
    let healed = Instant::now();
    let figures = loop {
        let figures = tasks.figures("work").await.expect("the server answers");
        if (figures.pending == 0 && figures.backlog() == 0) || healed.elapsed() > CALM {
            break figures;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let drained = healed.elapsed();
    let mut dead = Vec::new();
    let mut query = TaskQuery::of(TaskStatus::Dead).limit(1_000);
    loop {
        let page = tasks.list("work", &query).await.expect("the server answers");
        dead.extend(page.tasks);
        match page.next {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    let rows = ledger.rows().await.expect("the server answers");
    let counts = ledger.counts().await.expect("the server answers");
    let mut faults = Vec::new();
    if figures.pending > 0 || figures.backlog() > 0 {
        faults.push(format!("not all has ended {CALM:?} after the last fault: {figures:?}"));
    }
    for task in &dead {
        let lost = task
            .history
            .iter()
            .filter(|past| past.ran == leader_core::Ran::Lost)
            .count();
        if lost < 4 {
            faults.push(format!(
                "{} is dead for another reason than its workers: {task:?}",
                task.id
            ));
        }
    }
    let missing = stored
        .iter()
        .filter(|stored| !rows.contains(stored.id.key()) && !dead.iter().any(|task| task.id == stored.id));
    faults.extend(missing.map(|stored| format!("{} is lost: it had no effect, and is no dead letter", stored.id)));
    let strangers = rows.len().saturating_sub(stored.len());
    if strangers > 0 {
        faults.push(format!("{strangers} effects of tasks that nobody has stored"));
    }
    for (what, count) in [("before it was due", counts.early), ("a second time", counts.doubled)] {
        if count > 0 {
            faults.push(format!("{count} effects {what}"));
        }
    }
    let ended = figures.counts.done + figures.counts.dead;
    if ended != stored.len() as u64 {
        faults.push(format!(
            "{} tasks were stored, and {ended} have ended: {figures:?}",
            stored.len()
        ));
    }
    say!(
        "stored {}, done {}, dead {}, attempts {}, failed {}, lost {}, handed back {}, late results refused {}; effects {}, confirmed again {}, refused by \
         the fence {}, early {}, doubled {}; drained {drained:.1?} after the last fault",
        stored.len(),
        figures.counts.done,
        figures.counts.dead,
        figures.counts.started,
        figures.counts.failed,
        figures.counts.lost,
        figures.counts.handed_back,
        figures.counts.late,
        rows.len(),
        counts.again,
        counts.refused,
        counts.early,
        counts.doubled,
    );
    faults
}
