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
}

impl Attribute {
    /// Whether it has an option.
    pub(crate) fn has(self, key: Key) -> bool {
        match self {
            Self::LeaderOnly => key != Key::On,
            Self::Scheduled => !matches!(key, Key::WhileLeading | Key::OnLoss | Key::Handler),
        }
    }

    /// Why it has not that option of the other.
    pub(crate) fn lacks(self, key: Key) -> String {
        let word = key.word();
        match (self, key) {
            (Self::LeaderOnly, _) => {
                format!(
                    "`{word}` is an option of `#[scheduled]`: what `#[leader_only]` stands on runs on the leader of its group"
                )
            }
            (Self::Scheduled, Key::OnLoss) => {
                format!(
                    "`{word}` is an option of `#[leader_only]`: a run of `#[scheduled]` is cancelled when its claim ends"
                )
            }
            (Self::Scheduled, Key::Handler) => {
                format!(
                    "`{word}` is an option of `#[leader_only]`: what is made at run time is run by the leader of its group"
                )
            }
            (Self::Scheduled, _) => {
                format!("`{word}` is an option of `#[leader_only]`: `#[scheduled]` has a leader for nothing")
            }
        }
    }

    /// What makes a job's future of the function's.
    pub(crate) fn body(self) -> &'static str {
        match self {
            Self::LeaderOnly => "body",
            Self::Scheduled => "open_body",
        }
    }

    /// What is done to the function, in messages.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::LeaderOnly => "gated",
            Self::Scheduled => "scheduled",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaderOnly => "`#[leader_only]`",
            Self::Scheduled => "`#[scheduled]`",
        })
    }
}
