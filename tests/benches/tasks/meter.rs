//! Small measures.

use std::time::Duration;

use leader_tests::RedisServer;

/// The middle one.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// So many a second.
pub(crate) fn rate(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}

/// The one below which so many of a thousand are; `values` are in order.
pub(crate) fn per_mille(values: &[Duration], of: usize) -> Duration {
    values[(values.len() * of / 1000).min(values.len() - 1)]
}

/// Processor time of the server, in seconds.
pub(crate) async fn of_the_server(server: &RedisServer) -> f64 {
    let mut all = 0.0;
    for name in ["used_cpu_user", "used_cpu_sys"] {
        all += server.fact("cpu", name).await.parse::<f64>().expect("seconds");
    }
    all
}

/// Processor time of this process, in seconds.
pub(crate) fn own() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux tells");
    let (_, rest) = stat.rsplit_once(')').expect("a name in brackets");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks: f64 = [fields[11], fields[12]]
        .map(|ticks| ticks.parse::<f64>().expect("ticks"))
        .iter()
        .sum();
    let second = u32::try_from(rustix::param::clock_ticks_per_second()).expect("a hundred or a thousand");
    ticks / f64::from(second)
}
