//! The run: the fleet starts, the invoices are stored, midnight comes, the ledger fills.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp, Unit};
use leader_core::{Instance, TaskFigures, TaskQuery, TaskStatus};

use crate::fleet::{Ground, Worker};
use crate::ledger::Sums;
use crate::options::Options;
use crate::report::Report;
use crate::work::{GROUP, Invoice, QUEUE, Toil, charge};

/// Between two looks at the ledger.
const LOOK: Duration = Duration::from_millis(10);
/// A run in which nothing happens for so long is over.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many invoices are handed over at once.
const CHUNK: u64 = 10_000;

/// The run, to its end. The instances have stopped afterwards.
///
/// # Errors
/// A store that does not answer, a fleet that does not start.
pub async fn run(options: &Options, ground: &Ground) -> anyhow::Result<Report> {
    // It stores and looks on: it neither dispatches nor works.
    let office = ground.instance("office", Toil(options.work)).campaign(false);
    let office = office.tasks(|tasks| tasks.work(false)).await?;
    let mut fleet = Vec::new();
    for number in 1..=options.instances {
        fleet.push(ground.join(format!("worker-{number}"), options.work).await?);
    }
    let report = night(options, ground, &office, &mut fleet).await;
    for worker in &mut fleet {
        worker.stop().await;
    }
    office.shutdown().await;
    report
}

