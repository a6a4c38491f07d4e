use leader_core::leader_only;

#[leader_only(cron = 5, missed = "lastest", on_loss = STOP, timeout = 30, name = NAME, group)]
async fn purge() {}

#[leader_only(every("30s"), while_leading = true, name =)]
async fn refresh() {}

#[leader_only("cleanup")]
async fn sweep() {}

fn main() {}
