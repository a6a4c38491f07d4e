use leader_core::leader_only;

#[leader_only(group = "a", name = "n", group = "b")]
async fn purge() {}

fn main() {}
