//! Public, documented code in a crate that denies every lint it can find. That it compiles, and that clippy is silent, is the
//! test.

use leader_core::{Lead, Skipped, State, Task, Tick, leader_only, task};

/// A number.
#[derive(Clone, Copy, Debug)]
pub struct Settings(pub u64);

/// Documented with a section of its own.
///
/// # Panics
/// Never.
///
/// # Errors
/// When the text is no number.
#[leader_only(group = "strict")]
pub async fn sections(text: &str, _unused: u8) -> Result<u8, std::num::ParseIntError> {
    use std::str::FromStr as _;
    fn helper(text: &str) -> &str {
        text.trim()
    }
    std::future::ready(()).await;
    u8::from_str(helper(text))
}

#[leader_only]
pub async fn without_documentation(mut number: u8, Settings(inner): Settings, (left, _): (u8, u8)) {
    number += left;
    std::future::ready(()).await;
    let _: u64 = u64::from(number) + inner;
}

/// A job.
#[leader_only(
    cron = "*/5 0 1-7 * MON",
    days = "or",
    timezone = "Europe/Berlin",
    jitter = "1m",
    timeout = "30s",
    grace = "5s",
    missed = "latest",
    on_loss = "cancel"
)]
pub async fn strict_job(tick: Tick, State(settings): State<Settings>) -> anyhow::Result<u64> {
    std::future::ready(()).await;
    Ok(tick.fence() + settings.0)
}

/// A standing job.
#[leader_only(while_leading)]
pub(crate) async fn strict_standing(lead: Lead, _settings: Option<State<Settings>>) {
    lead.cancelled().await;
}

/// What a task carries.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Letter {
    /// To whom.
    pub to: String,
}

/// A task, with a section of its own.
///
/// # Errors
/// Never.
#[task(queue = "strict", retries = 5, backoff = "1s", timeout = "30s", concurrency = 4)]
pub async fn strict_task(Letter { to }: Letter, _task: Task, State(settings): State<Settings>) -> anyhow::Result<u64> {
    std::future::ready(to).await;
    Ok(settings.0)
}

/// It waits for nothing.
#[task]
pub(crate) async fn strict_task_without_payload() {}

/// A service.
#[derive(Debug, Default)]
pub struct Service {
    count: u64,
}

impl Service {
    /// A method.
    #[leader_only]
    pub async fn counted(&mut self, by: u64) -> u64 {
        std::future::ready(()).await;
        self.count += by;
        self.count
    }
}

#[test]
fn strict_code_runs() {
    let future = async {
        let mut service = Service::default();
        without_documentation(1, Settings(2), (3, 4)).await?;
        assert!(sections(" x ", 0).await?.is_err());
        service.counted(3).await
    };
    assert_eq!(crate::block_on(leader_core::testing::as_leader(future)), Ok(3));
    assert_eq!(
        crate::block_on(without_documentation(1, Settings(2), (3, 4))),
        Err(Skipped::NotBootstrapped)
    );
}
