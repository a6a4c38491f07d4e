use leader_core::{State, leader_only};

struct Db;

#[leader_only(cron = "*/5 * * * *")]
async fn purge(State(db): State<Db>) {
    let _ = db;
}

fn main() {}
