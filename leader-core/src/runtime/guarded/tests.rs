//! Bodies under guard, by a clock that a test moves.

use super::*;
use crate::clock::Clock;
use crate::job::gate::Gate;
use crate::names::GroupName;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Witness for Log {
    fn begun(&mut self) {
        self.0.lock().unwrap().push("begun".into());
    }

    fn ended(&mut self, ending: Ending) {
        self.0.lock().unwrap().push(format!("{}:{}", ending.ran, ending.error));
    }
}

struct Bench {
    clock: Clock,
    gate: Arc<Gate>,
    /// That of the last body.
    control: Mutex<Arc<Control>>,
    log: Log,
}

impl Bench {
    fn new() -> Self {
        let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
        let gate = Arc::new(Gate::new(GroupName::new("g").unwrap(), clock.clone()));
        gate.open(7, clock.now() + Duration::from_secs(2));
        Self {
            clock,
            gate,
            control: Mutex::default(),
            log: Log::default(),
        }
    }

    fn guard(&self, on_loss: OnLoss, body: impl Future<Output = BodyResult> + Send + 'static) -> Guarded<Log> {
        let lead = Lead::new(Arc::clone(&self.gate), 7, 8);
        let start: Start = Box::new(move || Box::pin(async move { Ending::from(body.await) }));
        let control = Arc::<Control>::default();
        *self.control.lock().unwrap() = Arc::clone(&control);
        Guarded::new(start, lead, on_loss, control, self.log.clone())
    }

    fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control.lock().unwrap())
    }

    fn log(&self) -> Vec<String> {
        self.log.0.lock().unwrap().clone()
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("once more");
    }
}

fn poll(guarded: &mut Guarded<Log>) -> Poll<()> {
    Pin::new(guarded).poll(&mut Context::from_waker(std::task::Waker::noop()))
}

#[test]
fn a_body_is_never_polled_past_its_trust() {
    let bench = Bench::new();
    let polls = Arc::new(Mutex::new(0));
    let count = Arc::clone(&polls);
    let body = std::future::poll_fn(move |_| {
        *count.lock().unwrap() += 1;
        Poll::Pending
    });
    let mut guarded = bench.guard(OnLoss::Cancel, body);
    assert!(poll(&mut guarded).is_pending());
    assert!(poll(&mut guarded).is_pending());
    bench.clock.advance(Duration::from_secs(2));
    assert!(poll(&mut guarded).is_ready());
    assert_eq!(*polls.lock().unwrap(), 2);
    assert_eq!(bench.log(), ["begun", "cancelled:"]);
}

#[test]
fn a_body_that_never_had_its_trust_never_starts() {
    let bench = Bench::new();
    bench.clock.advance(Duration::from_secs(2));
    for on_loss in [OnLoss::Cancel, OnLoss::Finish] {
        let mut guarded = bench.guard(on_loss, async { panic!("must not start") });
        assert!(poll(&mut guarded).is_ready());
    }
    assert_eq!(bench.log(), ["not_started:", "not_started:"]);
}

/// Either it begins or it is forbidden to: never both.
#[test]
fn a_body_that_is_forbidden_never_begins() {
    let bench = Bench::new();
    let mut guarded = bench.guard(OnLoss::Finish, async { panic!("must not start") });
    assert!(bench.control().forbid());
    assert!(!bench.control().forbid(), "once");
    assert!(poll(&mut guarded).is_ready());
    assert_eq!(bench.log(), ["not_started:"]);

    let mut guarded = bench.guard(OnLoss::Cancel, std::future::pending());
    assert!(poll(&mut guarded).is_pending());
    assert!(bench.control().has_begun() && !bench.control().forbid());
    assert!(poll(&mut guarded).is_pending());
}

#[test]
fn a_finishing_body_goes_on() {
    let bench = Bench::new();
    let mut turns = 3;
    let body = std::future::poll_fn(move |_| {
        turns -= 1;
        if turns == 0 {
            Poll::Ready(Ok(Ok(())))
        } else {
            Poll::Pending
        }
    });
    let mut guarded = bench.guard(OnLoss::Finish, body);
    assert!(poll(&mut guarded).is_pending());
    bench.clock.advance(Duration::from_secs(60));
    assert!(poll(&mut guarded).is_pending());
    assert!(poll(&mut guarded).is_ready());
    assert_eq!(bench.log(), ["begun", "ok:"]);
}

#[test]
fn panics_timeouts_and_lost_runtimes_are_endings() {
    let bench = Bench::new();
    let mut guarded = bench.guard(OnLoss::Cancel, async { panic!("at the disco") });
    assert!(poll(&mut guarded).is_ready());
    let mut guarded = bench.guard(OnLoss::Cancel, async { std::panic::panic_any(Bomb) });
    assert!(poll(&mut guarded).is_ready());
    let guarded = bench.guard(OnLoss::Cancel, std::future::pending());
    drop(guarded);
    let mut guarded = bench.guard(OnLoss::Cancel, std::future::pending());
    assert!(poll(&mut guarded).is_pending());
    drop(guarded);
    let mut guarded = bench.guard(OnLoss::Cancel, std::future::pending());
    assert!(poll(&mut guarded).is_pending());
    bench.control().end(Ran::TimedOut);
    bench.control().end(Ran::Cancelled);
    assert!(poll(&mut guarded).is_ready());
    assert_eq!(
        bench.log(),
        [
            "begun",
            "panic:at the disco",
            "begun",
            "panic:a panic without a text",
            "not_started:",
            "begun",
            "cancelled:",
            "begun",
            "timed_out:"
        ]
    );
}
