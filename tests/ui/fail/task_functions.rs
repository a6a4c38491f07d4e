use leader_core::{Payload, Task, leader_only, scheduled, task};

#[task]
fn not_async(_: String) {}

#[task]
async fn generic<T: Send>(_: T) {}

#[task]
async fn any_type(_: impl Into<String>) {}

#[task]
async fn borrows(_: &str) {}

#[task]
async fn borrows_within(_: Option<&[u8]>, _: Task) {}

#[task]
async fn wrapped(_: Payload<String>) {}

#[task]
async fn zahlung_für(_: String) {}

#[task]
#[leader_only]
async fn gated() {}

#[scheduled(on = "fleet", every = "1h")]
#[task]
async fn ticking() {}

struct Service;

impl Service {
    #[task]
    async fn method(&self, _: String) {}
}

#[task]
struct NoFunction;

fn main() {}
