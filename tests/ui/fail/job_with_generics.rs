use leader_core::{State, leader_only};

#[leader_only(cron = "*/5 * * * *")]
async fn generic<T: Send>(_state: State<T>) {}

#[leader_only(every = "1h")]
async fn lifetime<'a>(_text: &'a str) {}

#[leader_only(every = "1h")]
async fn anonymous(_text: impl Send) {}

fn main() {}
