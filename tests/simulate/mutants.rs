//! Faults planted by hand in our own logic, and whether the invariants see each of them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leader_core::Timing;
use leader_core::mutants::Mutant;
use leader_core::testing::{FaultKind, Faults, Report, Simulation};
use leader_tests::say;

use crate::{exact, tasks};

mod jobs {
    use std::time::Duration;

    use leader_core::{Tick, leader_only, scheduled};

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Takes so long, and fails at every second tick of its period.
    async fn works(tick: Tick, takes: Duration, period: i64) -> Result<(), String> {
        // In parts, so that it is polled.
        for _ in 0..4 {
            tokio::time::sleep(takes / 4).await;
        }
        if period > 0 && tick.scheduled_at().as_second() / period % 2 == 0 {
            return Err("as it should".to_owned());
        }
        Ok(())
    }

    #[leader_only(name = "planted.brief", every = "15s", missed = "skip")]
    pub async fn brief(tick: Tick) -> Result<(), String> {
        works(tick, secs(0), 0).await
    }

    #[leader_only(name = "planted.waits", every = "20s", overlap = "wait")]
    pub async fn waits(tick: Tick) -> Result<(), String> {
        works(tick, secs(26), 0).await
    }

    #[leader_only(name = "planted.long", every = "30s", missed = "all")]
    pub async fn long(tick: Tick) -> Result<(), String> {
        works(tick, secs(36), 0).await
    }

    #[leader_only(name = "planted.finishes", every = "2m", on_loss = "finish")]
    pub async fn finishes(tick: Tick) -> Result<(), String> {
        works(tick, secs(28), 0).await
    }

    #[leader_only(name = "planted.fails", every = "1m", retries = 3, backoff = "4s")]
    pub async fn fails(tick: Tick) -> Result<(), String> {
        works(tick, secs(2), 60).await
    }

    /// So rare that nothing but who takes over looks after its runs.
    #[leader_only(name = "planted.rare", every = "6h", retries = 2, backoff = "10m..10m")]
    pub async fn rare(tick: Tick) -> Result<(), String> {
        works(tick, secs(1_800), 21_600).await
    }

    #[scheduled(on = "any", name = "planted.any", every = "20s")]
    pub async fn any(tick: Tick) -> Result<(), String> {
        works(tick, secs(14), 0).await
    }

    #[scheduled(on = "any", name = "planted.any.long", every = "1m")]
    pub async fn any_long(tick: Tick) -> Result<(), String> {
        works(tick, secs(50), 0).await
    }
}

/// A fleet and its faults.
type Scenario = fn(u64) -> Simulation;

const MINUTE: Duration = Duration::from_secs(60);

fn fleet(seed: u64, faults: Faults) -> Simulation {
    Simulation::new().seed(seed).faults(faults)
}

/// Elections alone.
fn elections(seed: u64) -> Simulation {
    let faults = Faults::fierce()
        .times(3.0)
        .without(FaultKind::WallStep)
        .without(FaultKind::Panic);
    fleet(seed, faults).job::<jobs::brief>().lasting(60 * MINUTE)
}

/// An ordinary day.
fn peaceful(seed: u64) -> Simulation {
    fleet(seed, Faults::realistic())
        .job::<jobs::fails>()
        .lasting(4 * 60 * MINUTE)
}

/// Processes that stand still, and nobody who says that there is something to look at.
fn standing(seed: u64) -> Simulation {
    let faults = Faults::realistic()
        .without(FaultKind::Restart)
        .without(FaultKind::Crash);
    fleet(seed, faults.with(FaultKind::Pause, 20.0))
        .job::<jobs::brief>()
        .lasting(60 * MINUTE)
}

/// Everything that a leader runs.
fn led(seed: u64) -> Simulation {
    fleet(seed, Faults::fierce())
        .job::<jobs::brief>()
        .job::<jobs::waits>()
        .job::<jobs::long>()
        .job::<jobs::finishes>()
        .job::<jobs::fails>()
        .lasting(60 * MINUTE)
}

