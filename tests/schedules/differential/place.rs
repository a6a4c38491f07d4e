//! One zone and one middle of windows: what is drawn there, and how wide it is looked at.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use leader_core::{Cron, Schedule, Zone};

use super::case::Case;
use super::tally::Tally;
use super::{EXPRESSIONS, INSTANTS, STEPS, Zones};
use crate::choice::Choice;
use crate::draw::{self, Hot};
use crate::oracle::{self, Days, Expression, Line};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How far a window reaches to both sides of its middle: the first that is wide enough.
const RADII: [i64; 9] = [
    6 * HOUR,
    DAY,
    4 * DAY,
    16 * DAY,
    64 * DAY,
    256 * DAY,
    1024 * DAY,
    4096 * DAY,
    12_000 * DAY,
];

/// A window of more ticks is made no wider, and if it began wide, narrower: each second of days would only cost time.
const CROWD: usize = 5000;

/// The instants at which a zone's clocks are changed: only a help to draw instants near them.
pub(super) fn changes(zone: &TimeZone) -> Vec<i64> {
    let first = Timestamp::from_second(oracle::FIRST).unwrap();
    zone.following(first)
        .map(|transition| transition.timestamp().as_second())
        .take_while(|at| *at < oracle::LAST)
        .filter(|at| oracle::offset(zone, *at) != oracle::offset(zone, at - 1))
        .collect()
}

/// One zone, one middle of windows, several expressions.
pub(super) struct Place {
    index: u64,
    choice: Choice,
    name: &'static str,
    zone: TimeZone,
    middle: i64,
    near: bool,
    radii: &'static [i64],
    lines: Vec<Line>,
    tally: Tally,
}

