//! What happens at the edges: turns that come without need, spans with a preference, what is told and what is not.

use super::*;

impl Bench {
    fn preferring(preference: u16) -> Self {
        let mut bench = Self::new();
        bench.election.preference = preference;
        bench
    }

    fn timeout(&mut self) -> Vec<Command> {
        self.election.handle_timeout(self.now);
        self.commands()
    }

    /// How long until it wants to be called.
    fn sleeps(&self) -> Option<Duration> {
        self.election.poll_timeout().map(|at| at.since(self.now))
    }

    fn after(&mut self, span: Duration) -> &mut Self {
        self.now = self.now + span;
        self
    }

    fn releasing(&mut self) -> Attempt {
        match self.commands().as_slice() {
            [.., Command::Release { attempt, .. }] => *attempt,
            other => panic!("no release: {other:?}"),
        }
    }
}

#[test]
fn a_turn_that_comes_without_need_sends_nothing() {
    // A campaign is under way.
    let mut bench = Bench::new();
    bench.campaigned(0);
    assert_eq!(bench.after(ms(1)).timeout(), []);
    // The next look is not due.
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, held(1500, 4));
    assert_eq!(bench.after(ms(1499)).timeout(), []);
    // The look is due, in the cool-down of a release.
    let mut bench = Bench::leading(5);
    bench.election.abandon(bench.now, Lost::SteppedDown);
    let attempt = bench.releasing();
    bench.reply(attempt, Reply::Released);
    bench.election.rejoin(bench.now);
    assert_eq!(bench.timeout(), []);
    // It takes no part.
    let mut bench = Bench::new();
    bench.election.set_campaigning(false);
    assert_eq!((bench.timeout(), bench.sleeps()), (vec![], None));
    bench.election.set_campaigning(true);
    assert_eq!(bench.timeout().len(), 1);
    // A renewal is under way, or not due yet.
    let mut bench = Bench::leading(5);
    assert_eq!(bench.after(ms(499)).timeout(), []);
    assert_eq!(bench.after(ms(1)).timeout().len(), 1);
    assert_eq!(bench.after(ms(1)).timeout(), []);
    // A release is under way, or is repeated later.
    bench.election.abandon(bench.now, Lost::SteppedDown);
    bench.releasing();
    assert_eq!(bench.after(ms(1)).timeout(), []);
    assert_eq!(bench.after(ms(249)).timeout(), [], "it has failed");
    assert_eq!(bench.sleeps(), Some(ms(125)));
    assert_eq!(bench.after(ms(124)).timeout(), []);
    assert!(matches!(bench.after(ms(1)).timeout()[..], [Command::Release { .. }]));
}

#[test]
fn what_failed_is_tried_again_after_a_pause() {
    // A campaign that is not answered.
    let mut bench = Bench::new();
    bench.campaigned(0);
    assert_eq!(bench.after(ms(250)).timeout(), []);
    assert_eq!(bench.sleeps(), Some(ms(125)));
    // One that fails.
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.after(ms(7)).reply(attempt, Reply::Failed);
    assert_eq!(bench.sleeps(), Some(ms(125)));
    // A release that fails.
    let mut bench = Bench::leading(5);
    bench.election.abandon(bench.now, Lost::SteppedDown);
    let attempt = bench.releasing();
    bench.after(ms(7)).reply(attempt, Reply::Failed);
    assert_eq!(bench.sleeps(), Some(ms(125)));
    // A renewal: 80 to 120 %, so that a fleet does not stay in step.
    for (preference, pause) in [(0, 100_000), (13_107, 110_000), (u16::MAX, 150_000)] {
        let mut bench = Bench::leading(5);
        bench.election.preference = preference;
        bench.after(ms(500)).timeout();
        bench.after(ms(250)).timeout();
        let pause = Duration::from_micros(pause);
        assert_eq!(bench.sleeps(), Some(pause), "preference {preference}");
    }
}

