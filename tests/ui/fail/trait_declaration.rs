use leader_core::leader_only;

trait Purge {
    #[leader_only]
    async fn purge(&self);
}

fn main() {}
