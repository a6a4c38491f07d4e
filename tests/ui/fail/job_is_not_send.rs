use std::rc::Rc;

use leader_core::leader_only;

#[leader_only(cron = "*/5 * * * *")]
async fn purge() -> Result<(), String> {
    let count = Rc::new(1);
    std::future::ready(()).await;
    Err(count.to_string())
}

fn main() {}
