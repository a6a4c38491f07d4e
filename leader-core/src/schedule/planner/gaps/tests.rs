//! What becomes of the ticks in gaps, and that each is counted once.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::super::{Planner, Rule, Step, StepKind};
use super::*;
use crate::schedule::Schedule;
use crate::schedule::blackout::{Blackouts, Calendar};
use crate::schedule::missed::Missed;
use crate::schedule::zone::Zone;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn gap(after: i64, until: i64, why: Why) -> Gap {
    Gap {
        after: at(after),
        until: at(until),
        why,
    }
}

fn rule(missed: Missed, gaps: Vec<Gap>, cursor: i64) -> Rule {
    Rule {
        missed,
        gaps: Gaps::new(gaps, at(cursor)),
        ..Rule::new(Schedule::every("10s").unwrap())
    }
}

/// Everything that is decided from a take-over at `now` on, owed runs ending at once.
fn decided(rule: Rule, cursor: i64, late_from: Option<i64>, now: i64) -> Vec<Step> {
    let mut planner = Planner::default();
    planner.begin(0, rule, at(cursor), late_from.map(at), at(now));
    let mut all = Vec::new();
    for _ in 0..200 {
        let due = planner.due(at(now), |_| false);
        let Some((_, steps)) = due.into_iter().next() else {
            break;
        };
        for step in &steps {
            planner.answered(0, step.tick);
        }
        all.extend(steps);
    }
    all
}

/// `outcome*count` of all that passed, and `tick` of what runs.
fn told(steps: &[Step]) -> Vec<String> {
    let mut told = Vec::new();
    for step in steps {
        for passed in &step.passed {
            let word = match passed.reason {
                PassedAs::Missed(reason) => reason.as_str(),
                PassedAs::Blackout => "blackout",
            };
            let (first, last) = (passed.first.as_second(), passed.last.as_second());
            told.push(format!("{word} {first}-{last}*{}", passed.count));
        }
        if step.kind != StepKind::Settle {
            told.push(format!("{:?} {}", step.kind, step.tick.as_second()));
        }
    }
    told
}

