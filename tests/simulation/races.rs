//! What it costs that every instance asks for every tick, against one leader that asks for all of them: one minutely job.
//!
//! A day of a large fleet takes minutes: it is cut to some hours, unless `LEADER_SIMULATION=full` asks for all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leader_core::{Instance, Job, JobLedger, Outcome, Ran, State, Tick, Timing, leader_only, scheduled};
use tracing::field::{Field, Visit};
use tracing::span;

const HOUR: Duration = Duration::from_secs(3_600);
/// So long that what the elections and the roster ask is little beside the claims, whose number does not depend on it.
const TTL: Duration = Duration::from_secs(1_200);

#[derive(Clone, Default)]
struct Runs(Arc<AtomicU64>);

#[scheduled(on = "any", group = "race", every = "1m")]
async fn raced(_tick: Tick, runs: Option<State<Runs>>) {
    if let Some(State(runs)) = runs {
        runs.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[leader_only(group = "led", every = "1m")]
async fn led(_tick: Tick, runs: Option<State<Runs>>) {
    if let Some(State(runs)) = runs {
        runs.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The claims that the engines of this thread send.
#[derive(Clone, Default)]
struct Claims(Arc<AtomicU64>);

impl tracing::Subscriber for Claims {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().ends_with("engine::ticks::claims")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Count(&self.0));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Count<'a>(&'a AtomicU64);

impl Visit for Count<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "claims" {
            self.0.fetch_add(value, Ordering::SeqCst);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// The claims of so many hours, of so many instances with one job.
async fn hours_of<J: Job>(hours: u32, instances: usize) -> u64 {
    let ticks = u64::from(hours) * 60;
    let (clock, store) = super::store();
    let claims = Claims::default();
    let _counting = tracing::subscriber::set_default(claims.clone());
    let runs = Runs::default();
    let mut fleet: Vec<Instance> = Vec::new();
    for at in 0..instances {
        let instance = leader_core::bootstrap(store.clone())
            .state(runs.clone())
            .state(super::hand_overs::Bodies::default())
            .instance_id(format!("i{at}"))
            .service("fleet")
            .single_process()
            .first_start(true)
            .timing(Timing::from_ttl(TTL))
            .groups([J::GROUP])
            .campaign_only([J::GROUP]);
        fleet.push(instance.await.unwrap());
    }
    // Between two ticks.
    let now = clock.wall().as_second();
    let until_half =
        u64::try_from(30 - now.rem_euclid(60)).unwrap_or_else(|_| u64::try_from(90 - now.rem_euclid(60)).unwrap());
    tokio::time::sleep(Duration::from_secs(until_half)).await;
    let before: JobLedger = fleet[0].ledger(J::NAME).await.unwrap();
    let (sent, ran) = (claims.0.load(Ordering::SeqCst), runs.0.load(Ordering::SeqCst));
    tokio::time::sleep(HOUR * hours).await;
    let sent = claims.0.load(Ordering::SeqCst) - sent;
    assert_eq!(runs.0.load(Ordering::SeqCst) - ran, ticks);
    let ledger = fleet[0].ledger(J::NAME).await.unwrap();
    let ok = |ledger: &JobLedger| ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or_default();
    assert_eq!(
        ok(&ledger) - ok(&before),
        ticks,
        "each tick has one run: {:?}",
        ledger.counts
    );
    assert_eq!(ledger.decided(), ok(&ledger), "and nothing else: {:?}", ledger.counts);
    for instance in fleet {
        instance.shutdown().await;
    }
    sent
}

#[tokio::test(start_paused = true)]
async fn a_race_costs_one_command_of_each_instance_and_a_leader_one_of_all() {
    let full = std::env::var("LEADER_SIMULATION").is_ok_and(|word| word == "full");
    for (instances, hours) in [(10, 6), (50, 2), (200, 1)] {
        let hours = if full { 24 } else { hours };
        let began = Instant::now();
        let raced = hours_of::<raced>(hours, instances).await;
        let led = hours_of::<led>(hours, instances).await;
        let a_day = |claims: u64| claims * 24 / u64::from(hours);
        println!(
            "one minutely job, {instances} instances, {hours} hours in {:?}: {raced} claims of whoever is first, {led} of a leader; \
             a day {} and {}",
            began.elapsed(),
            a_day(raced),
            a_day(led)
        );
        // Beside the claims: the leader's looks at runs of others, one in a TTL at most.
        let ticks = u64::from(hours) * 60;
        let (claims, looks) = (
            instances as u64 * ticks,
            u64::from(hours) * (HOUR.as_secs() / TTL.as_secs()) + 1,
        );
        assert!(
            (claims..=claims + looks).contains(&raced),
            "{claims} and at most {looks} looks: {raced}"
        );
        assert_eq!(led, ticks);
    }
}
