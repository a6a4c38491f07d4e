#![doc = include_str!("../docs/fencing.md")]

pub mod http;
pub mod redis;
pub mod sql;

use std::fmt;

/// A write was refused, because a newer run has written to the same resource. What was started under this fence should end.
///
/// It is not an error to try again after: the same fence will be refused for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fenced {
    /// What was to be written.
    pub resource: String,
    /// The fence that was refused.
    pub fence: u64,
    /// The fence that the resource has taken before, where that is known.
    pub held: Option<u64>,
    /// Whether the resource may be missing instead, as with an `UPDATE` that changed no row.
    may_be_missing: bool,
}

impl Fenced {
    /// The resource holds a higher fence.
    #[must_use]
    pub fn by(resource: impl Into<String>, fence: u64, held: Option<u64>) -> Self {
        Self {
            resource: resource.into(),
            fence,
            held,
            may_be_missing: false,
        }
    }

    /// With the fence that the resource holds, as it was read afterwards; a negative number is none.
    #[must_use]
    pub fn holding(mut self, held: i64) -> Self {
        self.held = u64::try_from(held).ok();
        self
    }
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource, fence, held, ..
        } = self;
        match held {
            Some(held) if held > fence => write!(
                f,
                "`{resource}` refuses fence {fence}: a newer run has written to it under fence {held}; this run is over: stop \
                 it, and write nothing more"
            ),
            Some(held) => write!(
                f,
                "the write to `{resource}` under fence {fence} changed nothing, but the resource holds fence {held}, which is \
                 not higher: look at the statement's other conditions"
            ),
            None if self.may_be_missing => write!(
                f,
                "no row of `{resource}` took fence {fence}: a newer run has written to it, or there is no such row; unless it \
                 is missing, this run is over: stop it, and write nothing more"
            ),
            None => write!(
                f,
                "`{resource}` refuses fence {fence}: a newer run has written to it; this run is over: stop it, and write \
                 nothing more"
            ),
        }
    }
}

impl std::error::Error for Fenced {}

/// A number that is no fence: they are microseconds since 1970, or hardly more, and fit into a `BIGINT` for 290,000 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{fence} is no fence: the highest that a BIGINT holds is {}, and fences are microseconds since 1970 or hardly more; see where \
     the number comes from",
    i64::MAX
)]
#[non_exhaustive]
pub struct FenceTooHigh {
    /// The number.
    pub fence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_fits_what_is_known() {
        let says = |fenced: Fenced, word: &str| {
            let text = fenced.to_string();
            assert!(text.contains(word), "{text}");
        };
        says(
            Fenced::by("report", 5, Some(9)),
            "under fence 9; this run is over: stop",
        );
        says(Fenced::by("report", 5, None), "refuses fence 5: a newer run");
        // What was read afterwards contradicts the reason.
        says(Fenced::by("report", 5, None).holding(5), "other conditions");
        says(Fenced::by("report", 5, None).holding(-1), "refuses fence 5");
        let missing = sql::wrote(0, "report", 5).unwrap_err();
        says(missing.clone(), "or there is no such row");
        says(missing.holding(9), "under fence 9");
    }
}
