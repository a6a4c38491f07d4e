//! The simulator itself: repeatable, fast enough for a year, and honest about what it is given.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::hand_overs::Bodies;
use leader_core::testing::{FaultKind, Faults, Simulation};
use leader_core::{Outcome, Ran, State, Tick, Timing, leader_only};

#[leader_only(group = "proof", cron = "* * * * *")]
async fn minutely(_tick: Tick) {}

#[leader_only(group = "proof", every = "90s", overlap = "wait", retries = 2, backoff = "1s..5s")]
async fn slowly(tick: Tick) -> Result<(), &'static str> {
    tokio::time::sleep(Duration::from_secs(50)).await;
    if tick.attempt() == 1 { Err("once") } else { Ok(()) }
}

#[leader_only(group = "other", every = "2m")]
async fn needy(_tick: Tick, State(_): State<Bodies>) {}

fn hard(seed: u64) -> Simulation {
    Simulation::new()
        .seed(seed)
        .instances(4)
        .job::<minutely>()
        .job::<slowly>()
        .timing(Timing::from_ttl(Duration::from_secs(5)))
        .lasting(Duration::from_secs(2_400))
        .faults(Faults::fierce().and_loss(1.0))
        .logged()
}

#[test]
fn the_same_seed_gives_the_same_log_byte_for_byte() {
    let one = hard(42).run();
    let two = hard(42).run();
    let (one, two) = (one.log.unwrap(), two.log.unwrap());
    assert!(one.lines().count() > 1_000, "{} lines", one.lines().count());
    let differing = one.lines().zip(two.lines()).find(|(a, b)| a != b);
    assert!(one == two, "{differing:#?}");
    let other = hard(43).run();
    assert!(other.log.unwrap() != one);
}

#[test]
fn a_day_without_faults_runs_every_tick() {
    let began = Instant::now();
    let report = Simulation::new().job::<minutely>().run();
    println!("{report} in {:?}", began.elapsed());
    report.assert_sound();
    let ledger = report.ledger::<minutely>();
    let ran = ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or(0);
    assert_eq!((ledger.decided(), ledger.counts.len()), (ran, 1), "{:?}", ledger.counts);
    assert!((1_439..=1_441).contains(&ran), "{ran}");
    assert_eq!(report.fault_count(), 0);
}

#[test]
fn what_happens_is_what_was_asked_for() {
    let faults = Faults::none()
        .with(FaultKind::Crash, 6.0)
        .up_to(Duration::from_secs(20));
    let report = Simulation::new()
        .job::<minutely>()
        .lasting(Duration::from_secs(4 * 3_600))
        .faults(faults)
        .run();
    println!("{report}");
    report.assert_sound();
    // 12 hours of processes, 6 times an hour.
    let crashes = report.faults[&FaultKind::Crash];
    assert!((40..=110).contains(&crashes), "{crashes}");
    assert_eq!(report.faults.len(), 1);
    assert!(report.elections > 4);
}

#[test]
#[should_panic(expected = "cannot be started")]
fn what_cannot_be_started_is_said() {
    let _ = Simulation::new().job::<needy>().run();
}

#[leader_only(group = "proof", handler)]
async fn handed(_tick: Tick) {}

/// What a call that is refused says.
fn refusal<T>(call: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
    let Err(panic) = std::panic::catch_unwind(call) else {
        return String::new();
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

/// Plans that were made for other fleets.
fn of_another_fleet() -> [(String, &'static str); 2] {
    let day = || Simulation::new().job::<minutely>();
    let faults = Faults::none().with(FaultKind::Crash, 6.0);
    let larger = day().instances(9).faults(faults.clone()).plan();
    let longer = day().for_days(30).faults(faults).plan();
    let wanted = "has no place for this fault of another";
    [
        (refusal(|| day().run_with(&larger)), wanted),
        (refusal(|| day().run_with(&longer)), wanted),
    ]
}

#[test]
fn what_would_simulate_nothing_is_refused() {
    let day = || Simulation::new().job::<minutely>();
    let refused = [
        (refusal(|| Simulation::new().run()), "give the fleet a job"),
        (refusal(|| day().job::<handed>().run()), "is a handler"),
        (refusal(|| day().for_days(0)), "more than nothing"),
        (refusal(|| day().for_days(u64::MAX)), "at most a hundred years"),
        (refusal(|| day().lasting(Duration::MAX)), "at most a hundred years"),
        (
            refusal(|| day().starting("1950-01-01T00:00:00Z".parse().unwrap())),
            "begin between 2000 and 2200",
        ),
        (refusal(|| day().instances(0)), "simulate 1 to 99"),
        (
            refusal(|| Faults::none().with(FaultKind::Crash, f64::NAN)),
            "give a finite number",
        ),
        (refusal(|| Faults::none().times(-1.0)), "give a finite number"),
        (
            refusal(|| {
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(async { day().run() })
            }),
            "in a plain `#[test]`",
        ),
    ];
    for (said, wanted) in refused.into_iter().chain(of_another_fleet()) {
        assert!(said.contains(wanted), "`{said}` has no `{wanted}`");
    }
}

/// The short form of `tests/run simulate`.
#[test]
fn random_fleets_keep_every_promise() {
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["--seconds", "60", "--brief"])
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(told.trim_end().ends_with(" passed, 0 failed"));
}

#[leader_only(group = "rare", every = "6h", on_loss = "finish")]
async fn rarely(_tick: Tick) {
    tokio::time::sleep(Duration::from_secs(1_800)).await;
}

#[test]
fn a_fleet_without_any_latency_comes_to_its_end() {
    let report = Simulation::new()
        .job::<rarely>()
        .lasting(Duration::from_secs(14 * 3_600))
        .faults(Faults::none().with(FaultKind::Crash, 0.4).with(FaultKind::Pause, 0.4))
        .run();
    report.assert_sound();
}

#[leader_only(group = "finishing", every = "5m", on_loss = "finish")]
async fn finishing(_tick: Tick) {
    tokio::time::sleep(Duration::from_secs(280)).await;
}

/// Leases are renewed, and nobody can tell that a run is alive for longer than it takes to call one lost: it is no less alive for it.
#[test]
fn a_run_outlives_a_store_that_takes_no_writes() {
    for kind in [FaultKind::StoreFull, FaultKind::StoreReadOnly] {
        let report = Simulation::new()
            .job::<finishing>()
            .timing(Timing::from_ttl(Duration::from_secs(6)))
            .lasting(Duration::from_secs(3 * 3_600))
            .faults(
                Faults::none()
                    .with(FaultKind::StepDown, 10.0)
                    .with(kind, 8.0)
                    .up_to(Duration::from_secs(300)),
            )
            .run();
        println!("{report}");
        report.assert_sound();
        let ledger = report.ledger::<finishing>();
        assert_eq!(ledger.counts.get(&Outcome::Ran(Ran::Lost)), None, "{:?}", ledger.counts);
    }
}
