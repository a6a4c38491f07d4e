use leader_core::{Lead, leader_only};

#[leader_only(timeout = "30s", missed = "skip")]
async fn called() {}

#[leader_only(while_leading, grace = "5s")]
async fn standing(_lead: Lead) {}

fn main() {}
