use leader_core::leader_only;

struct PurgeError;

#[leader_only(cron = "*/5 * * * *")]
async fn purge() -> Result<u64, PurgeError> {
    Err(PurgeError)
}

fn main() {}