async fn night(options: &Options, ground: &Ground, office: &Instance, fleet: &mut [Worker]) -> anyhow::Result<Report> {
    assemble(office, fleet.len()).await?;
    let midnight = (Timestamp::now() + SignedDuration::try_from(options.ahead)?).round(Unit::Millisecond)?;
    let where_to = match ground {
        Ground::Embedded { .. } => "in this process, on the embedded store",
        Ground::Redis { .. } => "each a process, on Redis",
    };
    println!("{} instances, {where_to}", fleet.len());
    println!("{} invoices are due at midnight, which is {midnight}", options.invoices);
    store(options, office, midnight).await?;
    let left = midnight.duration_since(Timestamp::now()).as_secs_f64();
    if left < 0.0 {
        println!(
            "all are stored, the last {:.1} s after midnight: `--ahead` makes the evening longer",
            -left
        );
    } else {
        println!("all are stored, and midnight is in {left:.1} s");
    }
    let mut view = View::new(options.invoices, midnight);
    let mut kills = Kills::of(options);
    let mut moved = (Instant::now(), Sums::default(), TaskFigures::default());
    loop {
        let sums = ground.ledger().sums().await?;
        if let Some(kill) = kills.due(sums.charged) {
            kill_one(kill, office, fleet, &mut kills).await?;
        }
        if view.is_due() || sums.charged >= options.invoices {
            let figures = office.tasks().figures(QUEUE).await?;
            if view.is_due() {
                view.show(&sums, &figures, office, fleet);
            }
            let over = figures.pending + figures.dispatched + figures.running == 0 && kills.are_over();
            if sums != moved.1 || figures != moved.2 || Timestamp::now() < midnight {
                moved = (Instant::now(), sums, figures.clone());
            }
            if over || moved.0.elapsed() > PATIENCE {
                // The last results are told after the last rows.
                let sums = ground.ledger().sums().await?;
                view.show(&sums, &figures, office, fleet);
                println!();
                let due = options.invoices;
                return Ok(Report {
                    due,
                    midnight,
                    sums,
                    figures,
                });
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until everybody is there and somebody dispatches.
async fn assemble(office: &Instance, count: usize) -> anyhow::Result<()> {
    let by = Instant::now() + PATIENCE;
    loop {
        let members = office.fleet().await?;
        let there = members
            .iter()
            .filter(|member| member.candidate_for.contains(GROUP))
            .count();
        if there >= count && dispatcher(office).is_some() {
            return Ok(());
        }
        anyhow::ensure!(
            Instant::now() < by,
            "only {there} of {count} instances have come within {PATIENCE:?}: RUST_LOG=info tells why"
        );
        tokio::time::sleep(LOOK).await;
    }
}

fn dispatcher(office: &Instance) -> Option<String> {
    office.watch(GROUP)?.current().leader
}

/// Stores all invoices, due at one instant.
async fn store(options: &Options, office: &Instance, midnight: Timestamp) -> anyhow::Result<()> {
    let tasks = office.tasks();
    let mut first = 0;
    while first < options.invoices {
        let some = first..options.invoices.min(first + CHUNK);
        first = some.end;
        // The key makes it safe to store an invoice again after an answer was lost.
        let keyed = some.map(|number| (format!("invoice-{number}"), Invoice::numbered(number)));
        tasks.enqueue_many_unique::<charge, _>(keyed).at(midnight).await?;
    }
    Ok(())
}

/// Who is killed, and at how many rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    Dispatcher,
    Worker,
}

/// Those that are still to come.
struct Kills(Vec<(u64, Kill)>);

impl Kills {
    fn of(options: &Options) -> Self {
        let thirds =
            [(2, Kill::Worker), (1, Kill::Dispatcher)].map(|(third, kill)| (options.invoices * third / 3, kill));
        Self(if options.kill { thirds.to_vec() } else { Vec::new() })
    }

    fn due(&self, charged: u64) -> Option<Kill> {
        self.0.last().filter(|(at, _)| charged >= *at).map(|(_, kill)| *kill)
    }

    fn are_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// Kills an instance, when there is one of that kind, and says so.
async fn kill_one(kill: Kill, office: &Instance, fleet: &mut [Worker], kills: &mut Kills) -> anyhow::Result<()> {
    let leader = dispatcher(office);
    let busy = under_way(office).await?;
    let of = |worker: &Worker| busy.iter().filter(|name| **name == worker.name).count();
    let leads = |worker: &Worker| leader.as_ref() == Some(&worker.name);
    let living = fleet.iter_mut().filter(|worker| !worker.is_killed());
    let chosen = match kill {
        Kill::Dispatcher => living.into_iter().find(|worker| leads(worker)),
        // One that does not dispatch, where there is one.
        Kill::Worker => living.max_by_key(|worker| (of(worker) > 0, !leads(worker), of(worker))),
    };
    let Some(worker) = chosen else { return Ok(()) };
    let how = worker.kill().await?;
    let had = under_way(office)
        .await?
        .iter()
        .filter(|name| **name == worker.name)
        .count();
    let what = if leads(worker) {
        "which dispatches"
    } else {
        "which works"
    };
    println!(
        "  {} is killed, {what} and has {had} attempts under way ({how})",
        worker.name
    );
    kills.0.pop();
    Ok(())
}

/// Whose the attempts under way are, one name for each.
async fn under_way(office: &Instance) -> anyhow::Result<Vec<String>> {
    let running = TaskQuery::of(TaskStatus::Running).limit(1000);
    let running = office.tasks().list(QUEUE, &running).await?.tasks;
    let holders = running.into_iter().filter_map(|task| task.running);
    Ok(holders.map(|running| running.holder.instance().to_owned()).collect())
}

/// A line for each second.
struct View {
    invoices: u64,
    midnight: Timestamp,
    next: Instant,
    charged: u64,
}

impl View {
    fn new(invoices: u64, midnight: Timestamp) -> Self {
        let next = Instant::now();
        Self {
            invoices,
            midnight,
            next,
            charged: 0,
        }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    fn show(&mut self, sums: &Sums, figures: &TaskFigures, office: &Instance, fleet: &[Worker]) {
        self.next = Instant::now() + Duration::from_secs(1);
        let since = Timestamp::now().duration_since(self.midnight).as_secs_f64();
        // Whose lease has not ended yet may be dead.
        let lives = |name: &String| fleet.iter().any(|worker| worker.name == *name && !worker.is_killed());
        let leader = dispatcher(office).filter(lives).unwrap_or_else(|| "nobody".to_owned());
        println!(
            "  {since:>+6.1} s  {:>9} charged  {:>8} more  {:>9} to go  {:>6} running  {:>9} attempts  {leader} dispatches",
            sums.charged,
            sums.charged - self.charged,
            self.invoices.saturating_sub(sums.charged),
            figures.running,
            figures.counts.started,
        );
        self.charged = sums.charged;
    }
}
