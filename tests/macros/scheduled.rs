//! `#[scheduled]` leaves the function as it is, and finds it all the same.

use std::future::ready;

use leader_core::__private::records;
use leader_core::{Job, State, Tick, scheduled, testing};

/// What any crate may write: arguments that are taken apart, early returns, a result of its own.
#[scheduled(on = "any", group = "scheduled", every = "1h")]
async fn parsed(_tick: Tick, State(text): State<&'static str>) -> Result<u8, std::num::ParseIntError> {
    if text.is_empty() {
        return Ok(0);
    }
    ready(text).await.parse()
}

#[scheduled(on = "any", group = "scheduled", cron = "0 3 * * *", name = "a-name", retries = 1)]
async fn named() {}

#[cfg(any())]
#[scheduled(on = "any", every = "1h")]
async fn configured_out_above() {}

#[scheduled(on = "any", every = "1h")]
#[cfg(any())]
async fn configured_out_below() {}

macro_rules! every {
    ($name:ident, $period:literal) => {
        #[scheduled(on = "any", group = "scheduled", every = $period)]
        async fn $name() {
            ready(()).await;
        }
    };
}

every!(from_a_macro, "90s");

#[test]
fn a_call_is_a_plain_call() {
    let at = "2026-11-30T08:00:00Z".parse().unwrap();
    // Its type is what was written, and no instance is asked.
    let call = parsed(Tick::for_test(at), State("7"));
    let called: Result<u8, std::num::ParseIntError> = crate::block_on(call);
    assert_eq!(called, Ok(7));
    crate::block_on(named());
}

#[test]
fn a_run_takes_its_arguments_and_tells_its_error() {
    let at = "2026-11-30T08:00:00Z".parse().unwrap();
    let run = |text: &'static str| crate::block_on(async move { testing::run_job::<parsed>(at).state(text).await });
    assert!(run("7").is_ok());
    let error = run("x").unwrap_err();
    assert!(error.to_string().contains("invalid digit"), "{error}");
}

#[test]
fn each_is_found_once() {
    #[scheduled(on = "any", group = "scheduled", every = "1h")]
    async fn nested() {
        ready(()).await;
    }

    let ours = module_path!();
    let mut found: Vec<_> = records().filter(|(_, _, module)| module.starts_with(ours)).collect();
    found.sort_unstable();
    let expected = ["a-name", "from_a_macro", "nested", "parsed"].map(|name| (name, "scheduled", ours));
    assert_eq!(found, expected);
    assert_eq!((named::NAME, named::GROUP), ("a-name", "scheduled"));
    let _ = nested::NAME;
}