#[test]
fn a_renewal_counts_to_the_next_from_before_the_send() {
    let mut bench = Bench::leading(5);
    bench.after(ms(500));
    bench.election.handle_timeout(bench.now);
    let attempt = bench.renewed(5);
    bench.after(ms(100)).reply(attempt, Reply::Renewed);
    assert_eq!(bench.sleeps(), Some(ms(400)));
}

/// Each candidate adds its own share of the spread, in the order of preference.
#[test]
fn looks_are_spread_by_preference() {
    let spread = Timing::from_ttl(ms(2000)).spread();
    let remaining = ms(1500);
    for (preference, parts) in [(0, 0), (13_107, 1), (52_428, 4), (u16::MAX, 5)] {
        let mut bench = Bench::preferring(preference);
        let attempt = bench.campaigned(0);
        bench.reply(attempt, held(1500, 4));
        assert_eq!(bench.sleeps(), Some(remaining + spread * parts / 5), "{preference}");
        // After a release the spread is ten milliseconds.
        bench.election.told_of_release(bench.now, 4);
        assert_eq!(bench.sleeps(), Some(ms(10) * parts / 5), "{preference}");

        let mut bench = Bench::preferring(preference);
        let attempt = bench.campaigned(0);
        bench.reply(
            attempt,
            Reply::Campaign(CampaignReply::Quarantined { remaining, term: 4 }),
        );
        assert_eq!(bench.sleeps(), Some(remaining + spread * parts / 5), "{preference}");
    }
}

#[test]
fn a_quarantine_is_told_again_only_when_it_grows() {
    let mut bench = Bench::new();
    // Its end moves by up to the time of an operation between two answers: no news.
    for (remaining, told) in [
        (1000, true),
        (1000, false),
        (1250, false),
        (1251, true),
        (1000, false),
        (3000, true),
    ] {
        let attempt = bench.campaigned(0);
        let remaining = ms(remaining);
        bench.reply(
            attempt,
            Reply::Campaign(CampaignReply::Quarantined { remaining, term: 0 }),
        );
        let expected = told.then_some(Command::Quarantined { remaining });
        assert_eq!(bench.commands(), Vec::from_iter(expected), "{remaining:?}");
        bench.election.look_again(bench.now);
        assert_eq!(bench.sleeps(), Some(Duration::ZERO));
    }
}

#[test]
fn a_missed_message_calls_for_a_look_at_once() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, held(1500, 4));
    bench.election.look_again(bench.now);
    assert_eq!(bench.sleeps(), Some(Duration::ZERO));
    let [Command::Campaign { routine: true, .. }] = bench.timeout()[..] else {
        panic!("no campaign, or one by a hint")
    };
    // One that is nearer stays.
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, Reply::Failed);
    bench.election.look_again(bench.now + ms(1000));
    assert_eq!(bench.sleeps(), Some(ms(125)));
}

#[test]
fn a_lead_that_expires_does_not_bring_back_who_takes_no_part() {
    let mut bench = Bench::leading(5);
    bench.election.set_campaigning(false);
    let commands = bench.pass(ms(4000));
    assert!(commands.iter().any(|command| matches!(command, Command::Lose { .. })));
    assert!(
        !commands
            .iter()
            .any(|command| matches!(command, Command::Campaign { .. })),
        "{commands:?}"
    );
    assert_eq!(bench.sleeps(), None);
}

