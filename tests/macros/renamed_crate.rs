//! The core crate under other names.

extern crate leader_core as elsewhere;

use crate::block_on;

/// What a crate that re-exports the core does.
pub mod exported {
    pub use leader_core as leader;
}

#[elsewhere::leader_only(crate = crate::renamed_crate::exported::leader, every = "30s")]
async fn by_crate_path() -> Result<(), String> {
    Err("ran".to_owned())
}

#[elsewhere::leader_only(crate = ::leader_core)]
async fn by_absolute_path() -> u8 {
    1
}

/// What such a crate's own `macro_rules!` does.
macro_rules! by_dollar_crate {
    ($name:ident) => {
        #[elsewhere::leader_only(crate = $crate::renamed_crate::exported::leader, cron = "0 * * * *")]
        async fn $name(_tick: elsewhere::Tick) {}
    };
}

by_dollar_crate!(by_dollar_crate);

#[elsewhere::task(
    crate = crate::renamed_crate::exported::leader,
    retries = 1,
    backoff = "1s",
    timeout = "1s",
    concurrency = 1,
    queue = "q"
)]
async fn task_by_crate_path(
    number: u8,
    task: elsewhere::Task,
    elsewhere::State(text): elsewhere::State<&'static str>,
) -> Result<(), String> {
    Err(format!("{number} {} {text}", task.name()))
}

#[elsewhere::scheduled(crate = crate::renamed_crate::exported::leader, on = "fleet", every = "1h", queue = "q")]
async fn ticking_by_crate_path() {
    std::future::ready(()).await;
}

#[test]
fn the_path_is_used_for_everything() {
    let open = elsewhere::testing::as_leader(async { (by_crate_path().await, by_absolute_path().await) });
    assert_eq!(block_on(open), (Ok(Err("ran".to_owned())), Ok(1)));
    assert_eq!(<by_dollar_crate as elsewhere::Job>::NAME, "by_dollar_crate");
    let attempt = elsewhere::testing::run_task::<task_by_crate_path>(&7).state("text");
    let error = block_on(async { attempt.await }).unwrap_err();
    assert_eq!(error.to_string(), "7 task_by_crate_path text");
    assert_eq!(<ticking_by_crate_path as elsewhere::Job>::NAME, "ticking_by_crate_path");
}
