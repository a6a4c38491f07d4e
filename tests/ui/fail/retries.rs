use leader_core::leader_only;

#[leader_only(every = "1h", backoff = "1s")]
async fn pauses_for_nothing() {}

#[leader_only(every = "1h", retries = 0, backoff = "1s")]
async fn tries_once() {}

#[leader_only(retries = 3, backoff = "1s")]
async fn called() {}

#[leader_only(every = "1h", retries = 1001, backoff = "5s..1s")]
async fn too_often() {}

#[leader_only(every = "1h", retries = "3", backoff = "soon")]
async fn quoted() {}

#[leader_only(every = "1h", retries = -1, backoff = 5)]
async fn negative() {}

#[leader_only(every = "1h", retries = 3, backoff = "0s")]
async fn at_once() {}

#[leader_only(every = "1h", retries = 3, backoff = "1s..2x")]
async fn bad_unit() {}

fn main() {}
