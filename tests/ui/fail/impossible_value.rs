use leader_core::leader_only;

#[leader_only(cron = 5, missed = "lastest", on_loss = STOP, timeout = 30, name = NAME, group)]
async fn purge() {}

#[leader_only(every("30s"), while_leading = true, name =)]
async fn refresh() {}

#[leader_only(cron = "0 0 9 1-7 * MON", days = "both", timezone = 2, jitter)]
async fn report() {}

#[leader_only(cron = "0 0 9 1-7 * MON", days = and)]
async fn report_too() {}

#[leader_only(every = "1h", missed = "all", max_missed = 0)]
async fn none() {}

#[leader_only(every = "1h", missed = "all", max_missed = 20_000, max_age = "2x")]
async fn too_many() {}

#[leader_only(every = "1h", missed = "all", max_missed = "20")]
async fn quoted() {}

#[leader_only("cleanup")]
async fn sweep() {}

fn main() {}
