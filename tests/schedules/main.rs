//! The schedule engine from outside, against an evaluator that shares nothing with it but the written rules.
#![allow(clippy::unwrap_used, reason = "a test fails by panic")]

mod bounds;
mod cases;
mod choice;
mod differential;
mod draw;
mod found;
mod fuzz;
mod meter;
mod oracle;
mod pitfalls;
