//! The scripts, one atomic step each, and how a call of one is built.
//!
//! Plain `EVAL` each time: the script cache is lost on restart and on promotion, and a whole class of faults with it.

use std::fmt;

use ::redis::{Cmd, cmd};

pub(super) const CAMPAIGN: &str = include_str!("scripts/campaign.lua");
pub(super) const RENEW: &str = include_str!("scripts/renew.lua");
pub(super) const BEAT: &str = include_str!("scripts/beat.lua");
pub(super) const RELEASE: &str = include_str!("scripts/release.lua");
pub(super) const ASK: &str = include_str!("scripts/ask.lua");
pub(super) const TAKE_OVER: &str = concat!(
    include_str!("scripts/coverage.lua"),
    include_str!("scripts/take_over.lua")
);
pub(super) const COVER: &str = concat!(include_str!("scripts/coverage.lua"), include_str!("scripts/cover.lua"));
pub(super) const CLAIM: &str = concat!(include_str!("scripts/records.lua"), include_str!("scripts/claim.lua"));
pub(super) const SETTLE: &str = concat!(include_str!("scripts/records.lua"), include_str!("scripts/settle.lua"));
pub(super) const ACT: &str = include_str!("scripts/act.lua");
pub(super) const CONTROL: &str = include_str!("scripts/control.lua");
pub(super) const MAKE: &str = concat!(include_str!("scripts/records.lua"), include_str!("scripts/make.lua"));
pub(super) const MADE: &str = include_str!("scripts/made.lua");
pub(super) const ENROL: &str = include_str!("scripts/enrol.lua");
pub(super) const LEAVE: &str = include_str!("scripts/leave.lua");
pub(super) const ROSTER: &str = include_str!("scripts/roster.lua");

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

    pub(super) fn eval(self, script: &str) -> Cmd {
        let mut command = cmd("EVAL");
        command.arg(script).arg(self.keys.len()).arg(self.keys).arg(self.args);
        command
    }
}
