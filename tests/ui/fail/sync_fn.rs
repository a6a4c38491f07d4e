use leader_core::leader_only;

#[leader_only]
fn purge() {}

fn main() {
    // The function is still there, as it was written.
    purge();
}
