//! What became of the ends of runs.

use ::redis::Value;

use super::{instant, odd, texts};
use crate::names::JobName;
use crate::store::error::StoreError;
use crate::store::request::Settled;

/// What a script tells of one end.
pub(in crate::store::redis) enum Told {
    Settled(Settled),
    /// The job goes on under another name, and so does the run.
    Moved(JobName),
}

pub(in crate::store::redis) fn settled(value: Value, ends: usize) -> Result<Vec<Told>, StoreError> {
    let answer = texts(value)?;
    if answer.len() != ends {
        return Err(odd("answer to a settlement"));
    }
    let one = |told: &String| {
        let (word, rest) = told.split_once(' ').unwrap_or((told.as_str(), ""));
        Ok(match word {
            "settled" => Told::Settled(Settled::Yes),
            "fenced" => Told::Settled(Settled::Fenced),
            "again" => Told::Settled(Settled::Again { at: instant(rest)? }),
            "moved" => Told::Moved(JobName::new(rest.to_owned()).map_err(|_| odd(&format!("name `{rest}`")))?),
            other => return Err(odd(&format!("verdict `{other}`"))),
        })
    };
    answer.iter().map(one).collect()
}
