//! Tasks that wait for their time, in the order in which they are due: by minute, so that those due are counted without looking at each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::shard::Key;

/// When a task is due, in ms, and which it is.
pub(super) type Place = (i64, Key);

/// What waits in one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// No minute is empty.
    minutes: BTreeMap<i64, BTreeSet<Place>>,
    len: u64,
}

fn minute(due: i64) -> i64 {
    due.div_euclid(60_000)
}

impl Waiting {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn insert(&mut self, due: i64, key: Key) {
        let new = self.minutes.entry(minute(due)).or_default().insert((due, key));
        self.len += u64::from(new);
    }

    pub(super) fn remove(&mut self, due: i64, key: &Key) {
        let Some(places) = self.minutes.get_mut(&minute(due)) else {
            return;
        };
        self.len -= u64::from(places.remove(&(due, Key::clone(key))));
        if places.is_empty() {
            self.minutes.remove(&minute(due));
        }
    }

    /// When the first of them is due.
    pub(super) fn first(&self) -> Option<i64> {
        let places = self.minutes.values().next();
        places.and_then(|places| places.first()).map(|(due, _)| *due)
    }

    /// Takes the first, if it is due.
    pub(super) fn pop_due(&mut self, now: i64) -> Option<Place> {
        self.first().filter(|due| *due <= now)?;
        let mut minute = self.minutes.first_entry()?;
        let place = minute.get_mut().pop_first();
        if minute.get().is_empty() {
            minute.remove();
        }
        self.len -= u64::from(place.is_some());
        place
    }

    /// How many are due.
    pub(super) fn due(&self, now: i64) -> u64 {
        let count = |places: &BTreeSet<Place>| match places.last() {
            Some((last, _)) if *last > now => places.iter().take_while(|(due, _)| *due <= now).count(),
            _ => places.len(),
        };
        let minutes = self
            .minutes
            .range(..=minute(now))
            .map(|(_, places)| count(places) as u64);
        minutes.sum()
    }

    /// Those after a place, or all.
    pub(super) fn after(&self, place: Option<&Place>) -> impl Iterator<Item = &Place> {
        let first = place.map_or(i64::MIN, |(due, _)| minute(*due));
        let bound = place.map_or(Bound::Unbounded, Bound::Excluded);
        let minutes = self.minutes.range(first..);
        // In the later minutes everything is beyond the bound.
        minutes.flat_map(move |(_, places)| places.range::<Place, _>((bound, Bound::Unbounded)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.into()
    }

    #[test]
    fn what_is_due_is_counted_and_taken_in_order() {
        let mut waiting = Waiting::default();
        for (due, name) in [(60_000, "c"), (-1, "a"), (59_999, "b"), (60_000, "b"), (180_000, "d")] {
            waiting.insert(due, key(name));
        }
        waiting.insert(180_000, key("d"));
        assert_eq!((waiting.len(), waiting.first()), (5, Some(-1)));
        let due = [-2, -1, 59_998, 59_999, 60_000, 179_999, 180_000].map(|now| waiting.due(now));
        assert_eq!(due, [0, 1, 1, 2, 4, 4, 5]);
        let after = (59_999, key("b"));
        let rest: Vec<_> = waiting.after(Some(&after)).map(|(due, key)| (*due, &**key)).collect();
        assert_eq!(rest, [(60_000, "b"), (60_000, "c"), (180_000, "d")]);
        waiting.remove(60_000, &key("b"));
        waiting.remove(60_000, &key("none"));
        let taken: Vec<_> = std::iter::from_fn(|| waiting.pop_due(60_000)).collect();
        assert_eq!(taken, [(-1, key("a")), (59_999, key("b")), (60_000, key("c"))]);
        assert_eq!((waiting.len(), waiting.after(None).count()), (1, 1));
    }
}
