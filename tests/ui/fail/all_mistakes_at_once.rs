use leader_core::leader_only;

#[leader_only(group = "a" group = "b", crn = "* * * * *", timeout = 30, missed = "never", crate = leader)]
fn purge() {}

fn main() {}