/// What needs no leader.
fn unled(seed: u64) -> Simulation {
    fleet(seed, Faults::fierce())
        .job::<jobs::any>()
        .job::<jobs::any_long>()
        .lasting(60 * MINUTE)
}

/// Nothing but who takes over looks after a run.
fn rare(seed: u64) -> Simulation {
    let faults = Faults::realistic()
        .with(FaultKind::Crash, 0.4)
        .with(FaultKind::Pause, 0.4);
    fleet(seed, faults).job::<jobs::rare>().lasting(14 * 60 * MINUTE)
}

/// A store that forgets, and nothing that would leave a lease to two.
fn forgetful(seed: u64) -> Simulation {
    let kinds = [
        (FaultKind::StoreEmpty, 2.0),
        (FaultKind::StoreRollback, 4.0),
        (FaultKind::StoreFlushed, 3.0),
        (FaultKind::StoreLoses, 3.0),
        (FaultKind::CutOut, 6.0),
        (FaultKind::CutIn, 6.0),
        (FaultKind::StepDown, 6.0),
        (FaultKind::Pause, 3.0),
    ];
    let faults = kinds
        .into_iter()
        .fold(Faults::realistic(), |faults, (kind, rate)| faults.with(kind, rate));
    fleet(seed, faults).job::<jobs::brief>().lasting(60 * MINUTE)
}

/// A store that takes no writes for minutes, but for renewals, and leaders that leave their bodies behind.
fn refusing(seed: u64) -> Simulation {
    let faults = Faults::none()
        .with(FaultKind::StepDown, 20.0)
        .with(FaultKind::StoreFull, 12.0)
        .up_to(5 * MINUTE);
    fleet(seed, faults)
        .timing(Timing::from_ttl(Duration::from_secs(6)))
        .job::<jobs::finishes>()
        .lasting(4 * 60 * MINUTE)
}

/// A store whose clock leaps.
fn leaping(seed: u64) -> Simulation {
    let kinds = [
        (FaultKind::StoreClock, 6.0),
        (FaultKind::StoreFlushed, 6.0),
        (FaultKind::Crash, 4.0),
        (FaultKind::StepDown, 4.0),
    ];
    let faults = kinds
        .into_iter()
        .fold(Faults::realistic(), |faults, (kind, rate)| faults.with(kind, rate));
    fleet(seed, faults).job::<jobs::brief>().lasting(60 * MINUTE)
}

/// Tasks, in everything that befalls who works for them and the store.
fn tasks(seed: u64) -> Simulation {
    let faults = Faults::fierce().without(FaultKind::WallStep);
    let simulation = tasks::ALL
        .into_iter()
        .fold(fleet(seed, faults), |simulation, (_, add)| add(simulation));
    simulation.lasting(60 * MINUTE)
}

/// Tasks, and a store that is away for longer than leases last, again and again.
fn tasks_away(seed: u64) -> Simulation {
    let faults = Faults::none()
        .with(FaultKind::StoreRestart, 20.0)
        .with(FaultKind::StoreStall, 20.0)
        .up_to(MINUTE);
    let simulation = tasks::ALL
        .into_iter()
        .fold(fleet(seed, faults), |simulation, (_, add)| add(simulation));
    simulation.lasting(60 * MINUTE)
}

/// Tasks, and workers that stand still while an answer is under way: what it gives them is another's by then.
fn tasks_slow(seed: u64) -> Simulation {
    let faults = Faults::none()
        .with(FaultKind::Delay, 300.0)
        .with(FaultKind::Pause, 200.0)
        .up_to(3 * MINUTE);
    let simulation = tasks::ALL
        .into_iter()
        .fold(fleet(seed, faults), |simulation, (_, add)| add(simulation));
    simulation.lasting(60 * MINUTE)
}

