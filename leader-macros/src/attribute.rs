//! The attributes, and what each is for.

use std::fmt;

use crate::options::Key;

/// The attribute that stands on a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// The body runs only on the leader.
    LeaderOnly,
    /// The function stays as it is, and its ticks are run elsewhere.
    Scheduled,
    /// The function stays as it is, and workers run it for what is enqueued.
    Task,
}

impl Attribute {
    /// Whether it has an option.
    pub(crate) fn has(self, key: Key) -> bool {
        match self {
            Self::LeaderOnly => !matches!(key, Key::On | Key::Queue | Key::Concurrency),
            Self::Scheduled => !matches!(key, Key::WhileLeading | Key::OnLoss | Key::Handler),
            Self::Task => matches!(
                key,
                Key::Queue | Key::Name | Key::Retries | Key::Backoff | Key::Timeout | Key::Concurrency | Key::Crate
            ),
        }
    }

    /// Why it has not that option of another.
    pub(crate) fn lacks(self, key: Key) -> String {
        let word = key.word();
        let (whose, why) = match (self, key) {
            (Self::LeaderOnly, Key::Queue | Key::Concurrency) => (
                "`#[task]` and of `#[scheduled(on = \"fleet\")]`",
                "what `#[leader_only]` stands on runs on the leader of its group",
            ),
            (Self::LeaderOnly, _) => (
                "`#[scheduled]`",
                "what `#[leader_only]` stands on runs on the leader of its group",
            ),
            (Self::Scheduled, Key::OnLoss) => (
                "`#[leader_only]`",
                "a run of `#[scheduled]` is cancelled when its claim ends",
            ),
            (Self::Scheduled, Key::Handler) => (
                "`#[leader_only]`",
                "what is made at run time is run by the leader of its group",
            ),
            (Self::Scheduled, _) => ("`#[leader_only]`", "`#[scheduled]` has a leader for nothing"),
            (Self::Task, Key::Group) => (
                "`#[leader_only]` and `#[scheduled]`",
                "tasks wait in a queue, and that needs no group; write `queue = \"invoices\"`",
            ),
            (Self::Task, Key::WhileLeading | Key::Handler | Key::OnLoss) => {
                ("`#[leader_only]`", "a task is run by any worker of the fleet")
            }
            (Self::Task, Key::On) => (
                "`#[scheduled]`",
                "a task is run by any worker of the fleet; take `on` out",
            ),
            (Self::Task, Key::Was) => (
                "`#[leader_only]` and `#[scheduled]`",
                "tasks wait under the name they were enqueued with; keep it with `name = \"..\"` when the function is renamed",
            ),
            (Self::Task, _) => (
                "`#[leader_only]` and `#[scheduled]`",
                "a task is due when whoever enqueues it says, and has no ticks; `#[scheduled(on = \"fleet\")]` is for schedules",
            ),
        };
        format!("`{word}` is an option of {whose}: {why}")
    }

    /// The option that is written most often.
    pub(crate) fn usual(self) -> Key {
        match self {
            Self::LeaderOnly | Self::Scheduled => Key::Group,
            Self::Task => Key::Queue,
        }
    }

    /// What makes a job's future of the function's.
    pub(crate) fn body(self) -> &'static str {
        match self {
            Self::LeaderOnly => "body",
            Self::Scheduled | Self::Task => "open_body",
        }
    }

    /// What makes a result of the function's value.
    pub(crate) fn output(self) -> &'static str {
        match self {
            Self::LeaderOnly | Self::Scheduled => "output",
            Self::Task => "task_output",
        }
    }

    /// What is done to the function, in messages.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::LeaderOnly => "gated",
            Self::Scheduled => "scheduled",
            Self::Task => "a task",
        }
    }

    /// What the function is then, if it is run without being called.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::LeaderOnly | Self::Scheduled => "job",
            Self::Task => "task",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaderOnly => "`#[leader_only]`",
            Self::Scheduled => "`#[scheduled]`",
            Self::Task => "`#[task]`",
        })
    }
}
