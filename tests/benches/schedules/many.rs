//! A hundred thousand different schedules in several zones: their memory, and the planner's share of a core.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use leader_core::__seam::planner::{Planner, Rule, StepKind};
use leader_core::{Schedule, Zone};
use rustix::time::{ClockId, clock_gettime};

const MANY: usize = 100_000;
/// How long the planner is driven, in seconds of its own time.
const SPAN: i64 = 600;
const ZONES: [&str; 5] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
];

/// Four times an hour at a second of its own: 111 of them fall due in a second.
fn schedule(index: usize) -> Schedule {
    let (second, minute) = (index % 60, index / 60 % 15);
    let minutes: Vec<_> = (0..4)
        .map(|quarter| (quarter * 15 + (minute + quarter * (index / 900 % 13)) % 15).to_string())
        .collect();
    let expr = format!("{second} {} * * * *", minutes.join(","));
    let zone = Zone::new(ZONES[index % ZONES.len()]).expect("a zone of the database");
    Schedule::cron(&expr)
        .and_then(|schedule| schedule.in_zone(zone))
        .expect("a legal expression")
}

/// The resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn show() {
    println!("\n{MANY} different schedules in {} zones", ZONES.len());
    let (before, began) = (resident(), cpu());
    let schedules: Vec<_> = (0..MANY).map(schedule).collect();
    let (held, read) = (resident() - before, cpu().saturating_sub(began));
    println!(
        "{:.1} MB resident, {:.0} bytes each; read in {:.2} s",
        held as f64 / 1e6,
        held as f64 / MANY as f64,
        read.as_secs_f64()
    );

    let start: Timestamp = "2026-03-29T00:30:00Z".parse().expect("an instant");
    let mut planner = Planner::default();
    let began = cpu();
    for (job, schedule) in schedules.into_iter().enumerate() {
        let rule = Rule::new(schedule);
        planner.begin(job, rule, start, None, start);
    }
    println!(
        "{:.1} MB resident with their plans, which were begun in {:.2} s",
        (resident() - before) as f64 / 1e6,
        cpu().saturating_sub(began).as_secs_f64()
    );

    let end = start + SignedDuration::from_secs(SPAN);
    let (began, mut wakes, mut due) = (cpu(), 0_u64, 0_u64);
    while let Some(wake) = planner.next_wake().filter(|wake| *wake <= end) {
        wakes += 1;
        for (job, steps) in planner.due(wake, |_| false) {
            assert!(steps.iter().all(|step| step.kind == StepKind::Run && step.tick == wake));
            due += 1;
            planner.answered(job, wake);
        }
    }
    let used = cpu().saturating_sub(began);
    println!(
        "{wakes} wakes with {:.1} due per second of planned time: {:.2} % of a core, {:.2} µs a tick",
        due as f64 / SPAN as f64,
        100.0 * used.as_secs_f64() / SPAN as f64,
        used.as_secs_f64() * 1e6 / due as f64
    );
}
