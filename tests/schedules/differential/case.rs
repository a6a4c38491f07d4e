//! One triple, and all that is asked about it.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use leader_core::Schedule;

use super::STEPS;
use crate::choice::Choice;
use crate::draw::Drawn;
use crate::oracle::{self, Line};

/// One triple, with the window that holds its ticks.
pub(super) struct Case<'a> {
    pub(super) drawn: &'a Drawn,
    pub(super) schedule: &'a Schedule,
    pub(super) line: &'a Line,
    pub(super) ticks: &'a [i64],
    pub(super) at: Timestamp,
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// What was asked, and both answers.
pub(super) struct Difference {
    asked: String,
    expected: Vec<i64>,
    found: Vec<Timestamp>,
}

impl Case<'_> {
    /// The number of ticks that are the same on both sides, each way.
    pub(super) fn compare(&self, choice: &mut Choice) -> Result<u64, Difference> {
        let floor = self.at.as_nanosecond().div_euclid(1_000_000_000);
        let split = self.ticks.partition_point(|tick| i128::from(*tick) <= floor);
        let (before, after) = self.ticks.split_at(split);
        let coming = &after[..after.len().min(STEPS)];
        let gone: Vec<_> = before.iter().rev().copied().take(STEPS).collect();
        let short = SignedDuration::from_nanos(*choice.of(&[1, 1_000_000_000]));

        let mut stepped = Vec::new();
        let mut at = Some(self.at);
        while let Some(from) = at
            && stepped.len() <= coming.len()
        {
            at = self.schedule.next(from);
            stepped.extend(at);
        }
        same("next, stepwise", coming, stepped, STEPS, |tick| tick >= self.line.to)?;
        let streamed = self.schedule.ticks(self.at).take(coming.len() + 1).collect();
        same("ticks", coming, streamed, STEPS, |tick| tick >= self.line.to)?;

        let mut stepped = Vec::new();
        let mut at = self.schedule.prev(self.at);
        while let Some(tick) = at
            && stepped.len() <= gone.len()
        {
            stepped.push(tick);
            at = self.schedule.prev(tick - short);
        }
        same("prev, stepwise", &gone, stepped, STEPS, |tick| tick < self.line.from)?;

        let back: Vec<_> = coming.iter().rev().copied().collect();
        // The tick itself, and its second to the end.
        let within = SignedDuration::from_nanos(*choice.of(&[0, 0, 1, 999_999_999]));
        let found = back
            .iter()
            .filter_map(|tick| self.schedule.prev(timestamp(*tick) + within));
        same("prev of each tick", &back, found.collect(), 0, |_| false)?;
        let earlier = back.iter().skip(1).chain(gone.first()).take(back.len()).copied();
        let stepped = back
            .iter()
            .filter_map(|tick| self.schedule.prev(timestamp(*tick) - short));
        same(
            "prev before each tick",
            &earlier.collect::<Vec<_>>(),
            stepped.collect(),
            usize::MAX,
            |tick| tick < self.line.from,
        )?;

        if let (Some(first), Some(last)) = (gone.last(), coming.last()) {
            self.counts(timestamp(*first) - short, self.at, gone.len())?;
            self.counts(self.at, timestamp(*last), coming.len())?;
        }
        let until = choice.within(i64::try_from(floor).unwrap()..=self.line.to - 1);
        let count = after.partition_point(|tick| *tick <= until);
        self.counts(self.at, timestamp(until).max(self.at), count)?;
        let since = choice.within(self.line.from..=i64::try_from(floor).unwrap());
        let count = before.len() - before.partition_point(|tick| *tick <= since);
        self.counts(timestamp(since), self.at, count)?;
        Ok((coming.len() + gone.len()) as u64)
    }

    fn counts(&self, after: Timestamp, until: Timestamp, expected: usize) -> Result<(), Difference> {
        let count = self.schedule.count(after, until);
        if count == expected as u64 {
            return Ok(());
        }
        let inside = |tick: &&i64| after < timestamp(**tick) && timestamp(**tick) <= until;
        Err(Difference {
            asked: format!("count after {after} until {until}: {expected} expected, {count} found"),
            expected: self.ticks.iter().filter(inside).copied().take(60).collect(),
            found: self
                .schedule
                .ticks(after)
                .take_while(|tick| *tick <= until)
                .take(60)
                .collect(),
        })
    }

    /// The triple and both lists, in UTC and as the wall clock shows them.
    pub(super) fn report(&self, name: &str, zone: &TimeZone, index: u64, difference: &Difference) -> String {
        let Difference { asked, expected, found } = difference;
        let local = |at: Timestamp| format!("{at}  {}", ZonedDateTime::new(at, zone.clone()));
        let mut text = format!(
            "place {index}: `{}` days {:?} in {name} at {}\n  {asked}\n  window {} .. {}\n",
            self.drawn.text,
            self.drawn.days,
            local(self.at),
            timestamp(self.line.from),
            timestamp(self.line.to),
        );
        for i in 0..expected.len().max(found.len()) {
            let expected = expected
                .get(i)
                .map_or_else(|| "-".to_owned(), |at| local(timestamp(*at)));
            let found = found.get(i).map_or_else(|| "-".to_owned(), |at| local(*at));
            let mark = if expected == found { ' ' } else { '!' };
            let _ = writeln!(text, "  {mark} expected {expected:<72} found {found}");
        }
        text
    }
}

/// The same ticks; where the window knew fewer than `enough`, the next one may only lie `beyond` it.
fn same(
    asked: &str,
    expected: &[i64],
    mut found: Vec<Timestamp>,
    enough: usize,
    beyond: impl Fn(i64) -> bool,
) -> Result<(), Difference> {
    let all = found.clone();
    let whole = expected.len() >= enough;
    let further = (found.len() > expected.len()).then(|| found.pop()).flatten();
    // At the ends of time there is none further.
    let end = |tick: i64| beyond(tick) && oracle::FIRST < tick && tick < oracle::LAST;
    let right = found
        .iter()
        .map(|tick| tick.as_nanosecond())
        .eq(expected.iter().map(|tick| i128::from(*tick) * 1_000_000_000));
    if right && further.is_none_or(|tick| whole || end(tick.as_second())) {
        return Ok(());
    }
    Err(Difference {
        asked: asked.to_owned(),
        expected: expected.to_vec(),
        found: all,
    })
}
