//! The command line.

use std::fmt;
use std::time::Duration;

use leader_examples::{CommandLine, span};

use crate::jobs::GROUPS;

const USAGE: &str = "\
usage: cluster_cron [--seconds N] [--script \"4s:kill-leader,8s:step-down\"] [--json]

Three instances in one process, on one store: a live view of who leads what.

  --seconds N    ends by itself after N seconds; without it at `q`, Ctrl-C or SIGTERM
  --script LIST  what to do when, as TIME:VERB[@GROUP]; the group is `default` unless given
                 verbs: kill-leader, stop-leader, freeze-leader[=3s], step-down, restart
                 groups: default, cleanup, reports
  --json         no view; one line of JSON at the end";

/// How long a leader is frozen unless it is said.
pub const FREEZE: Duration = Duration::from_secs(3);

/// What can be done to the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Vanishes, like a killed process.
    Kill(&'static str),
    /// Drains and leaves.
    Stop(&'static str),
    /// Stands still for a while.
    Freeze(&'static str, Duration),
    /// Gives the group up and stays in the fleet.
    StepDown(&'static str),
    /// Starts the first instance that is no more.
    Restart,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(group) => write!(f, "kill the leader of {group}"),
            Self::Stop(group) => write!(f, "stop the leader of {group}"),
            Self::Freeze(group, span) => write!(f, "freeze the leader of {group} for {span:?}"),
            Self::StepDown(group) => write!(f, "let the leader of {group} step down"),
            Self::Restart => f.write_str("restart an instance"),
        }
    }
}

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    pub seconds: Option<u64>,
    /// What to do when, counted from the start.
    pub script: Vec<(Duration, Act)>,
    pub json: bool,
}

impl Options {
    pub fn of_process() -> Self {
        let mut line = CommandLine::of_process(USAGE);
        let json = line.flag("--json");
        let seconds = line.parsed("--seconds", "a whole number of seconds");
        if seconds == Some(0) {
            line.refuse("`--seconds 0`: write at least 1");
        }
        let mut script = Vec::new();
        for item in line.value("--script").iter().flat_map(|text| text.split(',')) {
            match step(item.trim()) {
                Ok(step) if seconds.is_none_or(|end| step.0 < Duration::from_secs(end)) => script.push(step),
                Ok((at, _)) => line.refuse(&format!(
                    "`--script`: `{item}`: {at:?} is not before the end of `--seconds`"
                )),
                Err(message) => line.refuse(&format!("`--script`: `{item}`: {message}")),
            }
        }
        line.finish();
        script.sort_by_key(|(at, _)| *at);
        Self { seconds, script, json }
    }
}

fn step(item: &str) -> Result<(Duration, Act), String> {
    let (at, what) = item
        .split_once(':')
        .ok_or("write TIME:VERB, such as `4s:kill-leader`")?;
    let at = span(at)?;
    let (what, group) = match what.split_once('@') {
        Some((what, group)) => (what, Some(group)),
        None => (what, None),
    };
    let known = |group: &str| GROUPS.iter().copied().find(|known| *known == group);
    let target = match group {
        None => GROUPS[0],
        Some(group) => known(group).ok_or_else(|| format!("no group `{group}`; there are {}", GROUPS.join(", ")))?,
    };
    let act = match what.split_once('=') {
        Some(("freeze-leader", text)) => Act::Freeze(target, span(text)?),
        Some((verb, _)) => return Err(format!("`{verb}` takes no value")),
        None => match what {
            "kill-leader" => Act::Kill(target),
            "stop-leader" => Act::Stop(target),
            "freeze-leader" => Act::Freeze(target, FREEZE),
            "step-down" => Act::StepDown(target),
            "restart" if group.is_some() => {
                return Err("`restart` takes no group: it starts what is no more".to_owned());
            }
            "restart" => Act::Restart,
            other => {
                let verbs = "kill-leader, stop-leader, freeze-leader, step-down, restart";
                return Err(format!("`{other}` is no verb; there are {verbs}"));
            }
        },
    };
    Ok((at, act))
}
