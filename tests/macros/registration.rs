//! What the link-time list holds: every annotated function once, with its name, group and module.

use leader_core::__private::records;
use leader_core::{Job, Lead, State, Tick, leader_only};

const GROUP: &str = "registration/const";

#[leader_only(group = "registration")]
async fn plain() {}

#[leader_only(group = GROUP)]
async fn in_a_const_group() {}

#[leader_only(group = "registration", cron = "*/5 * * * *", name = "stable-name", timeout = "30s")]
async fn scheduled(tick: Tick, db: State<u8>) -> Result<u64, String> {
    Err(format!("{tick:?} {db:?}"))
}

#[leader_only(group = concat!("registration", "/", "const"), while_leading)]
async fn standing(lead: Lead, _db: Option<State<u8>>) {
    lead.cancelled().await;
}

mod zones {
    pub const HOME: &str = "Europe/Berlin";
}

macro_rules! on_a_wall_clock {
    ($name:ident, $cron:expr, $zone:expr) => {
        #[leader_only(group = "registration", cron = $cron, days = "and", timezone = $zone)]
        async fn $name() {}
    };
}

#[leader_only(
    group = "registration",
    cron = "0 0 9 1-7 * MON",
    days = "or",
    timezone = zones::HOME,
    jitter = concat!("30", "s"),
    grace = "1m",
    timeout = "1h30m"
)]
async fn with_every_time() {}

on_a_wall_clock!(from_a_macro, "0 9 1-7 * MON", "Asia/Tokyo");

#[leader_only(group = "registration", every = "7d", jitter = "1h")]
async fn jittered_period() {}

struct Service;

impl Service {
    #[leader_only(group = "registration")]
    async fn method(&self) {}
}

#[leader_only(group = "registration")]
async fn generic<T: Send>(_: T) {}

mod inner {
    #[leader_core::leader_only(group = "registration")]
    pub async fn plain() {}
}

#[cfg(any())]
#[leader_only(group = "registration")]
async fn configured_out_above() {}

#[leader_only(group = "registration", every = "1h")]
#[cfg(any())]
async fn configured_out_below() {}

#[leader_only(group = "registration", every = "1h")]
#[cfg(test)]
async fn configured_in() {}

#[test]
fn each_function_is_found_once() {
    #[leader_only(group = "registration")]
    async fn nested() {}

    let ours = concat!(module_path!());
    let mut found: Vec<_> = records().filter(|(_, _, module)| module.starts_with(ours)).collect();
    found.sort_unstable();
    let inner = format!("{ours}::inner");
    let expected = [
        ("configured_in", "registration", ours),
        ("from_a_macro", "registration", ours),
        ("generic", "registration", ours),
        ("in_a_const_group", GROUP, ours),
        ("jittered_period", "registration", ours),
        ("method", "registration", ours),
        ("nested", "registration", ours),
        ("plain", "registration", ours),
        ("plain", "registration", &inner),
        ("stable-name", "registration", ours),
        ("standing", GROUP, ours),
        ("with_every_time", "registration", ours),
    ];
    assert_eq!(found, expected);
    drop((
        plain(),
        in_a_const_group(),
        Service.method(),
        generic(1),
        inner::plain(),
        nested(),
    ));
}

#[test]
fn a_handle_names_job_and_group() {
    assert_eq!((scheduled::NAME, scheduled::GROUP), ("stable-name", "registration"));
    assert_eq!((standing::NAME, standing::GROUP), ("standing", GROUP));
    let record = format!("{:?}", scheduled::RECORD);
    assert!(record.contains("*/5 * * * *"), "{record}");
}

#[test]
fn a_record_holds_what_the_options_say() {
    let holds = |record: &dyn std::fmt::Debug, parts: &[&str]| {
        let record = format!("{record:?}");
        assert!(parts.iter().all(|part| record.contains(part)), "{parts:?} in {record}");
    };
    holds(
        &with_every_time::RECORD,
        &[
            "Cron(\"0 0 9 1-7 * MON\")",
            "timezone: Some(\"Europe/Berlin\"), days: Or, jitter: Some(30s), timeout: Some(5400s), grace: Some(60s)",
        ],
    );
    holds(
        &from_a_macro::RECORD,
        &["timezone: Some(\"Asia/Tokyo\"), days: And, jitter: None"],
    );
    holds(
        &jittered_period::RECORD,
        &["Every(\"7d\")", "timezone: None, days: Unsaid, jitter: Some(3600s)"],
    );
    holds(&scheduled::RECORD, &["timezone: None, days: Unsaid, jitter: None"]);
}
