use leader_core::{Payload, leader_only};

#[derive(serde::Serialize, serde::Deserialize)]
struct Report;

/// A handler has no schedule of its own.
#[leader_only(handler, cron = "0 9 * * *")]
async fn two_triggers() {}

#[leader_only(handler, timezone = "UTC")]
async fn zoned() {}

/// Nobody could give it one.
#[leader_only(every = "1h")]
async fn laden(Payload(report): Payload<Report>) {
    let _: Report = report;
}

#[leader_only(handler)]
async fn twice(_: Payload<Report>, _: Payload<u64>) {}

fn main() {}
