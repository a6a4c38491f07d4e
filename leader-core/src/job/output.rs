//! What a job may return, and how its error is told.

use std::error::Error;

/// The longest error text that is kept, in bytes.
pub(crate) const MAX_ERROR: usize = 1024;

/// The error of a job's body: the text of the whole chain, cut to 1 KiB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JobError(pub(crate) String);

impl JobError {
    /// The text of an error with its causes, for a middleware that gives the body's error on or one of its own.
    #[must_use]
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(chain(&*error.into()))
    }
}

/// What a job returns: `()`, or `Result<T, E>` whose error converts into a boxed [`Error`].
#[diagnostic::on_unimplemented(
    message = "a job cannot return `{Self}`",
    label = "a job returns `()` or `Result<T, E>`",
    note = "`E` must convert into `Box<dyn Error + Send + Sync>`; `anyhow::Error`, `String` and every `std` error do"
)]
pub trait JobOutput {
    #[doc(hidden)]
    fn into_result(self) -> Result<(), JobError>;
}

impl JobOutput for () {
    fn into_result(self) -> Result<(), JobError> {
        Ok(())
    }
}

// The complaint about an error that does not convert is about the job's return type, not about `Box` and `From`.
#[diagnostic::do_not_recommend]
impl<T, E: Into<Box<dyn Error + Send + Sync>>> JobOutput for Result<T, E> {
    fn into_result(self) -> Result<(), JobError> {
        self.map(drop).map_err(|error| JobError(chain(&*error.into())))
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if text.len() > MAX_ERROR {
            break;
        }
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    bounded(text)
}

/// Cuts a text to [`MAX_ERROR`] bytes at a character's border.
pub(crate) fn bounded(mut text: String) -> String {
    if text.len() > MAX_ERROR {
        let mut end = MAX_ERROR - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn the_chain_is_told_once_and_bounded() {
        let cause = "x".parse::<u8>().unwrap_err();
        let told = Err::<(), _>(Outer(cause)).into_result().unwrap_err();
        assert_eq!(told.to_string(), "outer: invalid digit found in string");
        let long = Err::<(), _>("ü".repeat(4000)).into_result().unwrap_err();
        assert!(long.0.len() <= MAX_ERROR && long.0.ends_with('…'));
        assert_eq!(Ok::<u64, String>(3).into_result(), Ok(()));
    }
}
