//! What the nemesis does, and when: chance that a seed repeats.

use std::time::Duration;

use leader_tests::dice::Dice;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A process stands still (SIGSTOP), and goes on.
    Freeze,
    /// A process is killed (SIGKILL), and started again.
    Kill,
    /// A process is told to stop (SIGTERM), and started again.
    Stop,
    /// A process stands still and is killed before it goes on.
    FreezeAndKill,
    /// A body blocks the thread of all bodies of a process.
    Block,
    /// A leader is asked to step down.
    StepDown,
    /// A person pauses a job, and resumes it.
    Pause,
    /// A link is reset, and every new connection of it.
    Cut,
    /// Requests do not arrive.
    StallRequests,
    /// Replies do not arrive.
    StallReplies,
    /// Nothing arrives.
    StallBoth,
    /// What is open swallows everything for ever; new connections work.
    BlackHole,
    /// Everything arrives late.
    Delay,
    /// The server does what it is asked, and the connection is reset.
    Reset,
    /// The server does what it is asked, and the reply is lost.
    DropReply,
    /// `CLIENT PAUSE`.
    ClientPause,
    /// `CLIENT KILL` of everybody.
    ClientKill,
    /// `DEBUG SLEEP`.
    Sleep,
    /// `SCRIPT FLUSH`.
    ScriptFlush,
    /// The server stands still (SIGSTOP), and goes on.
    FreezeServer,
    /// The server is killed, and comes back with its data.
    Restart,
    /// The server refuses writes: it may use no memory.
    Full,
    /// The password is another one for a while, and everybody is thrown out.
    Password,
    /// Hundreds connect at once.
    Crowd,
    /// `FLUSHALL`.
    FlushAll,
    /// The server is killed, and comes back empty.
    RestartEmpty,
}

/// Whom a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// A process.
    Process,
    /// A link.
    Link,
    /// The server.
    Server,
    /// The fleet, by a person's hand.
    Person,
}

impl Fault {
    /// How often each fault is dealt in a round.
    const DECK: [(Self, usize); 24] = [
        (Self::Freeze, 3),
        (Self::Kill, 4),
        (Self::Stop, 4),
        (Self::FreezeAndKill, 1),
        (Self::Block, 2),
        (Self::StepDown, 2),
        (Self::Pause, 1),
        (Self::Cut, 2),
        (Self::StallRequests, 2),
        (Self::StallReplies, 2),
        (Self::StallBoth, 1),
        (Self::BlackHole, 1),
        (Self::Delay, 2),
        (Self::Reset, 2),
        (Self::DropReply, 2),
        (Self::ClientPause, 1),
        (Self::ClientKill, 1),
        (Self::Sleep, 1),
        (Self::ScriptFlush, 1),
        (Self::FreezeServer, 1),
        (Self::Restart, 1),
        (Self::Full, 1),
        (Self::Password, 1),
        (Self::Crowd, 1),
    ];
    /// What ends an era, in turns, once in a round: little can be demanded of the ticks around it.
    const ENDS: [Self; 2] = [Self::FlushAll, Self::RestartEmpty];

    /// Whom it hits.
    pub fn site(self) -> Site {
        match self {
            Self::Freeze | Self::Kill | Self::Stop | Self::FreezeAndKill | Self::Block => Site::Process,
            Self::Cut
            | Self::StallRequests
            | Self::StallReplies
            | Self::StallBoth
            | Self::BlackHole
            | Self::Delay
            | Self::Reset
            | Self::DropReply => Site::Link,
            Self::StepDown | Self::Pause => Site::Person,
            _ => Site::Server,
        }
    }

    /// Whether the store forgets.
    pub fn ends_an_era(self) -> bool {
        matches!(self, Self::FlushAll | Self::RestartEmpty)
    }

