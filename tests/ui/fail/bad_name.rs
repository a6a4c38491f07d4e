use leader_core::leader_only;

const GROUP: &str = "two words";

#[leader_only(group = "clean up")]
async fn literal() {}

#[leader_only(group = GROUP)]
async fn constant() {}

#[leader_only(every = "1h", name = "")]
async fn empty() {}

fn main() {}
