//! Given a state and an event, exactly these commands; then properties over random histories against a small store.

use super::*;
use crate::clock::Moment;
use crate::timing::Timing;
use std::time::Duration;

mod edges;

const fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// A candidate with a TTL of 2 s: renew 500 ms, operation 250 ms, retry 125 ms, margin 200 ms.
struct Bench {
    election: Election,
    now: Moment,
}

impl Bench {
    fn new() -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let timing = Timing::from_ttl(ms(2000));
        Self {
            election: Election::new(timing, ms(10_000), 0, true, now),
            now,
        }
    }

    fn leading(term: u64) -> Self {
        let mut bench = Self::new();
        let attempt = bench.campaigned(0);
        bench.reply(attempt, Reply::Campaign(CampaignReply::Acquired { term }));
        let until = bench.now + ms(1800);
        assert_eq!(bench.commands(), [Command::Lead { term, until }]);
        bench
    }

    fn pass(&mut self, span: Duration) -> Vec<Command> {
        let end = self.now + span;
        let mut all = Vec::new();
        while let Some(at) = self.election.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.election.handle_timeout(self.now);
            all.extend(self.commands());
        }
        self.now = end;
        all
    }

    fn commands(&mut self) -> Vec<Command> {
        std::iter::from_fn(|| self.election.poll_command()).collect()
    }

    #[allow(clippy::needless_pass_by_value, reason = "reads better in tables")]
    fn reply(&mut self, attempt: Attempt, reply: Reply) {
        self.election.handle_reply(self.now, attempt, &reply);
    }

    fn campaigned(&mut self, known: u64) -> Attempt {
        match self.pass(Duration::ZERO).as_slice() {
            [Command::Campaign { attempt, known: k, .. }] if *k == known => *attempt,
            other => panic!("expected one campaign knowing {known}: {other:?}"),
        }
    }

    fn renewed(&mut self, term: u64) -> Attempt {
        match self.commands().as_slice() {
            [Command::Renew { attempt, term: t }] if *t == term => *attempt,
            other => panic!("expected one renewal of {term}: {other:?}"),
        }
    }
}

fn acquired(term: u64) -> Reply {
    Reply::Campaign(CampaignReply::Acquired { term })
}

fn held(remaining: u64, term: u64) -> Reply {
    Reply::Campaign(CampaignReply::Held {
        remaining: Some(ms(remaining)),
        term,
    })
}

#[test]
fn trust_counts_from_before_the_send() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    let sent = bench.now;
    assert_eq!(bench.pass(ms(240)), []);
    bench.reply(attempt, acquired(5));
    let until = sent + ms(1800);
    assert_eq!(bench.commands(), [Command::Lead { term: 5, until }]);
    assert_eq!(bench.election.leading(bench.now), Some(5));
    assert_eq!(bench.election.leading(until), None);
}

/// An error while acquiring is not an acquisition (redbeat#208, jasonlvhit/gocron#160).
#[test]
fn case_17_an_error_while_acquiring_leaves_a_standby() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, Reply::Failed);
    assert_eq!(bench.commands(), []);
    assert_eq!(bench.election.leading(bench.now), None);
    assert_eq!(bench.pass(ms(124)), []);
    assert!(matches!(
        bench.pass(ms(1)).as_slice(),
        [Command::Campaign {
            attempt: Attempt(2),
            ..
        }]
    ));
}

