//! What every store must keep of tasks.

mod bench;
mod cases;
mod change;
#[cfg(target_os = "linux")]
mod differential;
mod dispatch;
mod enqueue;
mod finish;
mod garbage;
mod generations;
#[cfg(target_os = "linux")]
mod keeping;
mod list;
mod rights;
mod shortage;
mod silence;
mod take;
#[cfg(target_os = "linux")]
mod trouble;
mod wait;
