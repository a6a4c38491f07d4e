//! The midnight invoice run: every invoice is a task, all of them are due at one instant, and a fleet charges each once, while the
//! dispatcher and a worker are killed.
//!
//! Runs in one process on the embedded store, or with a process for each instance on the Redis that `LEADER_REDIS_URL` names.

mod fleet;
mod ledger;
mod options;
mod report;
mod run;
mod work;

use std::process::ExitCode;

use fleet::Ground;
use options::{Options, Part};

#[tokio::main]
async fn main() -> ExitCode {
    let part = Options::of_process();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into());
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    log.with_writer(std::io::stderr).init();
    let ended = match part {
        Part::Instance(instance) => fleet::serve(instance).await.map(|()| true),
        Part::Run(options) => run(&options).await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the run was as it should be.
async fn run(options: &Options) -> anyhow::Result<bool> {
    let ground = Ground::find(options).await?;
    let ended = tokio::select! {
        ended = run::run(options, &ground) => ended,
        signal = tokio::signal::ctrl_c() => signal.map_err(Into::into).and_then(|()| Err(anyhow::anyhow!("interrupted"))),
    };
    // Whatever came of it: nothing of the run is left on the store.
    let cleaned = ground.clean().await;
    let report = ended?;
    cleaned?;
    for line in report.table() {
        println!("{line}");
    }
    let wrong = report.wrong();
    for line in &wrong {
        eprintln!("error: {line}");
    }
    Ok(wrong.is_empty())
}
