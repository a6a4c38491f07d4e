//! `#[task]` leaves the function as it is, finds it all the same, and reads what its tasks carry.

use std::future::ready;

use leader_core::__private::{records, task_records};
use leader_core::{DEFAULT_QUEUE, PayloadOf, State, Task, TaskHandler, scheduled, task, testing};

/// What tasks may carry.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Invoice {
    number: u64,
    #[serde(default)]
    note: String,
}

mod limits {
    pub const QUEUE: &str = concat!("macros", "/", "tasks");
    pub const RETRIES: u32 = 7;
}

/// What any crate may write: arguments that are taken apart, early returns, a result of its own.
#[task(
    queue = limits::QUEUE,
    retries = limits::RETRIES,
    backoff = "2s..1m",
    timeout = "30s",
    concurrency = 1 + 1
)]
async fn charge(
    Invoice { number, note }: Invoice,
    task: Task,
    State(limit): State<u64>,
    none: Option<State<String>>,
) -> Result<u64, String> {
    if number > limit {
        return Err(format!(
            "{number}{note} at {} of {}, {none:?}",
            task.attempt(),
            task.queue()
        ));
    }
    Ok(ready(number).await)
}

/// The same payload as of another: each has an `impl` of its own.
#[task(queue = "macros/tasks", name = "a-name")]
async fn refund(_: Invoice) {
    ready(()).await;
}

#[task(queue = "macros/tasks")]
async fn nothing() {}

#[task]
async fn in_the_usual_queue(_task: Task) {}

/// Types of others, and types with parameters.
#[task(queue = "macros/tasks")]
async fn foreign(lines: Vec<Option<String>>) -> Result<(), std::num::ParseIntError> {
    for line in lines.into_iter().flatten() {
        let _: u64 = line.parse()?;
    }
    Ok(())
}

/// A type that is called as one of ours, under another name.
mod todo {
    use super::{Invoice, task};

    type Todo = Task;

    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Task(pub Invoice);

    #[task(queue = "macros/tasks")]
    pub async fn renamed(Task(invoice): Todo, task: leader_core::Task) -> Result<(), String> {
        Err(format!("{} {}", invoice.number, task.attempt()))
    }
}

