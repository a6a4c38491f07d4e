//! What a middleware makes of a run.

use std::sync::Mutex;

use super::*;
use crate::job::gate::{Gate, Lead};
use crate::job::record::BodyResult;
use crate::job::scope::Skipped;
use crate::job::tick::{Inner as Fields, Origin};
use crate::names::{GroupName, JobName};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn body(&self, result: BodyResult) -> BodyFuture {
        let log = self.clone();
        Box::pin(async move {
            log.note("body");
            tokio::task::yield_now().await;
            result
        })
    }
}

fn tick() -> Tick {
    let group = GroupName::new("g").unwrap();
    Tick::new(Fields {
        job: JobName::new("sweep").unwrap(),
        origin: Origin::Schedule,
        scheduled_at: jiff::Timestamp::UNIX_EPOCH,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        attempt: 1,
        lead: Lead::new(Arc::new(Gate::always_open(group)), 1, 8),
    })
}

async fn run(around: &Around, body: BodyFuture) -> Result<Result<(), JobError>, String> {
    around.wrap(&tick(), body, || false).await
}

fn error(text: &str) -> JobError {
    JobError(text.to_owned())
}

#[tokio::test]
async fn the_first_given_is_the_outermost() {
    let (log, mut around) = (Log::default(), Around::default());
    for name in ["outer", "inner"] {
        let log = log.clone();
        around.push(move |tick: Tick, next| {
            let log = log.clone();
            async move {
                log.note(format!("{name} before {} {}", tick.job(), tick.fence()));
                let result = next.await;
                log.note(format!("{name} after {result:?}"));
                result
            }
        });
    }
    assert_eq!(run(&around, log.body(Ok(Ok(())))).await, Ok(Ok(())));
    assert_eq!(
        log.taken(),
        [
            "outer before sweep 8",
            "inner before sweep 8",
            "body",
            "inner after Ok(())",
            "outer after Ok(())"
        ]
    );
    let failed = run(&around, log.body(Ok(Err(error("as told"))))).await;
    assert_eq!(failed, Ok(Err(error("as told"))));
    assert_eq!(log.taken().len(), 5);
}

#[tokio::test]
async fn what_a_middleware_returns_is_the_result() {
    let log = Log::default();
    let mut forgiving = Around::default();
    forgiving.push(|_, next| async move { next.await.or(Ok::<_, JobError>(())) });
    assert_eq!(run(&forgiving, log.body(Ok(Err(error("forgiven"))))).await, Ok(Ok(())));

    let mut strict = Around::default();
    strict.push(|_, next| async move {
        next.await?;
        // Converted with its causes, like a body's.
        Err::<(), Box<dyn Error + Send + Sync>>("afterwards".into())
    });
    let result = run(&strict, log.body(Ok(Ok(())))).await;
    assert_eq!(result, Ok(Err(error("afterwards"))));
    assert_eq!(log.taken(), ["body", "body"]);
}

#[tokio::test]
async fn a_body_that_is_passed_by_is_not_started() {
    let (log, mut off) = (Log::default(), Around::default());
    off.push(|_, next| async move {
        drop(next);
        Ok::<(), JobError>(())
    });
    assert_eq!(run(&off, log.body(Ok(Ok(())))).await, Err(PASSED_BY.to_owned()));

    let mut refused = Around::default();
    refused.push(|_, _next| async { Err("not today") });
    assert_eq!(run(&refused, log.body(Ok(Ok(())))).await, Ok(Err(error("not today"))));
    assert!(log.taken().is_empty());
}

/// However a middleware takes it: nothing has been done.
#[tokio::test]
async fn a_body_that_finds_its_gate_shut_is_not_started() {
    let log = Log::default();
    for forgive in [false, true] {
        let mut around = Around::default();
        around.push(move |_, next| async move {
            let result = next.await;
            if forgive { Ok(()) } else { result }
        });
        let shut = run(&around, log.body(Err(Skipped::NotBootstrapped))).await;
        assert_eq!(shut, Err(String::new()));
    }
}

/// Even where a middleware has carried it away from the guard.
#[test]
fn a_body_is_not_polled_once_its_run_is_over() {
    let over = Arc::new(AtomicU8::new(0));
    let (log, mut around) = (Log::default(), Around::default());
    around.push(|_, next| next);
    let seen = Arc::clone(&over);
    let is_over = move || seen.load(Ordering::SeqCst) == 1;
    let mut wrapped = Box::pin(around.wrap(&tick(), log.body(Ok(Ok(()))), is_over));
    let mut poll = || {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        wrapped.as_mut().poll(&mut cx)
    };
    assert!(poll().is_pending());
    over.store(1, Ordering::SeqCst);
    assert_eq!(poll(), Poll::Ready(Ok(Err(error("the run has ended")))));
    assert_eq!(log.taken(), ["body"]);
}