/// One failed renewal neither costs the lease nor stops the renewals (redisson#775, #3194).
#[test]
fn a_failed_renewal_is_retried_while_trust_lasts() {
    let mut bench = Bench::leading(5);
    let commands = bench.pass(ms(500));
    assert!(
        matches!(commands.as_slice(), [Command::Renew { term: 5, .. }]),
        "{commands:?}"
    );
    // No answer: after the operation's bound it counts as failed, and is tried again.
    let commands = bench.pass(ms(250));
    assert_eq!(commands, [Command::RenewalFailed { term: 5, failures: 1 }]);
    let commands = bench.pass(ms(100));
    let [Command::Renew { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    let sent = bench.now;
    bench.reply(*attempt, Reply::Renewed);
    let until = sent + ms(1800);
    assert_eq!(bench.commands(), [Command::Extend { term: 5, until }]);
}

#[test]
fn without_any_answer_trust_ends_on_time_and_bodies_are_told_before() {
    let mut bench = Bench::leading(5);
    let end = bench.now + ms(1800);
    let commands = bench.pass(ms(1799));
    assert!(commands.contains(&Command::Tell { term: 5 }), "{commands:?}");
    assert!(!commands.iter().any(|c| matches!(c, Command::Lose { .. })));
    let commands = bench.pass(ms(1));
    let lose = Command::Lose {
        term: 5,
        reason: Lost::Expired,
        ended: end,
    };
    assert_eq!(commands[0], lose, "{commands:?}");
    // It rejoins the race at once (haproxy-ingress PR 532): the lease may still be there in its own name.
    assert!(
        matches!(commands[1], Command::Campaign { known: 5, .. }),
        "{commands:?}"
    );
}

/// A renewal that succeeds at the last moment takes back what bodies were told; the next end is told anew.
#[test]
fn a_lead_that_goes_on_after_all_is_whole_again() {
    let mut bench = Bench::leading(5);
    let commands = bench.pass(ms(1400));
    assert!(commands.contains(&Command::Tell { term: 5 }), "{commands:?}");
    let mut renewals = commands.iter().filter_map(|command| match command {
        Command::Renew { attempt, .. } => Some(*attempt),
        _ => None,
    });
    let last = renewals.next_back().unwrap();
    bench.reply(last, Reply::Renewed);
    assert!(matches!(bench.commands().as_slice(), [Command::Extend { term: 5, .. }]));
    assert!(bench.pass(ms(1800)).contains(&Command::Tell { term: 5 }), "told anew");
}

#[test]
fn an_answer_after_the_end_of_trust_is_a_loss_first() {
    let mut bench = Bench::leading(5);
    let commands = bench.pass(ms(500));
    let [Command::Renew { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    // The process was frozen: the timer could not fire, the answer is already there.
    bench.now = bench.now + ms(6000);
    bench.reply(*attempt, Reply::Renewed);
    let commands = bench.commands();
    assert!(
        matches!(
            commands.as_slice(),
            [Command::Lose {
                term: 5,
                reason: Lost::Expired,
                ..
            }]
        ),
        "{commands:?}"
    );
    assert_eq!(bench.election.leading(bench.now), None);
}

#[test]
fn a_grant_that_comes_too_late_is_not_believed() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.now = bench.now + ms(1800);
    bench.reply(attempt, acquired(5));
    assert_eq!(bench.election.leading(bench.now), None);
    assert!(matches!(
        bench.pass(Duration::ZERO).as_slice(),
        [Command::Campaign { known: 5, .. }]
    ));
}

/// "Not yours" demotes at once, and says who took it (kubernetes#23731, redbeat#83).
#[test]
fn a_lease_that_is_gone_demotes_at_once() {
    for (held, reason) in [(true, Lost::Taken), (false, Lost::Vanished)] {
        let mut bench = Bench::leading(5);
        bench.pass(ms(499));
        bench.now = bench.now + ms(1);
        bench.election.handle_timeout(bench.now);
        let attempt = bench.renewed(5);
        bench.reply(attempt, Reply::NotYours { held, term: 9 });
        let ended = bench.now;
        assert_eq!(bench.commands(), [Command::Lose { term: 5, reason, ended }]);
        assert!(matches!(
            bench.pass(Duration::ZERO).as_slice(),
            [Command::Campaign { known: 9, .. }]
        ));
    }
}

#[test]
fn a_standby_sleeps_until_the_lease_must_have_ended() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, held(1500, 4));
    assert_eq!(bench.pass(ms(1499)), []);
    assert!(matches!(
        bench.pass(ms(1)).as_slice(),
        [Command::Campaign { known: 4, .. }]
    ));
}

/// A lease that outlives ours, or has no end, may be taken away by hand, and nobody tells of that.
#[test]
fn a_standby_looks_at_a_foreign_lease_once_in_each_of_its_own() {
    for remaining in [Some(ms(3_600_000)), None] {
        let mut bench = Bench::new();
        let attempt = bench.campaigned(0);
        bench.reply(attempt, Reply::Campaign(CampaignReply::Held { remaining, term: 4 }));
        assert_eq!(bench.pass(ms(1999)), [], "{remaining:?}");
        let commands = bench.pass(ms(1));
        assert!(
            matches!(commands.as_slice(), [Command::Campaign { known: 4, .. }]),
            "{remaining:?}: {commands:?}"
        );
    }
}

#[test]
fn a_standby_that_is_told_of_a_release_looks_at_once() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, held(1500, 4));
    bench.election.told_of_release(bench.now, 4);
    assert!(matches!(
        bench.pass(Duration::ZERO).as_slice(),
        [Command::Campaign { .. }]
    ));
}