/// In what a fault shows, and from which seed on it is looked for: one that has shown it.
fn plan(mutant: Mutant) -> (&'static str, Scenario, u64) {
    let (name, scenario, first): (_, Scenario, _) = match mutant {
        Mutant::TrustFromTheReply => ("elections", elections, 66),
        Mutant::RenewalAfterRelease => ("elections", elections, 7),
        Mutant::BeliefUntilReleased | Mutant::ReleaseWithoutComparing => ("elections", elections, 3),
        Mutant::ReleaseBeforeTheDrain | Mutant::ReleaseWithoutTheTerm => ("elections", elections, 4),
        Mutant::ClaimWithoutTheLease => ("led", led, 3),
        Mutant::TrustFromAFailure
        | Mutant::EndsWithAFailure
        | Mutant::NoMargin
        | Mutant::GateWithoutAClock
        | Mutant::ElectedWithEachRenewal
        | Mutant::TasksPileUp
        | Mutant::TermKept
        | Mutant::StaleCampaign
        | Mutant::RenewWithoutComparing
        | Mutant::StepDownUnanswered
        | Mutant::EarlyTimer
        | Mutant::RenewalAcquires => ("elections", elections, 1),
        Mutant::NothingIsRun => ("peaceful", peaceful, 1),
        Mutant::NeverLooksAgain => ("standing", standing, 1),
        Mutant::NoBirthMark => ("forgetful", forgetful, 1),
        Mutant::YoungServerIgnored => ("forgetful", forgetful, 134),
        Mutant::LeaseNotCutBack => ("leaping", leaping, 5),
        Mutant::FloorsForgotten => ("leaping", leaping, 45),
        Mutant::OpenRunsUnwatched => ("rare", rare, 5),
        Mutant::PausesForgotten => ("rare", rare, 6),
        Mutant::UnledForEver | Mutant::UnledTakenEarly => ("unled", unled, 1),
        Mutant::SignsNeedMemory | Mutant::UntoldGivesNoSign => ("refusing", refusing, 1),
        Mutant::LostByAnOutage | Mutant::NoSignsOfLife => ("led", led, 7),
        // Whoever knows the jobs sees these where nothing else goes wrong.
        Mutant::ClaimsLate
        | Mutant::ErrorTakenForSuccess
        | Mutant::NoFurtherTry
        | Mutant::OneTryMore
        | Mutant::RetryAtOnce
        | Mutant::OverlapRemembered
        | Mutant::WaitedBeside
        | Mutant::ReplacedGoesOn
        | Mutant::TimeoutIgnored
        | Mutant::JitterForgotten => ("calm", exact::calm, 1),
        Mutant::TaskLateResult
        | Mutant::TaskDueEarly
        | Mutant::TaskPolledPastTrust
        | Mutant::TaskNoSignsOfLife
        | Mutant::TaskStoredAgain
        | Mutant::TaskLostForEver
        | Mutant::TaskUniqueKept
        | Mutant::TaskUniqueFreedEarly
        | Mutant::TaskFenceKept
        | Mutant::TaskOneTryMore
        | Mutant::TaskErrorTakenForSuccess => ("tasks", tasks, 1),
        Mutant::TaskTrustFromTheReply => ("tasks_slow", tasks_slow, 1),
        Mutant::TaskTakenAgain => ("tasks_away", tasks_away, 4),
        Mutant::TaskLostByAnOutage | Mutant::TaskToldOnce => ("tasks_away", tasks_away, 1),
        Mutant::MissedForgotten => ("away", exact::away, 1),
        _ => ("led", led, 1),
    };
    (name, scenario, first)
}

/// The most seeds that one is looked for in, and the longest, of a debug build beside other tests.
const SEEDS: u64 = 200;
const LONGEST: Duration = MINUTE;

/// Where a fault was seen.
struct Kill {
    seed: u64,
    invariants: Vec<&'static str>,
    hours: f64,
}

