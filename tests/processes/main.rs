//! Whole processes: the examples as a user runs them, under real signals and on a real server.

mod axum_service;
mod cluster_cron;
mod fences;
mod fleet;
mod invoices;
mod programs;
mod promises;
mod quickstart;
mod register;
mod scenario;
mod signals;
mod stalls;
mod takeovers;
