use leader_core::{Tick, leader_only};

struct Db;

#[leader_only(cron = "*/5 * * * *")]
async fn purge(tick: Tick, db: Db) {
    let _ = (tick, db);
}

fn main() {}
