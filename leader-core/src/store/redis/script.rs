//! The scripts, one atomic step each, and how a call of one is built.
//!
//! Plain `EVAL` each time: the script cache is lost on restart and on promotion, and a whole class of faults with it.

use std::fmt;

use ::redis::{Cmd, cmd};

/// A script with what stands before it.
macro_rules! script {
    ($($part:literal),+) => { concat!($(include_str!(concat!("scripts/", $part, ".lua"))),+) };
}

pub(super) const CAMPAIGN: &str = script!("campaign");
pub(super) const RENEW: &str = script!("read", "renew");
pub(super) const BEAT: &str = script!("read", "beat");
pub(super) const RELEASE: &str = script!("release");
pub(super) const ASK: &str = script!("ask");
pub(super) const TAKE_OVER: &str = script!("read", "coverage", "take_over");
pub(super) const COVER: &str = script!("read", "coverage", "cover");
pub(super) const CLAIM: &str = script!("read", "records", "claim");
pub(super) const SETTLE: &str = script!("read", "records", "settle");
pub(super) const ACT: &str = script!("read", "act");
pub(super) const CONTROL: &str = script!("read", "control");
pub(super) const MAKE: &str = script!("read", "records", "make");
pub(super) const MADE: &str = script!("read", "made");
pub(super) const ENROL: &str = script!("enrol");
pub(super) const LEAVE: &str = script!("leave");
pub(super) const ROSTER: &str = script!("roster");

/// The keys and arguments of one call.
#[derive(Debug, Default)]
pub(super) struct Call {
    keys: Vec<String>,
    args: Vec<String>,
}

impl Call {
    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(super) fn arg(mut self, arg: impl fmt::Display) -> Self {
        self.push(arg);
        self
    }

    pub(super) fn push_key(&mut self, key: String) {
        self.keys.push(key);
    }

    #[allow(clippy::needless_pass_by_value, reason = "numbers and names alike, at many places")]
    pub(super) fn push(&mut self, arg: impl fmt::Display) {
        self.args.push(arg.to_string());
    }

    /// The call of a script that the server may know by this digest.
    #[cfg(feature = "tasks")]
    pub(super) fn by_digest(&self, digest: &str) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(digest).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }

    pub(super) fn eval(self, script: &str) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(script).arg(self.keys.len()).arg(self.keys).arg(self.args);
        command
    }
}
