//! One process of the fleet.

use std::process::ExitCode;
use std::time::Duration;

use leader_core::{State, Task, Timing, task};

use crate::ledger::Ledger;
use crate::{NAMESPACE, TTL};

/// What one task is to do: take its time, then have its effect; and fail now and then.
#[task(queue = "work", retries = 50, backoff = "50ms..500ms")]
pub(crate) async fn act(takes_ms: u64, task: Task, State(ledger): State<Ledger>) -> Result<(), String> {
    tokio::time::sleep(Duration::from_millis(takes_ms)).await;
    let made = ledger.effect(task.id().key(), task.fence(), task.due_at()).await;
    let made = made.map_err(|error| error.to_string())?;
    // A step that failed after its effect is the hardest: it is tried again, and only confirms.
    if made == "made" && task.fence().is_multiple_of(50) {
        return Err("failed after the effect".to_owned());
    }
    if made == "refused" {
        return Err("another has this task".to_owned());
    }
    Ok(())
}

pub(crate) fn main(mut words: impl Iterator<Item = String>) -> ExitCode {
    let (Some(id), Some(url), Some(direct)) = (words.next(), words.next(), words.next()) else {
        eprintln!("node ID URL DIRECT_URL");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let ledger = Ledger::open(&direct).await.expect("the server answers");
        let instance = leader_core::bootstrap(url)
            .namespace(NAMESPACE)
            .service("task-chaos")
            .instance_id(id)
            .first_start(true)
            .timing(Timing::from_ttl(TTL))
            .state(ledger)
            .tasks(|tasks| tasks.concurrency(200).keep_ended(1_000, Duration::from_secs(3_600)))
            .await
            .expect("the instance starts");
        instance.run_until_shutdown().await.expect("the signals can be heard");
    });
    ExitCode::SUCCESS
}
