use leader_core::leader_only;

struct Db;

#[leader_only(cron = "*/5 * * * *")]
async fn purge(db: &Db) {
    let _ = db;
}

fn main() {}
