//! What decides how a machine goes on, told piece by piece: machines that tell the same, with times taken from now and numbers by
//! rank, go on alike. For searches through every state.

use super::machine::Election;
use super::state::{Belief, Draining, Flight, State};
use crate::clock::Moment;
use crate::names::Holder;

/// One piece of a state.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_enums, reason = "an internal message")]
pub enum Mark<'a> {
    /// A fact, or how many of something there are.
    Plain(u64),
    /// A moment that is waited for: those that have come are alike.
    Due(Moment),
    /// A moment that spans are counted from.
    Since(Moment),
    /// Since when nobody holds the lease: a span that a candidate's yield is compared with.
    Vacant(Moment),
    /// An instant of wall time, in milliseconds.
    Instant(i64),
    /// A term or a fence: only their order counts.
    Number(u64),
    /// The number of a request of one candidate: only their order counts.
    Attempt(u64),
    /// A holder: only who it is counts.
    Holder(&'a Holder),
}

impl Election {
    /// Tells what decides how the machine goes on, between two turns.
    ///
    /// Left out is what never changes in one search (the timing), what only rises and is compared with nothing older, and what is
    /// only told.
    pub fn marks(&self, tell: &mut dyn FnMut(Mark<'_>)) {
        // Without `..`, so that who adds a field decides whether it counts.
        let Self {
            timing: _,
            drain: _,
            preference: _,
            state,
            known,
            last_attempt: _,
            told,
            not_before,
            hinted: _,
            yields,
            yielded,
            quarantined: _,
            campaigning,
            stopping,
            abandoned,
            commands,
        } = self;
        let flags = [*campaigning, *stopping, *abandoned, yielded.is_some()];
        let flags = flags.iter().fold(0, |sum, flag| sum * 2 + u64::from(*flag));
        tell(Mark::Plain(flags));
        tell(Mark::Plain(commands.len() as u64));
        tell(Mark::Plain(u64::try_from(yields.as_nanos()).unwrap_or(u64::MAX)));
        tell(Mark::Number(*known));
        tell(Mark::Number(*told));
        tell(Mark::Due(*not_before));
        tell(Mark::Due(yielded.unwrap_or(Moment::ZERO)));
        state.marks(tell);
    }
}

impl State {
    fn marks(&self, tell: &mut dyn FnMut(Mark<'_>)) {
        match self {
            Self::Standby { look_at, flight: None } => {
                tell(Mark::Plain(0));
                tell(Mark::Due(*look_at));
            }
            // Whatever becomes of a flight says when the next one begins.
            Self::Standby {
                look_at: _,
                flight: Some(flight),
            } => {
                tell(Mark::Plain(1));
                flight.marks(tell);
            }
            Self::Leading(belief) => {
                tell(Mark::Plain(2));
                belief.marks(tell);
            }
            Self::Releasing {
                term,
                draining_since: _,
                flight,
                again_at,
                give_up,
            } => {
                tell(Mark::Plain(3 + u64::from(flight.is_some())));
                tell(Mark::Number(*term));
                tell(Mark::Due(*give_up));
                match flight {
                    Some(flight) => {
                        tell(Mark::Attempt(flight.attempt.0));
                        tell(Mark::Due(flight.deadline));
                    }
                    None => tell(Mark::Due(*again_at)),
                }
            }
            Self::Stopped => tell(Mark::Plain(5)),
        }
    }
}

impl Flight {
    fn marks(&self, tell: &mut dyn FnMut(Mark<'_>)) {
        let Self {
            attempt,
            sent,
            deadline,
        } = self;
        tell(Mark::Attempt(attempt.0));
        tell(Mark::Since(*sent));
        tell(Mark::Due(*deadline));
    }
}

impl Belief {
    fn marks(&self, tell: &mut dyn FnMut(Mark<'_>)) {
        let Self {
            term,
            until,
            told,
            renew_at,
            asked,
            flight,
            failures: _,
            draining,
        } = self;
        let flags = [*told, *asked, flight.is_some(), draining.is_some()];
        let flags = flags.iter().fold(0, |sum, flag| sum * 2 + u64::from(*flag));
        tell(Mark::Plain(flags));
        tell(Mark::Number(*term));
        tell(Mark::Due(*until));
        match flight {
            Some(flight) => flight.marks(tell),
            None => tell(Mark::Due(*renew_at)),
        }
        if let Some(Draining {
            since: _,
            bound,
            reason: _,
        }) = draining
        {
            tell(Mark::Due(*bound));
        }
    }
}
