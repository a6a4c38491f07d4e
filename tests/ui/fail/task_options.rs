use leader_core::task;

#[task(quue = "invoices", retires = 3, max_attempts = 3)]
async fn typos() {}

#[task(queue = "a", queue = "b")]
async fn doubled() {}

#[task(queue = "in voices")]
async fn bad_queue() {}

#[task(queue = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890")]
async fn long_queue() {}

const NONE: u32 = 0;

#[task(concurrency = NONE, retries = 1001, backoff = "0s", timeout = "soon")]
async fn impossible() {}

#[task(cron = "* * * * *", on = "any", group = "g", was = "old", while_leading)]
async fn options_of_jobs() {}

#[task(concurrency = "4", retries)]
async fn other_kinds() {}

#[task(retries = 0, backoff = "1s")]
async fn never_tried_again() {}

#[leader_core::leader_only(queue = "invoices")]
async fn gated() {}

#[leader_core::scheduled(on = "any", every = "1h", queue = "invoices", concurrency = 1)]
async fn ticking() {}

#[leader_core::scheduled(on = "fleet", every = "1h", overlap = "skip", queue = "in voices")]
async fn ticking_in_the_fleet() {}

fn main() {}
