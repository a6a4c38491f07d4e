use leader_core::leader_only;

#[leader_only]
const async fn constant() {}

#[leader_only]
async unsafe fn not_safe() {}

#[leader_only]
async extern "C" fn foreign() {}

#[leader_only]
async fn never() -> ! {
    loop {}
}

fn main() {}
