//! Work for the leader of one group.

use std::future::Future;

use super::Instance;
use crate::job::scope::{self, Skipped};

/// Work for the leader of one group; made by [`Instance::group`].
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    pub(super) instance: &'a Instance,
    pub(super) name: &'a str,
}

impl Group<'_> {
    /// Runs a future if this instance leads the group; decided once, at the first poll. [`current()`](crate::current) works inside.
    ///
    /// # Errors
    /// [`Skipped`], when it does not lead it.
    pub async fn run<F: Future>(self, future: F) -> Result<F::Output, Skipped> {
        let entry = self.instance.scope(async { scope::enter(self.name) }).await?;
        Ok(entry.run(future).await)
    }
}
