//! Inside `macro_rules!`, and among names that look like ours.

use leader_core::leader_only;
use leader_core::testing::as_leader;

use crate::block_on;

macro_rules! doubled {
    ($name:ident, $argument:ident: $ty:ty, group = $group:literal) => {
        #[leader_only(group = $group)]
        async fn $name($argument: $ty) -> $ty {
            // These are the macro's own `entry` and `skipped`, not the expansion's.
            let entry = $argument;
            let skipped = entry + $argument;
            skipped
        }
    };
}

doubled!(double, entry: u64, group = "hygiene");

/// The macro's `n` and the caller's are two variables.
macro_rules! adds_own_n {
    ($name:ident, $n:ident, $body:expr) => {
        #[leader_only]
        async fn $name($n: u8, n: u8) -> u8 {
            $body * 10 + n
        }
    };
}

adds_own_n!(two_ns, n, n + 1);

macro_rules! job {
    ($name:ident($tick:ident), every = $every:expr, name = $job_name:literal) => {
        #[leader_only(every = $every, name = $job_name, timeout = $every)]
        async fn $name($tick: leader_core::Tick) -> Result<(), String> {
            Err($tick.job().to_string())
        }
    };
}

job!(from_a_macro(tick), every = "15m", name = "hygiene-job");

/// The payload's type and its pattern come from the caller, the function's name and the task from the macro.
macro_rules! task {
    ($name:ident($payload:pat => $ty:ty), queue = $queue:expr) => {
        #[leader_core::task(queue = $queue)]
        async fn $name($payload: $ty, task: leader_core::Task) -> Result<(), String> {
            let given = task.queue();
            Err(format!("{} in {given}", task.id().key().len()))
        }
    };
}

task!(task_from_a_macro((_given, _needs) => (u8, Option<String>)), queue = concat!("hygiene", "-queue"));

#[leader_only]
async fn called_like_ours(entry: u8, skipped: u8, needs: u8, given: u8) -> u8 {
    const __LEADER_GROUP: u8 = 1;
    struct Record;
    let (_, result) = (Record, entry + skipped + needs + given);
    result + __LEADER_GROUP
}

#[test]
fn names_of_user_and_macro_do_not_meet() {
    assert_eq!(block_on(as_leader(double(21))), Ok(42));
    assert_eq!(block_on(as_leader(two_ns(3, 5))), Ok(45));
    assert_eq!(block_on(as_leader(called_like_ours(1, 2, 3, 4))), Ok(11));
}

#[test]
fn a_job_made_by_a_macro_has_its_handle() {
    assert_eq!(<from_a_macro as leader_core::Job>::NAME, "hygiene-job");
}

#[test]
fn a_task_made_by_a_macro_has_its_handle() {
    let attempt = leader_core::testing::run_task::<task_from_a_macro>(&(1, None));
    let error = block_on(async { attempt.await }).unwrap_err();
    assert_eq!(error.to_string(), "26 in hygiene-queue");
}
