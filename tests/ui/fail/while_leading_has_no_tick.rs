use leader_core::{Lead, Tick, leader_only};

#[leader_only(while_leading)]
async fn standing(lead: Lead, tick: Tick) {
    let _ = (lead, tick);
}

fn main() {}
