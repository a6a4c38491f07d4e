use leader_core::leader_only;

#[leader_only(cron = "*/5 * * * *")]
async fn purge() -> u64 {
    7
}

fn main() {}
