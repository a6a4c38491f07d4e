//! Requests to other instances of the fleet, kept in the store until the one that is meant has heard.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::job::gate::GroupStatus;
use crate::names::GroupName;
use crate::store::{Ask, AskReply, Asked, Store, StoreError};
use crate::timing::Timing;

/// A group could not be given up.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepDownError {
    /// No instance leads the group, so there is nothing to give up.
    #[error("nobody leads `{0}` at present")]
    NotLed(String),
    /// The name is no group of this instance.
    #[error("this instance does not know the group `{0}`: give it to `bootstrap(..).groups([..])`")]
    UnknownGroup(String),
    /// The lease is held by somebody who is not of this fleet and hears no requests.
    #[error("`{group}` is led by {}, who is not of this fleet and cannot be asked", .holder.as_deref().unwrap_or("a key that is no lease"))]
    #[non_exhaustive]
    Foreign {
        /// The group.
        group: String,
        /// Who holds the lease, as far as that can be told.
        holder: Option<String>,
    },
    /// The leader still leads after the time in which it must have heard and drained. The request has ended.
    #[error(
        "{leader} was asked to give up `{group}` (term {term}) and still leads it after {waited:?}: look at its log, or stop it"
    )]
    #[non_exhaustive]
    Unanswered {
        /// The group.
        group: String,
        /// The leader that was asked.
        leader: String,
        /// Its term.
        term: u64,
        /// How long was waited.
        waited: Duration,
    },
    /// The store did not answer.
    #[error("the leader of `{group}` could not be asked")]
    #[non_exhaustive]
    Store {
        /// The group.
        group: String,
        /// Why.
        source: StoreError,
    },
    /// The instance has stopped.
    #[error("the instance has stopped")]
    Stopped,
}

/// Asks the leader of a group to step down, and waits until its term has ended. The request is kept in the store and asked again each
/// renew interval; a change of the group's status here is a reason to look sooner.
pub(crate) async fn ask_to_step_down(
    store: Arc<dyn Store>,
    group: GroupName,
    asked: Asked,
    timing: Timing,
    drain: Duration,
    clock: Clock,
    mut status: watch::Receiver<GroupStatus>,
) -> Result<(), StepDownError> {
    // To hear, the leader needs a renewal; to drain, its bound, which is taken to be ours.
    let patience = 2 * timing.ttl() + drain;
    let mut meant: Option<(u64, String)> = None;
    let began = clock.now();
    loop {
        let waited = clock.now().since(began);
        let ask = Ask {
            group: group.clone(),
            term: meant.as_ref().map(|(term, _)| *term),
            ends_after: timing.ttl(),
            asked: asked.clone(),
        };
        match store.ask(ask).await {
            Ok(AskReply::Kept { holder, term }) => meant = Some((term, holder.instance().to_owned())),
            Ok(AskReply::Over) => return Ok(()),
            Ok(AskReply::Vacant) => return Err(StepDownError::NotLed(group.to_string())),
            Ok(AskReply::Foreign { holder }) => {
                return Err(StepDownError::Foreign {
                    group: group.to_string(),
                    holder: holder.map(|holder| holder.to_string()),
                });
            }
            Err(source) if meant.is_none() || waited >= patience => {
                let group = group.to_string();
                return Err(StepDownError::Store { group, source });
            }
            // It was kept before: the leader may have heard.
            Err(_) => {}
        }
        if let Some((term, leader)) = &meant
            && waited >= patience
        {
            return Err(StepDownError::Unanswered {
                group: group.to_string(),
                leader: leader.clone(),
                term: *term,
                waited,
            });
        }
        // A group of this instance's own keeps its status sender.
        let _ = tokio::time::timeout(timing.renew(), status.changed()).await;
    }
}
