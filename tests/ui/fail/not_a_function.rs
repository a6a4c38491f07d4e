use leader_core::leader_only;

#[leader_only]
struct Purge;

fn main() {
    let _ = Purge;
}
