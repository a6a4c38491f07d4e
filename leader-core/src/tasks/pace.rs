//! When a dispatcher looks at its shard again. Pure: what was answered and when goes in, an instant comes out.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Moment;
use crate::store::tasks::Moves;
use crate::timing::Timing;

/// Between two looks, unless more is known to be due: what is stored one by one is moved together.
const REST: Duration = Duration::from_millis(1);
/// Between two looks while a stream has no room.
const FULL: Duration = Duration::from_millis(10);

/// The pace of one leadership of a shard.
#[derive(Debug)]
pub(super) struct Pace {
    timing: Timing,
    /// Since when the store has answered without a break, counted from before the first question.
    connected: Option<Moment>,
    /// When the last answer came.
    heard: Option<Moment>,
}

impl Pace {
    pub(super) fn new(timing: Timing) -> Self {
        Self {
            timing,
            connected: None,
            heard: None,
        }
    }

    /// For how long a worker's sign of life would have come through, as far as this leader can tell at `now`.
    ///
    /// Who has heard nothing for a while, because it was frozen or asked nothing, cannot tell whether the store was there.
    pub(super) fn connected(&mut self, now: Moment) -> Duration {
        let gap = self.heard.map(|heard| now.since(heard));
        if gap.is_some_and(|gap| gap > self.timing.ttl() / 2) {
            self.connected = None;
        }
        now.since(*self.connected.get_or_insert(now))
    }

    /// The store has answered at `now`. When to look again at the latest, and whether at once.
    pub(super) fn heard(&mut self, now: Moment, moves: &Moves) -> Moment {
        self.heard = Some(now);
        let until = |at: Timestamp| Duration::try_from(at.duration_since(moves.now)).unwrap_or_default();
        // A millisecond more, because the server compares whole ones.
        let silent = moves.silent_at.map(|at| until(at) + REST);
        let next = moves.next.map(|at| {
            if at <= moves.now {
                Duration::ZERO
            } else {
                until(at) + REST
            }
        });
        let full = moves.full.then_some(FULL);
        // What is told when somebody makes a task due is a hint: without it none is later than this.
        let pause = [silent, next, full]
            .into_iter()
            .flatten()
            .fold(self.timing.renew(), Duration::min);
        let more = next == Some(Duration::ZERO) && moves.moved > 0;
        now + if more { Duration::ZERO } else { pause.max(REST) }
    }

    /// It has not. When to ask again.
    pub(super) fn unheard(&mut self, now: Moment) -> Moment {
        self.connected = None;
        self.heard = None;
        now + self.timing.retry()
    }

    /// The earliest that a hint brings the next look forward to.
    pub(super) fn hinted(&self) -> Option<Moment> {
        self.heard.map(|heard| heard + REST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn moves() -> Moves {
        Moves {
            now: Timestamp::from_second(1_000).unwrap(),
            moved: 0,
            first_due: None,
            next: None,
            full: false,
            silent_at: None,
            lost: Vec::new(),
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn timing() -> Timing {
        Timing::from_ttl(Duration::from_secs(10))
    }

    #[test]
    fn it_looks_again_when_something_may_have_become_due() {
        let now = Moment::ZERO + Duration::from_secs(50);
        let after = |millis| Some(moves().now + SignedDuration::from_millis(millis));
        let table = [
            ("nothing waits", moves(), timing().renew()),
            (
                "due in a while",
                Moves {
                    next: after(700),
                    ..moves()
                },
                ms(701),
            ),
            (
                "due later than the next look",
                Moves {
                    next: after(60_000),
                    ..moves()
                },
                timing().renew(),
            ),
            (
                "more is due",
                Moves {
                    next: after(0),
                    moved: 3,
                    ..moves()
                },
                ms(0),
            ),
            (
                "more is due, and nothing was moved",
                Moves {
                    next: after(-5),
                    ..moves()
                },
                ms(1),
            ),
            (
                "a full stream",
                Moves {
                    full: true,
                    moved: 3,
                    ..moves()
                },
                ms(10),
            ),
            (
                "an attempt that may fall silent",
                Moves {
                    silent_at: after(300),
                    ..moves()
                },
                ms(301),
            ),
            (
                "one that has",
                Moves {
                    silent_at: after(-300),
                    ..moves()
                },
                ms(1),
            ),
        ];
        for (what, moves, pause) in table {
            assert_eq!(Pace::new(timing()).heard(now, &moves), now + pause, "{what}");
        }
    }

    #[test]
    fn a_break_begins_the_connection_anew() {
        let mut pace = Pace::new(timing());
        let at = |secs: u64| Moment::ZERO + Duration::from_secs(100 + secs);
        assert_eq!(pace.connected(at(0)), Duration::ZERO);
        pace.heard(at(1), &moves());
        assert_eq!(pace.connected(at(5)), Duration::from_secs(5));
        pace.heard(at(5), &moves());
        // Frozen for longer than half a TTL.
        assert_eq!(pace.connected(at(11)), Duration::ZERO);
        pace.heard(at(11), &moves());
        assert_eq!(pace.connected(at(14)), Duration::from_secs(3));
        assert_eq!(pace.unheard(at(14)), at(14) + timing().retry());
        assert_eq!(pace.connected(at(15)), Duration::ZERO);
    }
}