impl Place {
    pub(super) fn new(seed: u64, index: u64, zones: &Zones, widest: bool) -> Self {
        let mut choice = Choice::part(seed, index);
        let near = index.is_multiple_of(2);
        let names = if near { &zones.changing } else { &zones.all };
        let turn = usize::try_from(index / 2).unwrap();
        let name = names[turn % names.len()];
        let zone = oracle::zone(name);
        // 2000 to 2040 is what most instants lie in.
        let recent = 946_684_800..2_240_524_800;
        let lately = choice.chance(70);
        let middle = if near {
            let all = changes(&zone);
            let some: Vec<_> = all
                .iter()
                .copied()
                .filter(|at| !lately || recent.contains(at))
                .collect();
            *choice.of(if some.is_empty() { &all } else { &some })
        } else if lately {
            choice.within(recent.start..=recent.end)
        } else if choice.chance(90) {
            choice.within(0..=oracle::LAST)
        } else {
            let end = *choice.of(&[oracle::FIRST, oracle::LAST]);
            (end + choice.within(-4 * DAY..=4 * DAY)).clamp(oracle::FIRST, oracle::LAST)
        };
        Self {
            index,
            choice,
            name,
            zone,
            middle,
            near,
            radii: &RADII[..if widest { 9 } else { 8 }],
            lines: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn compare(mut self) -> Tally {
        self.tally.zones.insert(self.name);
        for _ in 0..EXPRESSIONS {
            while !self.compare_expression() {}
        }
        self.tally
    }

    /// A wall time around the middle: many in the gap or in the repeated hour, if there is one.
    fn hot(&mut self) -> Hot {
        let sides = [-1, 0].map(|side| self.middle + oracle::offset(&self.zone, self.middle + side));
        let (first, last) = (sides[0].min(sides[1]), sides[0].max(sides[1]));
        let around = self.choice.of(&[0, 0, 0, HOUR / 2, 3 * HOUR]);
        let wall = self.choice.within(first - around..=last + around);
        let wall = wall.clamp(oracle::FIRST, oracle::LAST);
        let (date, (hour, minute, _)) = (oracle::date(wall), oracle::clock(wall));
        Hot {
            year: date.year.into(),
            month: date.month.into(),
            day: date.day.into(),
            hour: hour.try_into().unwrap(),
            minute: minute.try_into().unwrap(),
        }
    }

    /// False when the expression never matches, which the gate must know.
    fn compare_expression(&mut self) -> bool {
        let hot = self.hot();
        let drawn = draw::expression(&mut self.choice, hot);
        let expression = Expression::read(&drawn.text, drawn.days);
        let days = match drawn.days {
            Days::Unsaid => leader_core::Days::Unsaid,
            Days::Or => leader_core::Days::Or,
            Days::And => leader_core::Days::And,
        };
        // The gate lets pass what has no effect.
        let schedule = Cron::parse_with(&drawn.text, days).map(|cron| Schedule::from_cron(&drawn.text, cron));
        if !expression.exists() {
            self.tally.impossible += 1;
            if schedule.is_ok() {
                self.tally
                    .differences
                    .push(format!("{drawn:?} never matches, and is not refused"));
            }
            return false;
        }
        let schedule = match schedule.and_then(|schedule| schedule.in_zone(Zone::new(self.name).unwrap())) {
            Ok(schedule) => schedule,
            Err(error) => {
                self.tally.differences.push(format!("{drawn:?} is refused: {error}"));
                return true;
            }
        };
        let (level, ticks) = self.window(&expression);
        let line = &self.lines[level];
        self.tally.note(&drawn, line);
        let region = region(self.middle, self.near, line);
        for _ in 0..INSTANTS {
            let case = Case {
                drawn: &drawn,
                schedule: &schedule,
                line,
                ticks: &ticks,
                at: instant(&mut self.choice, self.middle, region, self.near, &ticks),
            };
            self.tally.triples += 1;
            self.tally.near += u64::from(self.near);
            match case.compare(&mut self.choice) {
                Ok(compared) => self.tally.ticks += compared,
                Err(found) => {
                    let (zone, name, index) = (&self.zone, self.name, self.index);
                    self.tally.differences.push(case.report(name, zone, index, &found));
                }
            }
        }
        true
    }

    /// The ticks of a window that holds enough of them on both sides of the instants, if any does.
    fn window(&mut self, expression: &Expression) -> (usize, Vec<i64>) {
        let mut level = self.choice.below(3);
        let mut crowded = false;
        loop {
            while self.lines.len() <= level {
                let radius = self.radii[self.lines.len()];
                let line = Line::survey(&self.zone, self.middle - radius, self.middle + radius);
                self.lines.push(line);
            }
            let line = &self.lines[level];
            let found = line.ticks(expression);
            // A tick each second for days would only cost time: begin with the smallest window.
            if !crowded && level > 0 && found.ticks.len() > CROWD {
                crowded = true;
                level = 0;
                continue;
            }
            let (low, high) = region(self.middle, self.near, line);
            let before = found.ticks.partition_point(|tick| *tick < low);
            let after = found.ticks.len() - found.ticks.partition_point(|tick| *tick <= high);
            let enough = before > STEPS && after > STEPS;
            if enough || level + 1 == self.radii.len() || found.ticks.len() > CROWD {
                self.tally.moved += found.moved;
                self.tally.dropped += found.dropped;
                return (level, found.ticks);
            }
            level += 1;
        }
    }
}

/// Where the instants of a window lie.
fn region(middle: i64, near: bool, line: &Line) -> (i64, i64) {
    let radius = (line.to - line.from) / 4;
    let radius = if near { radius.min(2 * DAY) } else { radius };
    ((middle - radius).max(line.from), (middle + radius).min(line.to - 1))
}

fn instant(choice: &mut Choice, middle: i64, (low, high): (i64, i64), near: bool, ticks: &[i64]) -> Timestamp {
    let inside = &ticks[ticks.partition_point(|tick| *tick < low)..ticks.partition_point(|tick| *tick <= high)];
    let second = match choice.below(4) {
        0 | 1 if !inside.is_empty() => *choice.of(inside) + choice.within(-1..=1),
        2 if near => middle + choice.within(-1..=1) * choice.within(0..=3 * HOUR),
        3 if near => middle + choice.within(-1..=1),
        _ => choice.within(low..=high),
    };
    let second = second.clamp(low, high);
    let nanos = *choice.of(&[0, 0, 1, 500_000_000, 999_999_999]);
    Timestamp::from_second(second).unwrap() + SignedDuration::from_nanos(nanos)
}
