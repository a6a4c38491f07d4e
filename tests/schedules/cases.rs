//! Every row of `cases.tsv`: public reports of cron engines gone wrong, with the ticks that are right by our rule.

use jiff::{SignedDuration, Timestamp};
use leader_core::{Schedule, Zone};

use crate::oracle::{self, Days, Expression, Line};

const ROWS: usize = 39;
const MOMENT: SignedDuration = SignedDuration::from_nanos(1);

#[derive(Debug)]
struct Row<'a> {
    /// Where it was reported; told when the row fails.
    #[expect(dead_code, reason = "read by `Debug` alone")]
    source: &'a str,
    expr: &'a str,
    zone: &'a str,
    way: &'a str,
    from: Timestamp,
    /// From `from` on, in the row's way.
    expected: Vec<Timestamp>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = include_str!("cases.tsv").lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let [source, expr, zone, way, from, expected] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("six columns: {line}");
            };
            Row {
                source,
                expr,
                zone,
                way,
                from: from.parse().unwrap(),
                expected: expected.split(',').map(|tick| tick.parse().unwrap()).collect(),
            }
        })
        .collect()
}

impl Row<'_> {
    fn schedule(&self) -> Schedule {
        let schedule = Schedule::cron(self.expr).unwrap();
        schedule.in_zone(Zone::new(self.zone).unwrap()).unwrap()
    }

    /// The expected ticks in the order of time.
    fn in_order(&self) -> Vec<Timestamp> {
        let mut ticks = self.expected.clone();
        ticks.sort();
        ticks
    }
}

#[test]
fn every_row_holds() {
    let rows = rows();
    assert_eq!(rows.len(), ROWS);
    for row in rows {
        let schedule = row.schedule();
        let mut at = row.from;
        for (index, expected) in row.expected.iter().enumerate() {
            let found = match row.way {
                "next" => schedule.next(at),
                // The first may be the instant itself.
                "prev" if index == 0 => schedule.prev(at),
                "prev" => schedule.prev(at - MOMENT),
                way => panic!("`{way}` is neither next nor prev"),
            };
            assert_eq!(found, Some(*expected), "{row:?}");
            at = *expected;
        }
        if row.way == "next" {
            let ticks: Vec<_> = schedule.ticks(row.from).take(row.expected.len()).collect();
            assert_eq!(ticks, row.expected, "{row:?}");
        }
    }
}

#[test]
fn every_row_holds_the_other_way_round() {
    for row in rows() {
        let (schedule, ticks) = (row.schedule(), row.in_order());
        for pair in ticks.windows(2) {
            assert_eq!(schedule.next(pair[0]), Some(pair[1]), "{row:?}");
            assert_eq!(schedule.prev(pair[1] - MOMENT), Some(pair[0]), "{row:?}");
        }
        for tick in &ticks {
            assert_eq!(schedule.next(*tick - MOMENT), Some(*tick), "{row:?}");
            assert_eq!(schedule.prev(*tick), Some(*tick), "{row:?}");
        }
        // Between where the row begins and its first tick there is none.
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        if row.way == "next" {
            assert!(
                schedule.prev(first - MOMENT).is_none_or(|tick| tick <= row.from),
                "{row:?}"
            );
            assert_eq!(schedule.count(row.from, last), ticks.len() as u64, "{row:?}");
        } else {
            assert!(schedule.next(last).is_none_or(|tick| tick > row.from), "{row:?}");
            assert_eq!(schedule.count(first - MOMENT, row.from), ticks.len() as u64, "{row:?}");
        }
    }
}

/// The evaluator that the random tests rest on knows these rows too.
#[test]
fn the_naive_evaluator_agrees() {
    for row in rows() {
        let ticks = row.in_order();
        let from = row.from.min(ticks[0]).as_second();
        let to = row.from.max(ticks[ticks.len() - 1]).as_second() + 1;
        let line = Line::survey(&oracle::zone(row.zone), from, to);
        let mut found = line.ticks(&Expression::read(row.expr, Days::Unsaid)).ticks;
        if row.way == "next" {
            found.retain(|tick| *tick > row.from.as_second());
        }
        let found: Vec<_> = found
            .into_iter()
            .map(|tick| Timestamp::from_second(tick).unwrap())
            .collect();
        assert_eq!(found, ticks, "{row:?}");
    }
}
