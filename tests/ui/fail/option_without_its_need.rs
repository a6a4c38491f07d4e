use leader_core::{Lead, leader_only};

#[leader_only(timeout = "30s", missed = "skip")]
async fn called() {}

#[leader_only(while_leading, grace = "5s")]
async fn standing(_lead: Lead) {}

#[leader_only(jitter = "30s", timezone = "Europe/Berlin", days = "or")]
async fn called_too() {}

#[leader_only(every = "1d", timezone = "Europe/Berlin", days = "and")]
async fn daily() {}

#[leader_only(while_leading, jitter = "30s", timezone = "Europe/Berlin")]
async fn standing_too(_lead: Lead) {}

#[leader_only(every = "1h", max_missed = 20)]
async fn newest() {}

#[leader_only(every = "1h", missed = "skip", max_missed = 20, max_age = "2h")]
async fn skipping() {}

#[leader_only(while_leading, max_age = "2h")]
async fn standing_as_well(_lead: Lead) {}

fn main() {}