#[test]
fn ticks_in_gaps_are_neither_owed_nor_forgotten() {
    use Why::{ForeignLeader, Removed, Uncovered};
    type Case = (Missed, Vec<Gap>, Option<i64>, i64, Vec<&'static str>);
    let cases: Vec<Case> = vec![
        // The whole time: none is owed, whatever the policy.
        (
            Missed::All,
            vec![gap(0, 96, Uncovered)],
            None,
            96,
            vec!["uncovered 10-90*9"],
        ),
        (
            Missed::Latest,
            vec![gap(0, 96, Uncovered)],
            None,
            96,
            vec!["uncovered 10-90*9"],
        ),
        // Within grace it simply runs; so does what the predecessor's drain has left.
        (
            Missed::Latest,
            vec![gap(0, 94, Uncovered)],
            None,
            94,
            vec!["uncovered 10-80*8", "Run 90"],
        ),
        (
            Missed::Skip,
            vec![gap(0, 96, Uncovered)],
            Some(75),
            96,
            vec!["uncovered 10-70*7", "Owed 80", "Owed 90"],
        ),
        // Another implementation may have run it.
        (
            Missed::Latest,
            vec![gap(0, 94, ForeignLeader)],
            None,
            94,
            vec!["foreign_leader 10-90*9"],
        ),
        // What nobody led before and after is decided by the policy.
        (
            Missed::All,
            vec![gap(25, 60, Uncovered)],
            None,
            86,
            vec!["Owed 10", "Owed 20", "uncovered 30-60*4", "Owed 70", "Owed 80"],
        ),
        (
            Missed::Latest,
            vec![gap(25, 60, ForeignLeader)],
            None,
            86,
            vec![
                "coalesced 10-20*2",
                "foreign_leader 30-60*4",
                "coalesced 70-70*1",
                "Owed 80",
            ],
        ),
        (
            Missed::Skip,
            vec![gap(25, 60, Uncovered)],
            None,
            86,
            vec!["skipped 10-20*2", "uncovered 30-60*4", "skipped 70-80*2"],
        ),
        // Given up by the fleet: no ticks, and nothing is owed of what was left before.
        (
            Missed::All,
            vec![gap(25, 92, Removed)],
            None,
            92,
            vec!["uncovered 10-20*2"],
        ),
        (
            Missed::Latest,
            vec![gap(15, 35, Uncovered), gap(35, 75, Removed), gap(75, 96, Uncovered)],
            None,
            96,
            vec!["uncovered 10-30*3", "uncovered 80-90*2"],
        ),
    ];
    for (missed, gaps, late_from, now, wanted) in cases {
        let what = format!("{missed:?} {gaps:?} {late_from:?}");
        let steps = decided(rule(missed, gaps, 0), 0, late_from, now);
        assert_eq!(told(&steps), wanted, "{what}");
        assert_eq!(steps.last().unwrap().tick, at(now - now % 10), "{what}");
    }
}

#[test]
fn a_tick_after_a_gap_is_the_job_s_own_again() {
    let mut planner = Planner::default();
    let gaps = vec![gap(0, 92, Why::Removed)];
    planner.begin(0, rule(Missed::All, gaps, 0), at(0), None, at(92));
    let due = planner.due(at(92), |_| false);
    assert_eq!((due[0].1[0].kind, due[0].1[0].passed.len()), (StepKind::Settle, 0));
    planner.answered(0, at(90));
    assert_eq!(planner.next_wake(), Some(at(100)));
    let due = planner.due(at(100), |_| false);
    assert_eq!(told(&due[0].1), ["Run 100"]);
}

#[test]
fn what_a_calendar_covers_stays_covered_under_no_leader() {
    let calendar = Calendar::new().between(at(30), at(50)).between(at(70), at(200));
    let with = |gaps| Rule {
        blackouts: Blackouts::new([("freeze", &calendar)], &Zone::UTC),
        ..rule(Missed::All, gaps, 0)
    };
    let steps = decided(with(vec![gap(15, 65, Why::Uncovered)]), 0, None, 96);
    assert_eq!(
        told(&steps),
        [
            "Owed 10",
            "uncovered 20-20*1",
            "blackout 30-40*2",
            "uncovered 50-60*2",
            "blackout 70-90*3"
        ]
    );
    // Where the fleet did not have the job there was nothing to cover.
    let steps = decided(with(vec![gap(35, 85, Why::Removed)]), 0, None, 96);
    assert_eq!(
        told(&steps),
        ["uncovered 10-20*2", "blackout 30-30*1", "blackout 90-90*1"]
    );
}

/// An even and repeatable choice (splitmix64: Steele, Lea and Flood, 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// due = sum of outcomes + pending: each tick up to now is decided once, and in order, but those of no fleet.
#[test]
fn every_due_tick_has_one_outcome_whatever_the_gaps() {
    let mut state = 7;
    for round in 0..4_000 {
        let mut pick = |bound: u64| i64::try_from(next(&mut state) % bound).unwrap();
        let now = 100 + pick(300);
        let mut gaps = Vec::new();
        for _ in 0..pick(5) {
            let after = pick(300);
            let why = [Why::Uncovered, Why::ForeignLeader, Why::Removed][usize::try_from(pick(3)).unwrap()];
            gaps.push(gap(after, (after + pick(150)).min(now), why));
        }
        let missed = [Missed::Skip, Missed::Latest, Missed::All][usize::try_from(pick(3)).unwrap()];
        let (from, length) = (pick(300), pick(100));
        let calendar = Calendar::new().between(at(from), at(from + length));
        let rule = Rule {
            max_missed: u32::try_from(1 + pick(9)).unwrap(),
            max_age: (pick(3) == 0).then(|| Duration::from_secs(80)),
            jitter: Duration::from_secs(if pick(3) == 0 { 4 } else { 0 }),
            blackouts: Blackouts::new([("freeze", &calendar)], &Zone::UTC),
            ..rule(missed, gaps.clone(), 0)
        };
        let late_from = (pick(3) == 0).then(|| now - pick(60));
        let steps = decided(rule.clone(), 0, late_from, now);
        let mut counted = Vec::new();
        for step in &steps {
            for span in &step.passed {
                let ticks: Vec<_> = (span.first.as_second()..=span.last.as_second()).step_by(10).collect();
                // A span over what the fleet did not have is none.
                assert_eq!(ticks.len() as u64, span.count, "round {round}: {span:?} of {gaps:?}");
                counted.extend(ticks);
            }
            if step.kind != StepKind::Settle {
                counted.push(step.tick.as_second());
            }
        }
        let newest = rule.newest_due(at(now)).unwrap();
        let all = (1..).map(|n| 10 * n).take_while(|tick| at(*tick) <= newest);
        let due: Vec<_> = all
            .filter(|tick| rule.gaps.at(at(*tick)).is_none_or(|gap| gap.why != Why::Removed))
            .collect();
        assert_eq!(
            counted,
            due,
            "round {round}: {missed:?} {gaps:?} {late_from:?} at {now}: {:?}",
            told(&steps)
        );
    }
}

#[test]
fn gaps_are_in_order_and_none_overlap() {
    let given = vec![
        gap(50, 70, Why::Uncovered),
        gap(20, 60, Why::ForeignLeader),
        gap(-40, 5, Why::Removed),
        gap(30, 40, Why::Uncovered),
    ];
    let gaps = Gaps::new(given, at(10));
    assert_eq!(gaps.0, [gap(20, 60, Why::ForeignLeader), gap(60, 70, Why::Uncovered)]);
    let spent = SignedDuration::from_secs(1);
    assert!(Gaps::new(vec![gap(0, 10, Why::Removed)], at(10) + spent).is_empty());
}

#[test]
fn what_lies_between_two_gaps_ends_at_both() {
    let gaps = Gaps::new(
        vec![gap(10, 20, Why::ForeignLeader), gap(50, 60, Why::ForeignLeader)],
        at(0),
    );
    for (tick, before, behind) in [
        (5, None, Some(10)),
        (10, None, Some(10)),
        (30, Some(20), Some(50)),
        (70, Some(60), None),
    ] {
        let expected = (before.map_or(Timestamp::MIN, at), behind.map_or(Timestamp::MAX, at));
        assert!(gaps.at(at(tick)).is_none());
        assert_eq!(gaps.around(at(tick)), expected, "{tick}");
    }
    for within in [11, 20] {
        assert!(gaps.at(at(within)).is_some(), "{within}");
    }
    // What the fleet was not without, in the order it was in.
    let own = gap(80, 90, Why::Uncovered);
    let all = Gaps(gaps.0.iter().copied().chain([own]).collect());
    assert_eq!(all.of_others(), gaps);
}

/// A look that comes without need settles nothing, and asks the store nothing, of a job with calendars either.
#[test]
fn a_look_between_two_ticks_decides_nothing() {
    let calendar = Calendar::new().between(at(1000), at(2000));
    let rule = Rule {
        blackouts: Blackouts::new([("upkeep", &calendar)], &Zone::UTC),
        ..Rule::new(Schedule::every("10s").unwrap())
    };
    let mut planner = Planner::default();
    planner.begin(0, rule, at(10), None, at(10));
    planner.look_at(0, at(15));
    assert_eq!(planner.due(at(15), |_| false), []);
    assert_eq!(planner.next_wake(), Some(at(20)));
}