#[task(queue = "macros/tasks")]
async fn r#try(r#type: u8) -> Result<(), String> {
    Err(ready(r#type).await.to_string())
}

macro_rules! task_of {
    ($name:ident, $queue:expr, $payload:ty) => {
        #[task(queue = $queue)]
        async fn $name(payload: $payload) -> Result<(), String> {
            Err(format!("{payload:?}"))
        }
    };
}

task_of!(from_a_macro, "macros/tasks", Invoice);

#[cfg(any())]
#[task]
async fn configured_out_above(_: Missing) {}

#[task]
#[cfg(any())]
async fn configured_out_below(_: Missing) {}

#[deprecated]
#[task(queue = "macros/tasks")]
async fn deprecated() {}

#[scheduled(on = "fleet", group = "macros/tasks", every = "1h", queue = limits::QUEUE, concurrency = 1)]
async fn ticking() {
    ready(()).await;
}

fn invoice(number: u64) -> Invoice {
    Invoice {
        number,
        note: "!".to_owned(),
    }
}

#[test]
fn a_call_is_a_plain_call() {
    let at = "2026-11-30T08:00:00Z".parse().unwrap();
    // Its type is what was written, and nothing is asked.
    let called: Result<u64, String> = crate::block_on(charge(invoice(3), Task::for_test(at), State(5), None));
    assert_eq!(called, Ok(3));
    crate::block_on(async {
        refund(invoice(1)).await;
        nothing().await;
        in_the_usual_queue(Task::for_test(at)).await;
    });
}

#[test]
fn an_attempt_takes_its_arguments_and_tells_its_error() {
    let run = |number| {
        let attempt = testing::run_task::<charge>(&invoice(number)).attempt(2).state(5_u64);
        crate::block_on(async { attempt.await })
    };
    assert!(run(5).is_ok());
    assert_eq!(run(6).unwrap_err().to_string(), "6! at 2 of macros/tasks, None");

    let attempt = testing::run_task::<charge>(&invoice(6))
        .state(5_u64)
        .state("some".to_owned());
    let error = crate::block_on(async { attempt.await }).unwrap_err();
    assert_eq!(error.to_string(), "6! at 1 of macros/tasks, Some(State(\"some\"))");

    let lines = vec![Some("7".to_owned()), None, Some("x".to_owned())];
    let error = crate::block_on(async { testing::run_task::<foreign>(&lines).await }).unwrap_err();
    assert!(error.to_string().contains("invalid digit"), "{error}");
    let error = crate::block_on(async { testing::run_task::<from_a_macro>(&invoice(1)).await }).unwrap_err();
    assert_eq!(error.to_string(), "Invoice { number: 1, note: \"!\" }");
    let todo = todo::Task(invoice(4));
    let error = crate::block_on(async { testing::run_task::<todo::renamed>(&todo).attempt(3).await }).unwrap_err();
    assert_eq!(error.to_string(), "4 3");
    assert!(crate::block_on(async { testing::run_task::<nothing>(&()).await }).is_ok());
    let error = crate::block_on(async { testing::run_task::<r#try>(&8).await }).unwrap_err();
    assert_eq!(error.to_string(), "8");
}

/// The body has not begun then: what cannot be read is told, by the type that was wanted.
#[test]
fn a_payload_that_does_not_read_is_the_attempts_error() {
    let stored = |json: &str| {
        let attempt = testing::run_task_stored::<charge>(json).state(5_u64);
        crate::block_on(async { attempt.await })
    };
    for (json, told) in [
        ("{}", "missing field `number` at line 1 column 2"),
        ("null", "invalid type: null, expected struct Invoice at line 1 column 4"),
        (
            "{\"number\":-1}",
            "invalid value: integer `-1`, expected u64 at line 1 column 12",
        ),
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{\"number\":1} x", "trailing characters at line 1 column 14"),
    ] {
        let error = stored(json).unwrap_err().to_string();
        let expected = format!("the payload of the task is no `{}::Invoice`: {told}", module_path!());
        assert_eq!(error, expected);
    }
    // A field that is new has its default, and one that is gone is passed over.
    assert!(stored("{\"number\":1,\"cents\":2}").is_ok());
    // Who takes none reads none: its tasks may have carried something once.
    let old = testing::run_task_stored::<nothing>("{\"number\":1}");
    assert!(crate::block_on(async { old.await }).is_ok());
}

#[test]
#[should_panic(expected = "the task `charge` asks for states that were not given with `.state(..)`: u64")]
fn a_state_that_nobody_gave_is_told() {
    crate::block_on(async { testing::run_task::<charge>(&invoice(1)).await }).unwrap();
}

#[test]
fn each_is_found_once() {
    #[task(queue = "macros/tasks")]
    async fn nested(text: String) {
        let _: String = ready(text).await;
    }

    let ours = module_path!();
    let mut found: Vec<_> = task_records()
        .filter(|(_, _, module)| module.starts_with(ours))
        .collect();
    found.sort_unstable();
    let mut expected: Vec<_> = [
        "a-name",
        "charge",
        "deprecated",
        "foreign",
        "from_a_macro",
        "nested",
        "nothing",
        "try",
    ]
    .map(|name| (name, "macros/tasks", ours))
    .to_vec();
    let todo = format!("{ours}::todo");
    expected.extend([
        ("in_the_usual_queue", DEFAULT_QUEUE, ours),
        ("renamed", "macros/tasks", &todo),
    ]);
    expected.sort_unstable();
    assert_eq!(found, expected);
    let text = testing::run_task::<nested>(&"text".to_owned());
    assert!(crate::block_on(async { text.await }).is_ok());
    // A task is no job, and a ticking job is no task of that name.
    let jobs: Vec<_> = records().filter(|(_, _, module)| module.starts_with(ours)).collect();
    assert_eq!(jobs, [("ticking", "macros/tasks", ours)]);
}

#[test]
fn a_record_holds_what_the_options_say() {
    assert_eq!((charge::NAME, charge::QUEUE), ("charge", "macros/tasks"));
    assert_eq!((refund::NAME, in_the_usual_queue::QUEUE), ("a-name", "default"));
    assert_eq!(
        format!("{:?}", charge::RECORD),
        "TaskRecord { name: \"charge\", queue: \"macros/tasks\", retries: 7, backoff: Some(Backoff { first: 2s, most: 60s }), \
         timeout: Some(30s), concurrency: Some(2), .. }"
    );
    assert_eq!(
        format!("{:?}", refund::RECORD),
        "TaskRecord { name: \"a-name\", queue: \"macros/tasks\", retries: 3, backoff: None, timeout: None, concurrency: None, .. }"
    );
    let record = format!("{:?}", <ticking as leader_core::Job>::RECORD);
    assert!(
        record.contains("on: Fleet, queue: Some(\"macros/tasks\"), concurrency: Some(1)"),
        "{record}"
    );
}

/// Payload and task belong together in types.
#[test]
fn a_payload_belongs_to_its_task() {
    const fn takes<H: TaskHandler, P: PayloadOf<H>>(_: &P) {}
    takes::<charge, _>(&invoice(1));
    takes::<refund, _>(&invoice(1));
    takes::<nothing, _>(&());
    takes::<in_the_usual_queue, ()>(&());
    let _: <charge as TaskHandler>::Payload = invoice(1);
}