/// What is wrong with a report of a scenario.
fn wrong(name: &str, report: &Report) -> Vec<&'static str> {
    let mut wrong: Vec<_> = report.violations.iter().map(|violation| violation.invariant).collect();
    let knows = matches!(name, "calm" | "away");
    if knows && !exact::wrong(report, name == "calm").is_empty() {
        wrong.push("what the jobs are for");
    }
    wrong.sort_unstable();
    wrong.dedup();
    wrong
}

fn hunt(mutant: Mutant) -> Option<Kill> {
    let (name, scenario, first) = plan(mutant);
    let (began, mut hours) = (Instant::now(), 0.0);
    for seed in (first..first + SEEDS).take_while(|_| began.elapsed() < LONGEST) {
        let report = scenario(seed).planted(mutant).until_a_violation().run();
        hours += report.span.as_secs_f64() / 3_600.0;
        let invariants = wrong(name, &report);
        if !invariants.is_empty() {
            return Some(Kill {
                seed,
                invariants,
                hours,
            });
        }
    }
    None
}

/// What came of looking for one.
struct Hunt {
    mutant: Mutant,
    kill: Option<Kill>,
    took: Duration,
    /// Whether the same fleet keeps its promises without it.
    sound: bool,
}

impl Hunt {
    fn of(mutant: Mutant, brief: bool) -> Self {
        let began = Instant::now();
        let kill = hunt(mutant);
        let took = began.elapsed();
        let (name, scenario, _) = plan(mutant);
        let without = kill.as_ref().filter(|_| !brief).map(|kill| scenario(kill.seed).run());
        let sound = without.as_ref().is_none_or(|report| wrong(name, report).is_empty());
        if let Some(report) = without.filter(|_| !sound) {
            let wrong = exact::wrong(&report, name == "calm").join("\n");
            say!("{}, without it: {report}\n{wrong}", mutant.as_str());
        }
        Self {
            mutant,
            kill,
            took,
            sound,
        }
    }

    fn print(&self) {
        let (name, _, _) = plan(self.mutant);
        let (mutant, took) = (self.mutant.as_str(), self.took.as_secs_f64());
        match &self.kill {
            None => say!("{mutant:<24} in {name:<10} NOT SEEN, {took:.1} s"),
            Some(Kill {
                seed,
                invariants,
                hours,
            }) => {
                let invariants = invariants.join(", ");
                say!("{mutant:<24} in {name:<10} seed {seed:>3} ({hours:.1} h, {took:.1} s): {invariants}");
            }
        }
    }
}

/// Plants each of them, or those of a name, on all cores, and prints what has seen it: how many were seen, in a fleet that is sound without
/// them unless that is left out to be `brief`, and how many there are.
pub(crate) fn run(only: Option<&str>, brief: bool) -> (usize, usize) {
    let began = Instant::now();
    let all: Vec<_> = Mutant::ALL
        .iter()
        .copied()
        .filter(|mutant| only.is_none_or(|only| mutant.as_str() == only))
        .collect();
    if all.is_empty() {
        let names: Vec<_> = Mutant::ALL.iter().map(|mutant| mutant.as_str()).collect();
        eprintln!("there is no such mutant: take one of {}", names.join(", "));
        return (0, 0);
    }
    let (next, hunts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(mutant) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let hunt = Hunt::of(*mutant, brief);
                    hunts.lock().unwrap().push(hunt);
                }
            });
        }
    });
    let mut hunts = hunts.into_inner().unwrap();
    hunts.sort_by_key(|hunt| all.iter().position(|mutant| *mutant == hunt.mutant));
    hunts.iter().for_each(Hunt::print);
    let killed = hunts.iter().filter(|hunt| hunt.kill.is_some() && hunt.sound).count();
    say!(
        "mutants killed {killed}/{}, in {:.1} s",
        all.len(),
        began.elapsed().as_secs_f64()
    );
    (killed, all.len())
}
