//! What a leader finds open of a job.

use std::time::Duration;

use super::{instant, number, odd, ran};
use crate::store::error::StoreError;
use crate::store::tries::{Found, Pausing};

/// What is open of a job. A run that pauses and cannot be read is left to the next tick, which settles it.
pub(super) fn found(text: &str) -> Result<Found, StoreError> {
    let mut words = text.split(' ');
    let silent_in = match words.next() {
        Some("-") => None,
        Some(left) => Some(Duration::from_millis(number(left)?)),
        None => return Err(odd("open runs")),
    };
    let pausing = |word: &str| {
        let fields: Vec<_> = word.split('|').collect();
        let [fence, tick, tries, again, last] = fields.as_slice() else {
            return None;
        };
        Some(Pausing {
            fence: fence.parse().ok()?,
            tick: instant(tick).ok()?,
            tries: tries.parse().ok()?,
            again_at: instant(again).ok()?,
            ran: ran(last)?,
        })
    };
    Ok(Found {
        silent_in,
        pausing: words.filter_map(pausing).collect(),
    })
}
