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
        ("generic", "registration", ours),
        ("in_a_const_group", GROUP, ours),
        ("method", "registration", ours),
        ("nested", "registration", ours),
        ("plain", "registration", ours),
        ("plain", "registration", &inner),
        ("stable-name", "registration", ours),
        ("standing", GROUP, ours),
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
