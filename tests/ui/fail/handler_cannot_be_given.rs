use leader_core::{Handler, Payload, Tick, leader_only};

#[leader_only(handler)]
async fn strange(_: Tick, _: Vec<u8>) {}

/// It must be read from JSON.
struct Opaque;

#[leader_only(handler)]
async fn opaque(_: Payload<Opaque>) {}

#[leader_only(every = "1h")]
async fn purge() {}

fn scheduled<H: Handler>() {}

fn main() {
    scheduled::<purge>();
}
