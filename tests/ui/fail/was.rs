use leader_core::leader_only;

const OLD: &str = "purge_all";

#[leader_only(every = "1h", was = "purge sessions")]
async fn spaced() {}

#[leader_only(every = "1h", was = "unchanged")]
async fn unchanged() {}

#[leader_only(every = "1h", name = "purge_all", was = [OLD, "sweep", "sweep"])]
async fn doubled() {}

#[leader_only(every = "1h", name = "purge_all", was = OLD)]
async fn constant() {}

#[leader_only(was = "purge")]
async fn called() {}

#[leader_only(every = "1h", was = [])]
async fn nothing() {}

fn main() {}
