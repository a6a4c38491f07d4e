//! The promised times of a change of hands, on a short run of what the bench `takeover` measures.

use std::sync::Arc;
use std::time::Duration;

use leader_tests::RedisServer;

use crate::takeovers::{AFTER_KILL, AFTER_RELEASE, Takeover, Way, percentiles, takeovers};

async fn hold(way: Way, count: usize, promise: Duration) {
    let seed = leader_tests::seed();
    println!("LEADER_CHAOS_SEED={seed}");
    let server = Arc::new(RedisServer::start().await);
    let all = takeovers(&server, way, 4, count, seed).await;
    assert_eq!(all.len(), count);
    let [p50, p99, most] = percentiles(all.iter().map(|one| one.took).collect());
    println!("{way}: {count} takeovers, p50 {p50:?}, p99 {p99:?}, max {most:?}, promised {promise:?}");
    // What the machine gave to others is not the library's.
    let [_, p99, _] = percentiles(all.iter().map(|one| one.took.saturating_sub(one.stalled)).collect());
    let texts: Vec<_> = all.iter().map(Takeover::to_string).collect();
    assert!(p99 <= promise, "{}", texts.join("\n"));
}

#[tokio::test]
async fn a_group_whose_leader_stops_is_led_again_as_promised() {
    hold(Way::Stopped, 24, AFTER_RELEASE).await;
}

#[tokio::test]
async fn a_group_whose_leader_is_killed_is_led_again_as_promised() {
    hold(Way::Killed, 16, AFTER_KILL).await;
}

#[test]
fn percentiles_are_by_nearest_rank() {
    let ms = |values: std::ops::RangeInclusive<u64>| values.map(Duration::from_millis).collect::<Vec<_>>();
    assert_eq!(percentiles(ms(1..=100)), [50, 99, 100].map(Duration::from_millis));
    assert_eq!(percentiles(ms(7..=7)), [7, 7, 7].map(Duration::from_millis));
}
