//! The attribute macros of `leader-core`.
