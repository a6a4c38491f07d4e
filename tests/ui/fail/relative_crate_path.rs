use leader_core::leader_only;

#[leader_only(crate = renamed::leader_core)]
async fn relative() {}

#[leader_only(crate = "leader_core")]
async fn text() {}

fn main() {}
