use leader_core::{Tick, leader_only};

struct Service;

impl Service {
    // That this is no free function cannot be seen from its tokens.
    #[leader_only(cron = "*/5 * * * *")]
    async fn purge(_tick: Tick) {}
}

fn main() {}
