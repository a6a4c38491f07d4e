//! Whole processes: the examples as a user runs them, under real signals and on a real server.

mod axum_service;
mod checker;
mod cluster_cron;
mod fleet;
mod programs;
mod quickstart;
mod scenario;
mod signals;
