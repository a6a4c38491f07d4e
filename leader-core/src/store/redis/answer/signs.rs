//! What signs of life are answered with.

use ::redis::Value;

use super::{number, texts};
use crate::store::error::StoreError;

/// The fences of runs that are to end, and of those that are no longer their runner's.
pub(in super::super) fn beaten(value: Value) -> Result<(Vec<u64>, Vec<u64>), StoreError> {
    let (mut replaced, mut gone) = (Vec::new(), Vec::new());
    for text in texts(value)? {
        match text.strip_prefix('-') {
            Some(fence) => gone.push(number(fence)?),
            None => replaced.push(number(&text)?),
        }
    }
    Ok((replaced, gone))
}
