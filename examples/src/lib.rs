//! Runnable examples of `leader-core`; see the `examples` folder.
