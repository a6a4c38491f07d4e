use std::future::Future;
use std::pin::Pin;

use leader_core::leader_only;

#[leader_only]
fn written_out() -> impl Future<Output = u8> {
    async { 1 }
}

#[leader_only]
fn boxed() -> Pin<Box<dyn Future<Output = u8> + Send>> {
    Box::pin(async { 1 })
}

fn main() {}
