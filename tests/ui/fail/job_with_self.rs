use leader_core::{Tick, leader_only};

struct Service;

impl Service {
    #[leader_only(cron = "*/5 * * * *")]
    async fn purge(&self, tick: Tick) {
        let _ = (self, tick);
    }
}

fn main() {}
