//! The seam between an instance and its store.
#![cfg_attr(
    not(all(feature = "redis", feature = "testing")),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "the suites reach these items through the hidden seam of the feature `testing`"
    )
)]

pub(crate) mod error;
#[cfg(feature = "redis")]
pub(crate) mod redis;
