//! The times of an election: how long a lease lasts, when it is renewed, and what must fit into it.

use std::time::Duration;

/// The shortest lease, for tests.
pub const MIN_TTL: Duration = Duration::from_secs(1);
/// The longest lease: an hour without a leader is the most that a crash may cost.
pub const MAX_TTL: Duration = Duration::from_secs(3600);
const DEFAULT_TTL: Duration = Duration::from_secs(10);

/// The times of an election, coherent by construction.
///
/// Everything follows from the lease's time to live ([`Timing::from_ttl`]); single values can be moved with the `with_…` methods
/// and are checked when an instance starts.
///
/// ```
/// use std::time::Duration;
/// use leader_core::Timing;
///
/// let timing = Timing::default();
/// assert_eq!(timing.ttl(), Duration::from_secs(10));
/// assert_eq!(timing.renew(), Duration::from_millis(2500));
/// assert_eq!(timing.margin(), Duration::from_millis(500));
///
/// // A renewal as long as the lease leaves no room for a failed one.
/// assert!(timing.with_renew(Duration::from_secs(10)).validate().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Duration,
    renew: Duration,
    operation: Duration,
    retry: Duration,
    margin: Duration,
    cool_down: Duration,
}

/// Why a [`Timing`] was refused, with the values that disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimingError {
    /// The time to live is out of range.
    #[error("a lease of {ttl:?} is refused: choose a TTL from {MIN_TTL:?} to {MAX_TTL:?}")]
    Ttl {
        /// The refused value.
        ttl: Duration,
    },
    /// One of the intervals is zero, and a loop over it would spin.
    #[error("{what} is zero: give it at least one millisecond")]
    Zero {
        /// Which interval.
        what: &'static str,
    },
    /// Two failed renewals would not fit into one lease.
    #[error(
        "renew {renew:?} + 2 × (operation {operation:?} + retry {retry:?}) + margin {margin:?} = {sum:?} is more than the TTL of {ttl:?}: \
         one failed renewal could cost the lease; raise the TTL or shorten the others"
    )]
    Incoherent {
        /// The renewal interval.
        renew: Duration,
        /// The bound of one store operation.
        operation: Duration,
        /// The pause after a failed operation.
        retry: Duration,
        /// The safety margin.
        margin: Duration,
        /// What they add up to.
        sum: Duration,
        /// The lease's time to live.
        ttl: Duration,
    },
}

impl Default for Timing {
    fn default() -> Self {
        Self::from_ttl(DEFAULT_TTL)
    }
}

impl Timing {
    /// The recommended times for a lease of `ttl`.
    #[must_use]
    pub fn from_ttl(ttl: Duration) -> Self {
        let ms = Duration::from_millis;
        Self {
            ttl,
            renew: ttl / 4,
            operation: ms(1000).min(ttl / 8),
            retry: ms(500).min(ttl / 16),
            margin: (ttl / 50).max(ms(500).min(ttl / 10)),
            cool_down: ttl,
        }
    }

    /// How often the lease is renewed.
    #[must_use]
    pub fn with_renew(self, renew: Duration) -> Self {
        Self { renew, ..self }
    }

    /// The bound of one store operation, the connect included.
    #[must_use]
    pub fn with_operation(self, operation: Duration) -> Self {
        Self { operation, ..self }
    }

    /// The pause after a failed store operation.
    #[must_use]
    pub fn with_retry(self, retry: Duration) -> Self {
        Self { retry, ..self }
    }

    /// How much earlier than the lease an instance stops trusting it: pays for clocks that run at different rates.
    #[must_use]
    pub fn with_margin(self, margin: Duration) -> Self {
        Self { margin, ..self }
    }

    /// How long an instance stays out of a race after it stepped down.
    #[must_use]
    pub fn with_cool_down(self, cool_down: Duration) -> Self {
        Self { cool_down, ..self }
    }

    /// The lease's time to live.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often the lease is renewed.
    #[must_use]
    pub fn renew(&self) -> Duration {
        self.renew
    }

    /// The bound of one store operation, the connect included.
    #[must_use]
    pub fn operation(&self) -> Duration {
        self.operation
    }

    /// The pause after a failed store operation.
    #[must_use]
    pub fn retry(&self) -> Duration {
        self.retry
    }

    /// How much earlier than the lease an instance stops trusting it.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.margin
    }

    /// How long an instance stays out of a race after it stepped down.
    #[must_use]
    pub fn cool_down(&self) -> Duration {
        self.cool_down
    }

    /// How long trust lasts, counted from before the renewal was sent.
    #[must_use]
    pub fn trust(&self) -> Duration {
        self.ttl.saturating_sub(self.margin)
    }

    /// How long before the end of trust a running body is told.
    #[must_use]
    pub fn cancel_lead(&self) -> Duration {
        Duration::from_secs(1).min(self.ttl / 5)
    }

    /// The most that a standby waits beyond the end of the lease it saw.
    #[must_use]
    pub fn spread(&self) -> Duration {
        Duration::from_millis(250).min(self.ttl / 20)
    }

    /// Checks that two failed renewals fit into one lease.
    ///
    /// # Errors
    /// [`TimingError`] with the values that disagree.
    pub fn validate(&self) -> Result<(), TimingError> {
        let Self {
            ttl,
            renew,
            operation,
            retry,
            margin,
            cool_down: _,
        } = *self;
        if !(MIN_TTL..=MAX_TTL).contains(&ttl) {
            return Err(TimingError::Ttl { ttl });
        }
        for (what, value) in [
            ("renew", renew),
            ("operation", operation),
            ("retry", retry),
            ("margin", margin),
        ] {
            if value < Duration::from_millis(1) {
                return Err(TimingError::Zero { what });
            }
        }
        let sum = renew
            .saturating_add(operation.saturating_add(retry).saturating_mul(2))
            .saturating_add(margin);
        if sum > ttl {
            return Err(TimingError::Incoherent {
                renew,
                operation,
                retry,
                margin,
                sum,
                ttl,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_times_are_coherent_for_every_ttl() {
        for ms in [1000, 1001, 1500, 2000, 5000, 10_000, 15_000, 60_000, 3_600_000] {
            let timing = Timing::from_ttl(Duration::from_millis(ms));
            assert_eq!(timing.validate(), Ok(()), "{timing:?}");
            assert!(timing.cancel_lead() < timing.trust());
        }
    }

    /// A lease as long as its renewal period is lost in normal running (river PR 217, PR 219).
    #[test]
    fn case_23_renew_equal_to_ttl_is_refused() {
        let timing = Timing::default().with_renew(Timing::default().ttl());
        let error = timing.validate().unwrap_err();
        assert!(matches!(error, TimingError::Incoherent { .. }), "{error}");
        assert!(error.to_string().contains("10s"), "{error}");
    }

    #[test]
    fn zero_and_out_of_range_are_refused() {
        assert!(matches!(
            Timing::from_ttl(Duration::ZERO).validate(),
            Err(TimingError::Ttl { .. })
        ));
        assert!(matches!(
            Timing::from_ttl(Duration::from_secs(4000)).validate(),
            Err(TimingError::Ttl { .. })
        ));
        assert!(matches!(
            Timing::default().with_retry(Duration::ZERO).validate(),
            Err(TimingError::Zero { what: "retry" })
        ));
        assert!(Timing::default().with_renew(Duration::MAX).validate().is_err());
    }
}
