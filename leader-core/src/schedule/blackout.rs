//! Calendars of days and spans on which jobs do not run, and what they make of one job's ticks.

use std::sync::Arc;

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp};

use super::zone::Zone;

/// Days and spans of time on which no job runs that names the calendar with `except`.
///
/// A tick that the calendar covers is settled with the outcome `blackout`; it is not missed, never owed, and never run later. Days are
/// whole civil days of the job's own time zone (UTC for a period), of 23 or 25 hours where clocks change; spans are half-open. What counts is
/// the planned instant, whatever the jitter.
///
/// ```
/// use jiff::civil::date;
/// use leader_core::Calendar;
///
/// let holidays = Calendar::new()
///     .day(date(2026, 12, 24))
///     .days(date(2026, 12, 31), date(2027, 1, 1))
///     .between("2026-11-27T08:00:00Z".parse()?, "2026-11-30T08:00:00Z".parse()?);
/// # let _ = holidays;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a calendar is given to `bootstrap(..).calendar(name, calendar)`"]
pub struct Calendar {
    days: Vec<(Date, Date)>,
    spans: Vec<Span>,
}

/// From the first instant to before the second.
type Span = (Timestamp, Timestamp);

impl Calendar {
    /// A calendar that covers nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Covers a day.
    pub fn day(self, day: Date) -> Self {
        self.days(day, day)
    }

    /// Covers the days from `first` to `last`, both included. A range that ends before it begins is an error of the start.
    pub fn days(mut self, first: Date, last: Date) -> Self {
        self.days.push((first, last));
        self
    }

    /// Covers the instants from `from` to before `until`. A span that ends before it begins is an error of the start.
    pub fn between(mut self, from: Timestamp, until: Timestamp) -> Self {
        self.spans.push((from, until));
        self
    }

    /// The ranges that end before they begin.
    pub(crate) fn reversed(&self) -> Vec<String> {
        let days = self.days.iter().filter(|(first, last)| last < first);
        let spans = self.spans.iter().filter(|(from, until)| until < from);
        days.map(|(first, last)| format!("the days from {first} to {last}"))
            .chain(spans.map(|(from, until)| format!("the span from {from} to {until}")))
            .collect()
    }

    /// What it covers in a zone.
    fn covered(&self, zone: &Zone) -> Vec<Span> {
        let days = self.days.iter().flat_map(|(first, last)| civil(*first, *last, zone));
        merged(days.chain(self.spans.iter().copied()).collect())
    }
}

impl Extend<Date> for Calendar {
    fn extend<I: IntoIterator<Item = Date>>(&mut self, days: I) {
        self.days.extend(days.into_iter().map(|day| (day, day)));
    }
}

impl FromIterator<Date> for Calendar {
    fn from_iter<I: IntoIterator<Item = Date>>(days: I) -> Self {
        let mut calendar = Self::new();
        calendar.extend(days);
        calendar
    }
}

/// The instants at which a clock shows a date of these. Where a clock is set back over midnight, they are no single span.
fn civil(first: Date, last: Date, zone: &Zone) -> Vec<Span> {
    /// No clock is further from UTC.
    const FURTHEST: i64 = 26 * 3600;
    let wall = |date: Date| second(date.at(0, 0, 0, 0));
    let (from, until) = (wall(first), last.tomorrow().map_or(i64::MAX, wall));
    let at = |second: i64| Timestamp::from_second(second).ok();
    let begin = at(from.saturating_sub(FURTHEST)).unwrap_or(Timestamp::MIN);
    let end = at(until.saturating_add(FURTHEST)).unwrap_or(Timestamp::MAX);
    let mut spans = Vec::new();
    let mut changes = zone.tz().following(begin).take_while(|change| change.timestamp() < end);
    let (mut since, mut offset) = (begin, zone.tz().to_offset(begin));
    loop {
        let change = changes.next();
        let to = change.as_ref().map_or(end, jiff::tz::TimeZoneTransition::timestamp);
        let shown = |wall: i64| at(wall.saturating_sub(i64::from(offset.seconds())));
        let covered = shown(from).unwrap_or(Timestamp::MIN).max(since)..shown(until).unwrap_or(Timestamp::MAX).min(to);
        if covered.start < covered.end {
            spans.push((covered.start, covered.end));
        }
        let Some(change) = change else { return spans };
        (since, offset) = (to, change.offset());
    }
}

/// What a clock shows, as seconds.
fn second(wall: DateTime) -> i64 {
    jiff::tz::Offset::UTC
        .to_timestamp(wall)
        .map_or(i64::MAX, Timestamp::as_second)
}

/// In order, without overlaps, gaps or what is empty.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(from, until)| from < until);
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (from, until) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((from, until)),
        }
    }
    merged
}

/// The calendars of one job, as they lie in its zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blackouts {
    all: Arc<[Span]>,
    named: Arc<[Named]>,
}

/// One calendar of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    calendar: Calendar,
    spans: Vec<Span>,
}

impl Blackouts {
    /// The calendars of a job by name, in the zone of its schedule.
    #[must_use]
    pub fn new<'a>(calendars: impl IntoIterator<Item = (&'a str, &'a Calendar)>, zone: &Zone) -> Self {
        let named: Vec<_> = calendars
            .into_iter()
            .map(|(name, calendar)| Named {
                name: name.to_owned(),
                calendar: calendar.clone(),
                spans: calendar.covered(zone),
            })
            .collect();
        let all = merged(named.iter().flat_map(|named| named.spans.iter().copied()).collect());
        Self {
            all: all.into(),
            named: named.into(),
        }
    }

    /// The same calendars in another zone.
    #[must_use]
    pub fn in_zone(&self, zone: &Zone) -> Self {
        if self.named.is_empty() {
            return self.clone();
        }
        Self::new(
            self.named.iter().map(|named| (named.name.as_str(), &named.calendar)),
            zone,
        )
    }

    /// Whether they cover nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The names of the calendars.
    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|named| named.name.as_str())
    }

    /// The names of the calendars that cover an instant.
    pub fn covering(&self, at: Timestamp) -> impl Iterator<Item = &str> {
        let covering = self
            .named
            .iter()
            .filter(move |named| span_at(&named.spans, at).is_some());
        covering.map(|named| named.name.as_str())
    }

    /// The whole span without a gap that covers an instant, of all calendars together.
    #[must_use]
    pub fn span_at(&self, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
        span_at(&self.all, at)
    }

    /// When the first span begins after an instant.
    pub(super) fn begins_after(&self, at: Timestamp) -> Option<Timestamp> {
        let next = self.all.partition_point(|(from, _)| *from <= at);
        self.all.get(next).map(|(from, _)| *from)
    }

    /// When the last span ended before an instant that is in none.
    pub(super) fn ended_before(&self, at: Timestamp) -> Option<Timestamp> {
        let next = self.all.partition_point(|(from, _)| *from <= at);
        self.all.get(next.checked_sub(1)?).map(|(_, until)| *until)
    }
}

fn span_at(spans: &[Span], at: Timestamp) -> Option<Span> {
    let after = spans.partition_point(|(from, _)| *from <= at);
    let span = spans.get(after.checked_sub(1)?)?;
    (at < span.1).then_some(*span)
}

/// The last instant before another.
pub(super) fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at)
}

#[cfg(test)]
mod tests;