    /// How long it lasts at least, and how much longer it may.
    fn span(self) -> (u64, u64) {
        match self {
            Self::Freeze | Self::FreezeAndKill => (300, 3_700),
            Self::Cut | Self::StallRequests | Self::StallReplies | Self::StallBoth => (300, 3_200),
            Self::Delay => (1_000, 3_000),
            Self::Block => (500, 3_500),
            Self::Kill | Self::Stop => (0, 1_500),
            Self::Pause => (1_500, 3_500),
            Self::ClientPause | Self::Sleep | Self::FreezeServer => (300, 2_200),
            Self::Restart | Self::RestartEmpty => (0, 3_000),
            Self::Full | Self::Password => (500, 2_500),
            Self::Crowd => (200, 800),
            Self::StepDown | Self::BlackHole | Self::Reset | Self::DropReply => (500, 1_500),
            Self::ClientKill | Self::ScriptFlush | Self::FlushAll => (0, 0),
        }
    }
}

/// One deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed {
    /// When, from the beginning of its slice.
    pub at: Duration,
    /// What.
    pub fault: Fault,
    /// For how long.
    pub span: Duration,
    /// Chance for whom it hits, and how.
    pub chance: u64,
}

/// Time in which things go wrong, up to the calm at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// How long.
    pub length: Duration,
    /// In order.
    pub deeds: Vec<Deed>,
}

/// The slices of a run.
pub fn plan(seed: u64, length: Duration, slices: usize) -> Vec<Slice> {
    let mut dice = Dice::new(seed);
    let mut deck = Deck::default();
    let mut all = Vec::new();
    for _ in 0..slices {
        let mut deeds = in_peace(&mut dice);
        let mut at = PEACE;
        while at < length {
            // Sometimes two at once.
            for _ in 0..=usize::from(dice.below(4) == 0) {
                let fault = deck.draw(&mut dice);
                let (least, spread) = fault.span();
                let span = dice.span(Duration::from_millis(least), Duration::from_millis(spread));
                let chance = dice.below(u64::MAX);
                deeds.push(Deed {
                    at,
                    fault,
                    span: span.min(length.saturating_sub(at)),
                    chance,
                });
            }
            at += dice.span(Duration::from_millis(500), Duration::from_millis(1_500));
        }
        all.push(Slice { length, deeds });
    }
    all
}

/// How long the first two are left alone.
const PEACE: Duration = Duration::from_secs(5);

/// A leader is stopped, and one is killed, while nothing else goes wrong: to be measured.
fn in_peace(dice: &mut Dice) -> Vec<Deed> {
    let mut deed = |fault, at| Deed {
        at: Duration::from_millis(at),
        fault,
        span: Duration::from_millis(500),
        // One of those that hit a leader.
        chance: dice.below(u64::MAX / 4) * 4 + 1,
    };
    vec![deed(Fault::Stop, 200), deed(Fault::Kill, 2_000)]
}

/// Faults come by chance, and each of them as often as its share.
#[derive(Debug, Default)]
struct Deck {
    left: Vec<Fault>,
    rounds: usize,
}

impl Deck {
    fn draw(&mut self, dice: &mut Dice) -> Fault {
        if self.left.is_empty() {
            for (fault, count) in Fault::DECK {
                self.left.extend(std::iter::repeat_n(fault, count));
            }
            self.left.push(Fault::ENDS[self.rounds % 2]);
            self.rounds += 1;
            for at in (1..self.left.len()).rev() {
                let other = usize::try_from(dice.below(at as u64 + 1)).unwrap_or(0);
                self.left.swap(at, other);
            }
        }
        self.left.pop().expect("it has just been filled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_plan() {
        let of = |seed| plan(seed, Duration::from_secs(50), 3);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn three_minutes_have_every_fault_and_ninety_of_them() {
        for seed in 0..100 {
            let slices = plan(seed, Duration::from_secs(50), 3);
            let deeds: Vec<_> = slices.iter().flat_map(|slice| &slice.deeds).collect();
            assert!(deeds.len() >= 90, "{seed}: {}", deeds.len());
            for fault in Fault::DECK.map(|(fault, _)| fault).into_iter().chain(Fault::ENDS) {
                assert!(deeds.iter().any(|deed| deed.fault == fault), "{seed}: no {fault:?}");
            }
            assert!(deeds.iter().all(|deed| deed.at + deed.span <= Duration::from_secs(50)));
        }
    }
}
