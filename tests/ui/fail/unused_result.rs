#![deny(unused_must_use, unused_variables)]

use leader_core::leader_only;

#[leader_only]
async fn digest(to: &str) {}

#[leader_only]
async fn fails() -> Result<(), String> {
    Err(String::new())
}

async fn run() -> Result<(), leader_core::Skipped> {
    digest("ops").await;
    fails().await?;
    digest("ops");
    Ok(())
}

fn main() {
    let _ = run();
}
