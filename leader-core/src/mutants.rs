//! Faults of our own logic, planted by hand: what the simulator's invariants are worth is how many of these they catch.
//!
//! Without the feature `mutants` none can be planted, and `planted` is the constant `false`.

#[cfg(feature = "mutants")]
use std::cell::Cell;

macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A fault that somebody could make.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(not(feature = "mutants"), allow(dead_code, reason = "some places are compiled for tests alone"))]
        #[allow(clippy::exhaustive_enums, reason = "for the suites of this repository")]
        pub enum Mutant {
            $($(#[doc = $doc])+ $name,)+
        }

        #[cfg(feature = "mutants")]
        impl Mutant {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name, for reports.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }
    };
}

mutants! {
    /// Trust counts from the reply to a campaign or a renewal, and not from before it was sent.
    TrustFromTheReply,
    /// A renewal that failed prolongs trust like one that was answered.
    TrustFromAFailure,
    /// A renewal that failed ends the leadership, though it may be trusted for longer.
    EndsWithAFailure,
    /// Trust lasts to the very end of the lease: clocks that run at different rates are not paid for.
    NoMargin,
    /// The gate does not compare the clock: it is shut by timers alone, which a frozen process has none of.
    GateWithoutAClock,
    /// Belief is cleared when the release has been answered, and not before it is sent.
    BeliefUntilReleased,
    /// A step-down does not drop the renewal that is under way: its answer begins the leadership anew.
    RenewalAfterRelease,
    /// The lease is given back when the drain begins, while bodies still run.
    ReleaseBeforeTheDrain,
    /// A candidate whose leadership has expired never looks again.
    NeverLooksAgain,
    /// A leadership is told of again with each renewal.
    ElectedWithEachRenewal,
    /// Who asked for a step-down is never answered.
    StepDownUnanswered,
    /// Each campaign leaves a task behind.
    TasksPileUp,
    /// A campaign that finds its own lease keeps its old term.
    TermKept,
    /// A campaign that carries a lower term than the store's is granted all the same.
    StaleCampaign,
    /// A renewal prolongs whatever lease there is, in the asker's name.
    RenewWithoutComparing,
    /// A renewal under the newest term makes a lease that has ended, or was given back, anew.
    RenewalAcquires,
    /// A release compares the holder and not the term: a late one gives a later leadership back.
    ReleaseWithoutTheTerm,
    /// A release compares nothing: a late one gives another's lease back.
    ReleaseWithoutComparing,
    /// A group without a birth mark is led at once, though its store may have lost what it knew.
    NoBirthMark,
    /// A server that was restarted is believed to have lost nothing.
    YoungServerIgnored,
    /// A lease that the server's clock has prolonged by going back is not cut back.
    LeaseNotCutBack,
    /// A term is minted above what the store knows, whatever its candidate has seen.
    FloorsForgotten,
    /// Whoever asks may claim, whoever leads. The cursor and the fences still keep each tick to one run, so that nothing but the
    /// terms of the records shows it.
    ClaimWithoutTheLease,
    /// A claim does not look whether the cursor is there already.
    CursorIgnored,
    /// The cursor is set to a run's tick when that ends, whatever has been decided since.
    CursorGoesBack,
    /// The cursor moves before the claim is decided, and stays there when it is not won.
    CursorBeforeTheClaim,
    /// A claim moves the cursor and leaves the ticks that it passes without an outcome.
    PassedUnsettled,
    /// A run has its leadership's term for a fence.
    FenceIsTheTerm,
    /// A run has a fence that its instance has made of its own wall clock.
    FenceFromTheClock,
    /// A further try runs under the fence of the one before.
    RetryUnderTheOldFence,
    /// A further try is counted like the one before.
    RetryUnderTheOldAttempt,
    /// A result that is told again is counted again.
    CountedTwice,
    /// A result counts for whichever run of its job is open.
    LateResult,
    /// A tick that is due is settled as missed, and never run.
    NothingIsRun,
    /// A tick that is to wait for an earlier run is not kept.
    WaitingForgotten,
    /// A new leader does not look after the runs that it finds open.
    OpenRunsUnwatched,
    /// A new leader forgets the runs that it finds pausing.
    PausesForgotten,
    /// The trust in a run without a leader has no end.
    UnledForEver,
    /// A run without a leader is taken again long before its runner's trust has ended.
    UnledTakenEarly,
    /// Timers fire five seconds early, and nobody compares the planned instant.
    EarlyTimer,
    /// A run that was silent is lost, even where nobody could have heard it.
    LostByAnOutage,
    /// No run gives a sign of life.
    NoSignsOfLife,
    /// A sign of life needs memory that the store may not have, and a renewal does not.
    SignsNeedMemory,
    /// A run that has ended gives no sign of life until its result is told.
    UntoldGivesNoSign,
    /// A body begins though its trust has ended meanwhile. Both who takes the claim's answer and who polls first look, and either would do.
    BegunPastTrust,
    /// A body is not compared with its trust when it is polled again. Whoever has begun goes on.
    PolledPastTrust,
    /// Due ticks are claimed four seconds late, which their grace hides.
    ClaimsLate,
    /// The result of a body that failed is told as a success.
    ErrorTakenForSuccess,
    /// A try that failed is the last.
    NoFurtherTry,
    /// A run has one try more than it may.
    OneTryMore,
    /// A further try does not wait.
    RetryAtOnce,
    /// A run that has ended stands in the way of the next one for a while.
    OverlapRemembered,
    /// A tick that waits does not wait for the run before it.
    WaitedBeside,
    /// A run whose place a later tick takes is not told so.
    ReplacedGoesOn,
    /// No body is stopped at its time-out.
    TimeoutIgnored,
    /// A tick is due when it is planned, whatever its jitter.
    JitterForgotten,
    /// Of ticks that are all owed only the latest is run.
    MissedForgotten,
    /// A new leader begins every job anew.
    BornAnew,
    /// The result of an attempt at a task is taken, whichever attempt is under way.
    TaskLateResult,
    /// An attempt at a task that was silent is lost, even where nobody could have heard it.
    TaskLostByAnOutage,
    /// A task is due a minute early.
    TaskDueEarly,
    /// An attempt at a task goes on past its trust: neither who polls it looks nor who watches, and either would do.
    TaskPolledPastTrust,
    /// Trust in an attempt at a task counts from the answer, and not from before it was asked for.
    TaskTrustFromTheReply,
    /// No attempt at a task gives a sign of life.
    TaskNoSignsOfLife,
    /// A batch of tasks that is asked for again has another number.
    TaskStoredAgain,
    /// Attempts that are asked for again are others.
    TaskTakenAgain,
    /// How an attempt at a task ended is told once, whether it is heard or not.
    TaskToldOnce,
    /// A task whose attempt was lost is not put back.
    TaskLostForEver,
    /// A task that has ended keeps its unique key.
    TaskUniqueKept,
    /// The unique key of a task is free when its first attempt begins.
    TaskUniqueFreedEarly,
    /// An attempt at a task has the fence of the one before it in its shard.
    TaskFenceKept,
    /// A task is tried once more than it may be.
    TaskOneTryMore,
    /// A task that failed is done.
    TaskErrorTakenForSuccess,
}

#[cfg(feature = "mutants")]
thread_local! {
    /// A simulation is one thread, so that several may have each its own.
    static PLANTED: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Whether the fault is in the code that runs on this thread.
#[cfg(feature = "mutants")]
#[inline]
pub(crate) fn planted(mutant: Mutant) -> bool {
    PLANTED.get() == Some(mutant)
}

/// Never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
#[allow(clippy::inline_always, reason = "nothing is to be left of it")]
pub(crate) const fn planted(_: Mutant) -> bool {
    false
}

/// Plants a fault on this thread, or none, until dropped.
#[cfg(feature = "mutants")]
#[derive(Debug)]
pub(crate) struct Planting(Option<Mutant>);

#[cfg(feature = "mutants")]
impl Planting {
    pub(crate) fn new(mutant: Option<Mutant>) -> Self {
        Self(PLANTED.replace(mutant))
    }
}

#[cfg(feature = "mutants")]
impl Drop for Planting {
    fn drop(&mut self) {
        PLANTED.set(self.0);
    }
}
