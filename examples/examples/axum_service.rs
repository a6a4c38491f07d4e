//! An instance beside an axum server: one SIGTERM stops both, the server first.
//!
//! Runs on the embedded store, or on the Redis that `LEADER_REDIS_URL` names; the port is that of `PORT`, else 8080.

use anyhow::Context;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Router, serve};
use leader_core::{Embedded, Instance, leader_only};

/// Runs only where `default` is led.
#[leader_only]
async fn rebuild_index() -> &'static str {
    "rebuilt\n"
}

/// Every instance answers; a balancer need not know who leads.
async fn role(State(instance): State<Instance>) -> String {
    let line = |status: &leader_core::GroupStatus| format!("{} of {}\n", status.role, status.group);
    instance.groups().iter().map(line).collect()
}

async fn rebuild() -> Result<&'static str, (StatusCode, String)> {
    let elsewhere = |skipped: leader_core::Skipped| (StatusCode::CONFLICT, format!("{skipped}\n"));
    rebuild_index().await.map_err(elsewhere)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter("info")
        .with_writer(std::io::stderr)
        .init();
    let instance = match std::env::var("LEADER_REDIS_URL") {
        Ok(url) => leader_core::bootstrap(url).await?,
        Err(_) => leader_core::bootstrap(Embedded::new()).await?,
    };
    let port: u16 = std::env::var("PORT")
        .map_or(Ok(8080), |port| port.parse())
        .context("`PORT` is no port number")?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let routes = Router::new().route("/", get(role)).route("/rebuild", post(rebuild));
    let signal = instance.clone();
    serve(listener, routes.with_state(instance.clone()))
        .with_graceful_shutdown(async move { signal.shutdown_signal().await })
        .await?;
    instance.shutdown().await;
    Ok(())
}
