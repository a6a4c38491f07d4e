use leader_core::leader_only;

#[leader_only(cron = "*/5 * * * *", every = "30s", while_leading)]
async fn purge() {}

fn main() {}
