//! The least that the same work can cost: bare timers, and one bare claim of all jobs due in one script.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use leader_tests::RedisServer;

use crate::meter::{Figures, Lateness, Load, cpu, server_cpu};

/// Moves each job's cursor to the tick and mints a fence, or not.
const CLAIM: &str = r"
local fence = tonumber(redis.call('GET', KEYS[1]) or '0')
local answer = {}
for i = 2, #KEYS do
  if tonumber(redis.call('GET', KEYS[i]) or '0') < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[i], ARGV[1])
    fence = fence + 1
    answer[i - 1] = fence
  else
    answer[i - 1] = 0
  end
end
redis.call('SET', KEYS[1], fence)
return answer
";

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

fn next_second() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second() + 1).expect("a time of today")
}

async fn sleep_until(at: Timestamp) {
    let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
}

/// One task with a timer for each job.
pub fn timers(load: Load) -> Figures {
    let lateness = Arc::new(Lateness::new());
    let began = cpu();
    let from = next_second();
    runtime().block_on(async {
        let job = |_| {
            let lateness = Arc::clone(&lateness);
            tokio::spawn(async move {
                for second in 1..=load.seconds {
                    let tick = from + Duration::from_secs(second);
                    sleep_until(tick).await;
                    lateness.note(tick, Timestamp::now());
                }
            })
        };
        let jobs: Vec<_> = (0..load.jobs).map(job).collect();
        for job in jobs {
            job.await.expect("no panic");
        }
    });
    figures(&lateness, from, load, cpu().saturating_sub(began), None)
}

/// One timer, one script for all jobs, one spawned body for each claim.
pub fn claims(server: &RedisServer, load: Load) -> Figures {
    let lateness = Arc::new(Lateness::new());
    runtime().block_on(async {
        server.command(&["FLUSHALL"]).await;
        let client = redis::Client::open(server.url()).expect("a URL");
        let mut connection = client
            .get_multiplexed_async_connection()
            .await
            .expect("the server is there");
        let keys: Vec<_> = (0..load.jobs)
            .map(|n| format!("{{leader:default}}:job:job-{n}"))
            .collect();
        let from = next_second();
        let began = (cpu(), server_cpu(server).await);
        for second in 1..=load.seconds {
            let tick = from + Duration::from_secs(second);
            sleep_until(tick).await;
            let mut eval = redis::cmd("EVAL");
            eval.arg(CLAIM)
                .arg(keys.len() + 1)
                .arg("{leader:default}:fence")
                .arg(&keys);
            eval.arg(tick.as_millisecond());
            let fences: Vec<u64> = eval.query_async(&mut connection).await.expect("the script runs");
            for _ in fences.into_iter().filter(|fence| *fence > 0) {
                let lateness = Arc::clone(&lateness);
                tokio::spawn(async move { lateness.note(tick, Timestamp::now()) });
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ended = (cpu(), server_cpu(server).await);
        let server_cpu = Some(ended.1.saturating_sub(began.1));
        figures(&lateness, from, load, ended.0.saturating_sub(began.0), server_cpu)
    })
}

fn figures(lateness: &Lateness, from: Timestamp, load: Load, cpu: Duration, server_cpu: Option<Duration>) -> Figures {
    Figures {
        late: lateness.take(from, load.seconds),
        due: load.jobs as u64 * load.seconds,
        seconds: load.seconds,
        round_trips: None,
        cpu,
        server_cpu,
    }
}
