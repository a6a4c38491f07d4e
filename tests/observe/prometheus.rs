//! What a real Prometheus makes of a fleet. Debian's package `prometheus` has the server and `promtool`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use axum::Router;
use leader_core::admin::Admin;
use leader_core::{Instance, Outcome, Target};
use leader_tests::{RedisServer, eventually};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::program::{SOON, fetch, instance, soon, try_fetch};

/// Runs `promtool` with these words, and with `input` where it reads some.
fn promtool(words: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = command
        .spawn()
        .expect("`promtool` of the package prometheus: `tests/run` installs it");
    running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = running.wait_with_output().unwrap();
    let told = [ended.stdout, ended.stderr]
        .map(|told| String::from_utf8_lossy(&told).into_owned())
        .concat();
    assert!(ended.status.success(), "promtool {words:?}: {told}");
}

#[tokio::test]
async fn promtool_finds_nothing_to_complain_of() {
    let a = instance(leader_core::Embedded::new(), "a").await.unwrap();
    soon("it leads", || a.is_leader("work")).await;
    promtool(&["check", "metrics"], &a.metrics().text());
    a.shutdown().await;
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy/rules.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
}

/// A server that scrapes these addresses four times a second.
struct Prometheus {
    process: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It is ours, by its own handle.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    async fn start(targets: &[SocketAddr]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let targets: Vec<_> = targets.iter().map(|address| format!("'{address}'")).collect();
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy/rules.yml");
        let config = format!(
            "global: {{ scrape_interval: 250ms, evaluation_interval: 1s }}\n\
             rule_files: ['{}']\n\
             scrape_configs:\n  - job_name: fleet\n    metrics_path: /leader/metrics\n    static_configs: [{{ targets: [{}] }}]\n",
            rules.display(),
            targets.join(", ")
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        // A port that was free a moment ago.
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn()
            .expect("`prometheus`: `tests/run` installs it");
        let prometheus = Self {
            process,
            address,
            _directory: directory,
        };
        eventually(SOON, "Prometheus is ready", || async {
            try_fetch(address, "/-/ready").await.is_some()
        })
        .await;
        prometheus
    }

    /// What an expression comes to now: the labels and the value of each series.
    async fn query(&self, expression: &str) -> Vec<(Value, f64)> {
        let mut encoded = String::new();
        for byte in expression.bytes() {
            write!(encoded, "%{byte:02x}").unwrap();
        }
        let text = fetch(self.address, &format!("/api/v1/query?query={encoded}")).await;
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let series = answer["data"]["result"].as_array().unwrap().iter();
        series
            .map(|one| {
                (
                    one["metric"].clone(),
                    one["value"][1].as_str().unwrap().parse().unwrap(),
                )
            })
            .collect()
    }

    /// The same of one series; 0 without any.
    async fn number(&self, expression: &str) -> f64 {
        let series = self.query(expression).await;
        assert!(series.len() < 2, "{expression}: {series:?}");
        series.first().map_or(0.0, |(_, value)| *value)
    }
}

async fn serve(instance: &Instance) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().nest_service("/leader", Admin::new(instance));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_scraped_through_a_take_over_is_what_the_ledger_says() {
    let server = RedisServer::start().await;
    let a = instance(server.url(), "a").await.unwrap();
    soon("it leads", || a.is_leader("work")).await;
    let b = instance(server.url(), "b").await.unwrap();
    let prometheus = Prometheus::start(&[serve(&a).await, serve(&b).await]).await;
    let ran = "sum(leader_cron_total{exported_job=\"works\",status=\"ran.ok\"})";
    eventually(SOON, "runs are scraped", || async {
        prometheus.number(ran).await >= 2.0
    })
    .await;
    assert_eq!(
        prometheus
            .number("sum(leader_election_is_leader{group=\"work\"})")
            .await,
        1.0
    );
    let first = if a.is_leader("work") { &a } else { &b };
    first.step_down("work").await.unwrap();
    let acquired = "sum(leader_acquired_total{group=\"work\"})";
    eventually(SOON, "the take-over is scraped", || async {
        prometheus.number(acquired).await == 2.0
    })
    .await;
    // In each scrape of each instance, whenever that was.
    let odd = "leader_acquired_total - on(instance, group) sum by (instance, group) (leader_lost_total) != on(instance, group) \
               leader_election_is_leader";
    assert_eq!(prometheus.query(odd).await, []);
    let at = "count_over_time((leader_acquired_total - on(instance, group) sum by (instance, group) (leader_lost_total) != \
              on(instance, group) leader_election_is_leader)[1m:250ms])";
    assert_eq!(prometheus.query(at).await, []);
    // From here on nothing is decided, and Prometheus comes to say what the ledger says.
    for job in ["works", "fails", "anywhere"] {
        a.control().pause(Target::job(job)).because("to count").await.unwrap();
    }
    for job in ["works", "fails", "anywhere"] {
        eventually(SOON, "the answers are the ledger's", || async {
            let ledger = a.ledger(job).await.unwrap();
            let expression =
                format!("sum by (status) (leader_cron_total{{exported_job=\"{job}\",status!=\"not-leader\"}})");
            let told = prometheus.query(&expression).await;
            let all = Outcome::all().all(|outcome| {
                let counted = told.iter().find(|(labels, _)| labels["status"] == outcome.as_str());
                let wanted = ledger.counts.get(&outcome).copied().unwrap_or(0);
                counted.is_some_and(|(_, value)| *value == f64::from(u32::try_from(wanted).unwrap()))
            });
            ledger.open.is_empty() && all
        })
        .await;
    }
    let paused = "max(leader_cron_paused{exported_job=\"works\"})";
    eventually(SOON, "the pause is scraped", || async {
        prometheus.number(paused).await == 1.0
    })
    .await;
    // Every rule can be evaluated.
    let rules: Value = serde_json::from_str(&fetch(prometheus.address, "/api/v1/rules").await).unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert!(rules.len() > 10);
    for rule in rules {
        assert!(rule["health"] == "ok" || rule["health"] == "unknown", "{rule}");
    }
    a.shutdown().await;
    b.shutdown().await;
    eventually(SOON, "nobody leads", || async {
        prometheus.number("sum(leader_election_is_leader)").await == 0.0
    })
    .await;
}