#[test]
fn a_candidate_that_stops_waits_for_its_campaign_and_for_nothing_else() {
    // Whatever comes of the campaign.
    let failed = [Some(Reply::Failed), Some(held(1500, 4)), None];
    for reply in failed {
        let mut bench = Bench::new();
        let attempt = bench.campaigned(0);
        bench.election.step_down(bench.now, StepDown::Shutdown);
        assert_eq!(bench.commands(), []);
        if let Some(reply) = reply {
            bench.reply(attempt, reply);
        } else {
            bench.after(ms(250));
            bench.election.handle_timeout(bench.now);
        }
        assert_eq!(bench.commands(), [Command::Stopped]);
    }
    // A standby that only steps down has nothing to do.
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, held(1500, 4));
    bench.election.step_down(bench.now, StepDown::Request);
    assert_eq!((bench.commands(), bench.election.is_stopped()), (vec![], false));
    bench.election.step_down(bench.now, StepDown::Shutdown);
    assert_eq!((bench.commands(), bench.sleeps()), (vec![Command::Stopped], None));
}

#[test]
fn the_highest_term_seen_is_known() {
    let mut bench = Bench::new();
    assert_eq!(bench.election.known(), 0);
    for (reply, known) in [
        (held(0, 4), 4),
        (held(0, 3), 4),
        (Reply::Campaign(CampaignReply::Stale { term: 9 }), 9),
        (acquired(12), 12),
    ] {
        bench.election.look_again(bench.now);
        let [Command::Campaign { attempt, .. }] = bench.timeout()[..] else {
            panic!("no campaign")
        };
        bench.reply(attempt, reply);
        assert_eq!(bench.election.known(), known);
    }
}

/// A search takes states that tell the same for one: none that goes on differently may.
#[cfg(feature = "testing")]
#[test]
fn states_that_differ_in_a_flag_tell_different_marks() {
    use crate::election::marks::Mark;
    use crate::election::state::{Draining, State};

    fn marks(election: &Election) -> String {
        let mut all = Vec::new();
        election.marks(&mut |mark: Mark<'_>| all.push(format!("{mark:?}")));
        all.join(";")
    }
    let flag = |set: u8, which: u8| set & (1 << which) != 0;
    let mut told = std::collections::BTreeSet::new();
    for set in 0..16 {
        let mut bench = Bench::new();
        let election = &mut bench.election;
        (election.campaigning, election.stopping) = (flag(set, 0), flag(set, 1));
        // That a vacancy was left to others up to the beginning of time is told by the flag alone.
        (election.abandoned, election.yielded) = (flag(set, 2), flag(set, 3).then_some(Moment::ZERO));
        told.insert(marks(&bench.election));
    }
    assert_eq!(told.len(), 16);
    told.clear();
    for set in 0..16 {
        let mut bench = Bench::leading(5);
        let (now, flight) = (bench.now, bench.election.flight(bench.now));
        let State::Leading(belief) = &mut bench.election.state else {
            unreachable!("it leads")
        };
        (belief.told, belief.asked) = (flag(set, 0), flag(set, 1));
        belief.flight = flag(set, 2).then_some(flight);
        belief.draining = flag(set, 3).then_some(Draining {
            since: now,
            bound: now,
            reason: Lost::Shutdown,
        });
        // The first mark of the belief: what its parts tell besides must not be what tells it apart.
        let all = marks(&bench.election);
        told.insert(all.split(';').skip(8).take(1).collect::<String>());
    }
    assert_eq!(told.len(), 16, "{told:?}");
    // Each state has a kind of its own; a release has two.
    told.clear();
    let mut bench = Bench::new();
    let mut kind = |election: &Election| told.insert(marks(election).split(';').skip(7).take(1).collect::<String>());
    assert!(kind(&bench.election));
    bench.campaigned(0);
    assert!(kind(&bench.election));
    let mut bench = Bench::leading(5);
    assert!(kind(&bench.election));
    bench.election.abandon(bench.now, Lost::Shutdown);
    let attempt = bench.releasing();
    assert!(kind(&bench.election));
    bench.reply(attempt, Reply::Failed);
    assert!(kind(&bench.election));
    bench.election.step_down(bench.now, StepDown::Shutdown);
    bench.after(ms(5000)).timeout();
    assert!(bench.election.is_stopped() && kind(&bench.election));
}