#[test]
fn a_release_told_during_a_campaign_is_not_forgotten() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.election.told_of_release(bench.now, 4);
    bench.reply(attempt, held(1500, 4));
    assert!(matches!(
        bench.pass(Duration::ZERO).as_slice(),
        [Command::Campaign { .. }]
    ));
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.election.told_of_release(bench.now, 4);
    bench.reply(attempt, held(1500, 6));
    assert_eq!(bench.pass(ms(1400)), [], "a newer term was not released");
}

#[test]
fn stale_and_quarantine() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.reply(attempt, Reply::Campaign(CampaignReply::Stale { term: 77 }));
    let attempt = bench.campaigned(77);
    let remaining = ms(1200);
    bench.reply(
        attempt,
        Reply::Campaign(CampaignReply::Quarantined { remaining, term: 77 }),
    );
    assert_eq!(bench.commands(), [Command::Quarantined { remaining }]);
    assert_eq!(bench.pass(ms(1199)), []);
    assert!(matches!(
        bench.pass(ms(1)).as_slice(),
        [Command::Campaign { known: 77, .. }]
    ));
}

/// The lease is given back only after the work has stopped (kubernetes PR 71490, client-go#728).
#[test]
fn case_24_step_down_drains_then_clears_belief_then_releases() {
    let mut bench = Bench::leading(5);
    bench.election.step_down(bench.now, StepDown::Request);
    let since = bench.now;
    let bound = bench.now + ms(10_000);
    assert_eq!(bench.commands(), [Command::Drain { term: 5, bound }]);
    // The lease is renewed while the bodies end.
    let commands = bench.pass(ms(500));
    let [Command::Renew { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    bench.reply(*attempt, Reply::Renewed);
    assert!(matches!(bench.commands().as_slice(), [Command::Extend { term: 5, .. }]));
    bench.election.drained(bench.now, 5);
    let ended = bench.now;
    let commands = bench.commands();
    let lose = Command::Lose {
        term: 5,
        reason: Lost::SteppedDown,
        ended,
    };
    assert_eq!(commands[0], lose);
    let Command::Release {
        attempt,
        term: 5,
        draining_since,
    } = commands[1]
    else {
        panic!("{commands:?}")
    };
    assert_eq!(draining_since, Some(since));
    bench.reply(attempt, Reply::Released);
    // Then a cool-down, even when told of the release.
    bench.election.told_of_release(bench.now, 5);
    assert_eq!(bench.pass(ms(1999)), []);
    assert!(matches!(bench.pass(ms(1)).as_slice(), [Command::Campaign { .. }]));
}

#[test]
fn a_drain_is_bounded() {
    let mut bench = Bench::leading(5);
    bench.election.step_down(bench.now, StepDown::Shutdown);
    bench.commands();
    let mut released = None;
    for _ in 0..40 {
        for command in bench.pass(ms(500)) {
            match command {
                Command::Renew { attempt, .. } => bench.reply(attempt, Reply::Renewed),
                Command::Release { attempt, .. } => released = Some((bench.now, attempt)),
                _ => {}
            }
        }
        if released.is_some() {
            break;
        }
    }
    let (_, attempt) = released.expect("released at the bound");
    bench.commands();
    bench.reply(attempt, Reply::Released);
    assert_eq!(bench.commands(), [Command::Stopped]);
    assert!(bench.election.is_stopped());
    assert_eq!(bench.election.poll_timeout(), None);
}

#[test]
fn a_release_without_an_answer_is_repeated_and_given_up() {
    let mut bench = Bench::leading(5);
    bench.election.step_down(bench.now, StepDown::Shutdown);
    bench.election.drained(bench.now, 5);
    let commands = bench.pass(ms(750));
    let releases = commands.iter().filter(|c| matches!(c, Command::Release { .. })).count();
    assert!(releases >= 2, "{commands:?}");
    assert_eq!(commands.last(), Some(&Command::Stopped), "{commands:?}");
}

#[test]
fn a_candidate_that_stops_gives_a_late_grant_back() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.election.step_down(bench.now, StepDown::Shutdown);
    assert_eq!(bench.commands(), []);
    bench.reply(attempt, acquired(5));
    let commands = bench.commands();
    let [Command::Release { attempt, term: 5, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    bench.reply(*attempt, Reply::Released);
    assert_eq!(bench.commands(), [Command::Stopped]);
}

/// Outstanding attempts are dropped when belief is cleared: a late answer changes nothing.
#[test]
fn a_renewal_answered_after_the_release_changes_nothing() {
    let mut bench = Bench::leading(5);
    let commands = bench.pass(ms(500));
    let [Command::Renew { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    bench.election.step_down(bench.now, StepDown::Request);
    bench.election.drained(bench.now, 5);
    bench.commands();
    bench.reply(*attempt, Reply::Renewed);
    assert_eq!(bench.commands(), []);
    assert_eq!(bench.election.leading(bench.now), None);
}

#[test]
fn an_abandoned_lead_is_released_without_a_drain() {
    for reason in [Lost::RuntimeGone, Lost::Wedged] {
        for draining in [false, true] {
            let mut bench = Bench::leading(5);
            bench.pass(ms(100));
            let mut since = bench.now;
            if draining {
                bench.election.step_down(bench.now, StepDown::Request);
                assert!(matches!(bench.commands().as_slice(), [Command::Drain { term: 5, .. }]));
                bench.pass(ms(50));
            } else {
                since = since + ms(50);
                bench.pass(ms(50));
            }
            bench.election.abandon(bench.now, reason);
            let commands = bench.commands();
            let [
                lose,
                Command::Release {
                    term: 5,
                    draining_since,
                    ..
                },
            ] = commands.as_slice()
            else {
                panic!("{commands:?}");
            };
            let ended = bench.now;
            assert_eq!(*lose, Command::Lose { term: 5, reason, ended });
            assert_eq!(*draining_since, Some(since));
            assert_eq!(bench.election.leading(bench.now), None);
        }
    }
}

#[test]
fn an_abandoned_candidate_stays_out_until_it_rejoins() {
    let mut bench = Bench::leading(5);
    bench.election.abandon(bench.now, Lost::Wedged);
    let commands = bench.commands();
    let [Command::Lose { .. }, Command::Release { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    bench.reply(*attempt, Reply::Released);
    assert_eq!(bench.pass(ms(60_000)), [], "no campaign, and no timer that spins");
    bench.election.told_of_release(bench.now, 9);
    bench.election.look_again(bench.now);
    bench.election.look_ahead(bench.now, ms(60_000));
    assert_eq!(bench.pass(ms(60_000)), [], "whatever it is told");
    assert_eq!(bench.election.poll_timeout(), None);
    assert!(!bench.election.is_stopped());
    bench.election.rejoin(bench.now);
    assert!(matches!(
        bench.pass(Duration::ZERO).as_slice(),
        [Command::Campaign { known: 5, .. }]
    ));
}

/// A wedge that is over sooner than the cool-down does not shorten it.
#[test]
fn a_candidate_that_rejoins_soon_keeps_its_cool_down() {
    let mut bench = Bench::leading(5);
    bench.election.abandon(bench.now, Lost::Wedged);
    let commands = bench.commands();
    let Some(Command::Release { attempt, .. }) = commands.last() else {
        panic!("{commands:?}");
    };
    bench.reply(*attempt, Reply::Released);
    bench.election.rejoin(bench.now);
    assert_eq!(bench.pass(ms(1_999)), []);
    assert!(matches!(bench.pass(ms(1)).as_slice(), [Command::Campaign { .. }]));
}

#[test]
fn a_candidate_that_is_abandoned_gives_a_late_grant_back() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.election.abandon(bench.now, Lost::Wedged);
    assert_eq!(bench.commands(), []);
    bench.pass(ms(50));
    bench.reply(attempt, acquired(6));
    let commands = bench.commands();
    let [Command::Release { term: 6, attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    bench.reply(*attempt, Reply::Released);
    assert_eq!(bench.pass(ms(60_000)), []);
    // Back before the answer: an ordinary grant.
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    bench.election.abandon(bench.now, Lost::Wedged);
    bench.election.rejoin(bench.now);
    bench.reply(attempt, acquired(6));
    assert!(matches!(bench.commands().as_slice(), [Command::Lead { term: 6, .. }]));
}

/// The runtime is gone: given up, and then stopped for good.
#[test]
fn an_abandoned_candidate_can_be_stopped() {
    let mut bench = Bench::leading(5);
    bench.election.abandon(bench.now, Lost::RuntimeGone);
    bench.election.step_down(bench.now, StepDown::Shutdown);
    let commands = bench.commands();
    let [Command::Lose { .. }, Command::Release { attempt, .. }] = commands.as_slice() else {
        panic!("{commands:?}");
    };
    bench.reply(*attempt, Reply::Released);
    assert_eq!(bench.commands(), [Command::Stopped]);
    let mut bench = Bench::new();
    bench.election.abandon(bench.now, Lost::RuntimeGone);
    bench.election.step_down(bench.now, StepDown::Shutdown);
    assert_eq!(bench.commands(), [Command::Stopped]);
}

/// Trust had ended already: that is the reason told, and the lease is left to its end.
#[test]
fn an_expired_lead_is_not_abandoned_twice() {
    let mut bench = Bench::leading(5);
    bench.now = bench.now + ms(1_800);
    bench.election.abandon(bench.now, Lost::Wedged);
    let commands = bench.commands();
    assert!(
        matches!(
            commands.as_slice(),
            [Command::Lose {
                reason: Lost::Expired,
                ..
            }]
        ),
        "{commands:?}"
    );
    assert_eq!(bench.pass(ms(60_000)), []);
}

#[test]
fn groups_renewed_together_stay_together() {
    let mut bench = Bench::leading(5);
    bench.pass(ms(400));
    bench.election.renew_ahead(bench.now, ms(100));
    assert!(matches!(bench.commands().as_slice(), [Command::Renew { .. }]));
    bench.election.renew_ahead(bench.now, ms(1000));
    assert_eq!(bench.commands(), [], "one renewal at a time");
}

mod histories {
    //! Random histories of two candidates against a store of four rules; at most one believer at any instant.

    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Default)]
    struct Lease {
        holder: Option<usize>,
        term: u64,
        ends: u64,
    }

    impl Lease {
        fn vacate(&mut self, now: Moment) {
            if now.as_nanos() >= self.ends {
                self.holder = None;
            }
        }

        fn execute(&mut self, who: usize, command: &Command, now: Moment) -> Reply {
            let ends = (now + ms(2000)).as_nanos();
            self.vacate(now);
            match command {
                Command::Campaign { known, .. } => match self.holder {
                    Some(other) if other != who => Reply::Campaign(CampaignReply::Held {
                        remaining: Some(Duration::from_nanos(self.ends - now.as_nanos())),
                        term: self.term,
                    }),
                    _ if self.term > *known => Reply::Campaign(CampaignReply::Stale { term: self.term }),
                    _ => {
                        self.term += 1;
                        self.holder = Some(who);
                        self.ends = ends;
                        acquired(self.term)
                    }
                },
                Command::Renew { term, .. } if self.holder == Some(who) && self.term == *term => {
                    self.ends = ends;
                    Reply::Renewed
                }
                Command::Renew { .. } => Reply::NotYours {
                    held: self.holder.is_some(),
                    term: self.term,
                },
                Command::Release { term, .. } => {
                    if self.holder == Some(who) && self.term == *term {
                        self.holder = None;
                    }
                    Reply::Released
                }
                _ => unreachable!("not a request"),
            }
        }
    }

    fn attempt_of(command: &Command) -> Option<Attempt> {
        match command {
            Command::Campaign { attempt, .. } | Command::Renew { attempt, .. } | Command::Release { attempt, .. } => {
                Some(*attempt)
            }
            _ => None,
        }
    }

    /// Thousands of candidates on one lease, leaders that fall silent, answers that are lost: terms never overlap, and a vacancy costs
    /// one question of each candidate (kubernetes#67651).
    #[test]
    fn leases_3_the_terms_of_a_thousand_candidates_never_overlap() {
        const CANDIDATES: usize = 1000;
        let timing = Timing::from_ttl(ms(2000));
        let start = Moment::from_nanos(1_000_000_000);
        let mut choice = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move |bound: u64| {
            // xorshift64 (Marsaglia, 2003).
            choice ^= choice << 13;
            choice ^= choice >> 7;
            choice ^= choice << 17;
            choice % bound
        };
        let mut candidates: Vec<_> = (0..CANDIDATES)
            .map(|_| {
                let preference = u16::try_from(random(65_536)).unwrap();
                Election::new(timing, ms(1000), preference, true, start)
            })
            .collect();
        let mut silent_until = vec![start; CANDIDATES];
        let mut lease = Lease::default();
        // What is on its way: when it arrives, whose, and the answer.
        let mut flying: Vec<(Moment, usize, Attempt, Reply)> = Vec::new();
        let (mut terms, mut questions, mut looks) = (Vec::new(), 0_u64, vec![0_u64; CANDIDATES]);
        for step in 0..9_000_u64 {
            let now = start + ms(5 * step);
            flying.retain(|(at, who, attempt, reply)| {
                let arrives = now >= *at && now >= silent_until[*who];
                if arrives {
                    candidates[*who].handle_reply(now, *attempt, reply);
                }
                !arrives
            });
            for who in 0..CANDIDATES {
                if candidates[who].leading(now).is_some() && random(200) == 0 {
                    silent_until[who] = now + ms(500 + random(4000));
                }
                if now < silent_until[who] {
                    continue;
                }
                if candidates[who].poll_timeout().is_some_and(|at| now >= at) {
                    candidates[who].handle_timeout(now);
                }
                while let Some(command) = candidates[who].poll_command() {
                    if let Command::Lead { term, .. } = command {
                        terms.push(term);
                    }
                    let Some(attempt) = attempt_of(&command) else { continue };
                    questions += 1;
                    looks[who] += u64::from(matches!(command, Command::Campaign { .. }));
                    let reply = lease.execute(who, &command, now);
                    // One in fifty answers is lost, and some come after their asker gave up.
                    if random(50) != 0 {
                        flying.push((now + ms(random(300)), who, attempt, reply));
                    }
                }
            }
            let believers = candidates
                .iter()
                .filter(|candidate| candidate.leading(now).is_some())
                .count();
            assert!(believers <= 1, "{believers} believers after {step} steps");
        }
        assert!(terms.len() >= 5, "{terms:?}");
        assert!(terms.is_sorted_by(|a, b| a < b), "{terms:?}");
        // 45 s are 22 leases long: a standby looks about once for each, whoever leads.
        let most = looks.iter().max().unwrap();
        assert!(*most <= 90, "{most} looks of one candidate");
        println!("{} terms, {questions} questions in 45 s", terms.len());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Pass(u64),
        Freeze(usize, u64),
        Execute(usize),
        Deliver(usize),
        LoseRequest(usize),
        LoseReply(usize),
        GiveUp(usize),
        Drained(usize),
        Told(usize),
        Abandon(usize),
        Rejoin(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let who = 0usize..2;
        let any = 0usize..64;
        prop_oneof![
            6 => (1u64..700).prop_map(Step::Pass),
            1 => (who.clone(), 100u64..5000).prop_map(|(who, span)| Step::Freeze(who, span)),
            8 => any.clone().prop_map(Step::Execute),
            8 => any.clone().prop_map(Step::Deliver),
            1 => any.clone().prop_map(Step::LoseRequest),
            1 => any.prop_map(Step::LoseReply),
            1 => who.clone().prop_map(Step::GiveUp),
            2 => who.clone().prop_map(Step::Drained),
            1 => who.clone().prop_map(Step::Told),
            1 => who.clone().prop_map(Step::Abandon),
            2 => who.prop_map(Step::Rejoin),
        ]
    }

    /// What a node believes, checked against what it commands.
    fn obey(
        who: usize,
        node: &mut Election,
        believed: &mut Option<(u64, Moment)>,
        highest: &mut u64,
        requests: &mut Vec<(usize, Command)>,
    ) -> Result<(), TestCaseError> {
        while let Some(command) = node.poll_command() {
            match command {
                Command::Lead { term, until } => {
                    prop_assert!(term > *highest, "terms rise");
                    *highest = term;
                    prop_assert!(believed.is_none(), "a loss precedes a new lead");
                    *believed = Some((term, until));
                }
                Command::Extend { term, until } => {
                    prop_assert_eq!(believed.map(|b| b.0), Some(term));
                    *believed = Some((term, until));
                }
                Command::Lose { term, .. } => {
                    prop_assert_eq!(believed.map(|b| b.0), Some(term));
                    *believed = None;
                }
                command if attempt_of(&command).is_some() => {
                    if matches!(command, Command::Release { .. }) {
                        prop_assert!(believed.is_none(), "belief is cleared before the release");
                    }
                    requests.push((who, command));
                }
                _ => {}
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 512 } else { 20_000 }))]

        /// Requests and replies may be delayed, lost, reordered, and executed after their caller gave up.
        #[test]
        fn never_two_believers(steps in prop::collection::vec(step(), 1..200)) {
            let mut now = Moment::from_nanos(1_000_000_000);
            let timing = Timing::from_ttl(ms(2000));
            let mut nodes: Vec<Election> = (0..2).map(|_| Election::new(timing, ms(500), 0, true, now)).collect();
            let mut frozen = [now; 2];
            let mut believed: [Option<(u64, Moment)>; 2] = [None; 2];
            let mut highest = 0;
            let mut lease = Lease::default();
            let mut requests: Vec<(usize, Command)> = Vec::new();
            let mut replies: Vec<(usize, Attempt, Reply)> = Vec::new();
            for step in steps {
                match step {
                    Step::Pass(span) => now = now + ms(span),
                    Step::Freeze(who, span) => frozen[who] = frozen[who].max(now + ms(span)),
                    Step::Execute(at) if !requests.is_empty() => {
                        let (who, command) = requests.swap_remove(at % requests.len());
                        let reply = lease.execute(who, &command, now);
                        replies.push((who, attempt_of(&command).unwrap(), reply));
                    }
                    Step::LoseRequest(at) if !requests.is_empty() => {
                        let at = at % requests.len();
                        requests.swap_remove(at);
                    }
                    Step::LoseReply(at) if !replies.is_empty() => {
                        let at = at % replies.len();
                        replies.swap_remove(at);
                    }
                    Step::Deliver(at) if !replies.is_empty() => {
                        let at = at % replies.len();
                        if now >= frozen[replies[at].0] {
                            let (who, attempt, reply) = replies.swap_remove(at);
                            nodes[who].handle_reply(now, attempt, &reply);
                        }
                    }
                    Step::GiveUp(who) if now >= frozen[who] => nodes[who].step_down(now, StepDown::Request),
                    Step::Drained(who) if now >= frozen[who] => {
                        if let Some((term, _)) = believed[who] {
                            nodes[who].drained(now, term);
                        }
                    }
                    Step::Abandon(who) if now >= frozen[who] => nodes[who].abandon(now, Lost::Wedged),
                    Step::Rejoin(who) if now >= frozen[who] => nodes[who].rejoin(now),
                    Step::Told(who) if now >= frozen[who] => nodes[who].told_of_release(now, lease.term),
                    _ => {}
                }
                for who in 0..2 {
                    if now < frozen[who] {
                        continue;
                    }
                    obey(who, &mut nodes[who], &mut believed[who], &mut highest, &mut requests)?;
                    while nodes[who].poll_timeout().is_some_and(|at| at <= now) {
                        nodes[who].handle_timeout(now);
                        obey(who, &mut nodes[who], &mut believed[who], &mut highest, &mut requests)?;
                    }
                }
                let believers = believed.iter().flatten().filter(|(_, until)| now < *until).count();
                prop_assert!(believers <= 1, "two believers: {:?}", believed);
            }
        }
    }
}

/// What a candidate leaves to others it leaves once for each vacancy: a delay, never a veto.
#[test]
fn a_vacancy_is_left_to_others_once() {
    let mut bench = Bench::new();
    bench.election.set_yield(ms(60_000));
    let attempt = match bench.pass(Duration::ZERO).as_slice() {
        // No longer than one lease, whatever was asked for.
        [Command::Campaign { attempt, yields, .. }] if *yields == ms(2000) => *attempt,
        other => panic!("{other:?}"),
    };
    let yielded = |ms: u64| {
        Reply::Campaign(CampaignReply::Yielded {
            remaining: Duration::from_millis(ms),
            term: 5,
        })
    };
    bench.reply(attempt, yielded(1500));
    assert_eq!(bench.pass(ms(1499)), []);
    let attempt = match bench.pass(ms(1)).as_slice() {
        [
            Command::Campaign {
                attempt,
                known: 5,
                yields,
                ..
            },
        ] if yields.is_zero() => *attempt,
        other => panic!("{other:?}"),
    };
    // Whatever the answer: nothing is left to others again before somebody has led.
    bench.reply(attempt, Reply::Failed);
    let attempt = match bench.pass(ms(125)).as_slice() {
        [Command::Campaign { attempt, yields, .. }] if yields.is_zero() => *attempt,
        other => panic!("{other:?}"),
    };
    bench.reply(
        attempt,
        Reply::Campaign(CampaignReply::Held {
            remaining: Some(ms(100)),
            term: 6,
        }),
    );
    assert!(matches!(
        bench.pass(ms(1000)).as_slice(),
        [Command::Campaign { yields, .. }, ..] if !yields.is_zero()
    ));
}

#[test]
fn a_look_comes_along_when_it_is_due_soon_and_never_in_the_cool_down() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    let held = Reply::Campaign(CampaignReply::Held {
        remaining: Some(ms(1000)),
        term: 3,
    });
    bench.reply(attempt, held);
    bench.now = bench.now + ms(499);
    bench.election.look_ahead(bench.now, ms(500));
    assert_eq!(bench.commands(), []);
    bench.now = bench.now + ms(1);
    bench.election.look_ahead(bench.now, ms(500));
    assert!(matches!(
        bench.commands().as_slice(),
        [Command::Campaign { routine: true, .. }]
    ));
    // Not twice.
    bench.election.look_ahead(bench.now, ms(500));
    assert_eq!(bench.commands(), []);

    let mut bench = Bench::leading(7);
    bench.election.step_down(bench.now, StepDown::Request);
    bench.election.drained(bench.now, 7);
    let release = bench.commands().into_iter().find_map(|command| match command {
        Command::Release { attempt, .. } => Some(attempt),
        _ => None,
    });
    bench.reply(release.expect("a release"), Reply::Released);
    bench.election.look_ahead(bench.now, ms(10_000));
    assert_eq!(bench.commands(), [], "the cool-down is not over");
}

/// A look that a hint called for is no reason to look at everything else.
#[test]
fn a_hint_calls_for_one_look() {
    let mut bench = Bench::new();
    let attempt = bench.campaigned(0);
    let held = |term| {
        Reply::Campaign(CampaignReply::Held {
            remaining: Some(ms(1000)),
            term,
        })
    };
    bench.reply(attempt, held(3));
    bench.election.told_of_release(bench.now, 3);
    let attempt = match bench.pass(ms(20)).as_slice() {
        [
            Command::Campaign {
                attempt,
                routine: false,
                ..
            },
        ] => *attempt,
        other => panic!("{other:?}"),
    };
    bench.reply(attempt, held(4));
    assert!(matches!(
        bench.pass(ms(1000)).as_slice(),
        [Command::Campaign { routine: true, .. }]
    ));
}

#[test]
fn a_leader_that_is_asked_something_renews_at_once() {
    let mut bench = Bench::leading(7);
    bench.election.told_of_request(bench.now, 6);
    assert_eq!(bench.pass(Duration::ZERO), []);
    bench.election.told_of_request(bench.now, 7);
    let renewals = bench.pass(Duration::ZERO);
    assert!(
        matches!(renewals.as_slice(), [Command::Renew { term: 7, .. }]),
        "{renewals:?}"
    );
}
