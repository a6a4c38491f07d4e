use std::rc::Rc;

use leader_core::{State, task};

#[task]
async fn no_result(_: String) -> u8 {
    1
}

#[task]
async fn not_send(_: String) {
    let kept = Rc::new(1);
    std::future::ready(()).await;
    drop(kept);
}

struct NotClone;

#[task]
async fn not_clone(_: State<NotClone>) {}

fn main() {}
