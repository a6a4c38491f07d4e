//! The naive way: each instance asks for each group at every renewal interval.

use std::time::Duration;

use leader_core::Timing;
use leader_tests::RedisServer;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::commands::Commands;

/// Lets a few instances do so on a server of their own, for some seconds; the commands that one of them sends each second.
pub async fn per_instance(
    server: &RedisServer,
    instances: usize,
    groups: usize,
    timing: Timing,
    span: Duration,
) -> f64 {
    let until = Instant::now() + span;
    let mut tasks = JoinSet::new();
    for number in 0..instances {
        let client = redis::Client::open(server.url()).expect("a URL");
        // Spread over the interval, as processes are that start at different times.
        let offset = timing.renew() * u32::try_from(number).expect("a few") / u32::try_from(instances).expect("a few");
        let poll = poll(client, number, groups, timing, offset);
        tasks.spawn(tokio::time::timeout_at(until, poll));
    }
    tasks.join_all().await;
    let counted = Commands::until_now(server).await;
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let per_instance = (counted.of("set") + counted.of("eval")) as f64 / instances as f64;
    per_instance / span.as_secs_f64()
}

/// One instance: one command for each group at each interval, which is the least that this way can do.
async fn poll(client: redis::Client, number: usize, groups: usize, timing: Timing, offset: Duration) {
    let renew =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
    // A busy machine may keep it waiting; only what it sends is of interest.
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    let mut connection = connection.expect("the server is there");
    let ttl = u64::try_from(timing.ttl().as_millis()).expect("a lease's time");
    let mut led = vec![false; groups];
    tokio::time::sleep(offset).await;
    let mut interval = tokio::time::interval(timing.renew());
    loop {
        interval.tick().await;
        for (group, led) in led.iter_mut().enumerate() {
            let key = format!("naive:{group}");
            let mut command = redis::Cmd::new();
            if *led {
                command.arg("EVAL").arg(renew).arg(1).arg(key).arg(number).arg(ttl);
                *led = command.query_async::<u64>(&mut connection).await.expect("answered") == 1;
            } else {
                command.arg("SET").arg(key).arg(number).arg("NX").arg("PX").arg(ttl);
                *led = command
                    .query_async::<Option<String>>(&mut connection)
                    .await
                    .expect("answered")
                    .is_some();
            }
        }
    }
}
