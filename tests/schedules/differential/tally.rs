//! What was compared, so that the test cannot become empty unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::draw::Drawn;
use crate::oracle::{Days, Line};

/// The sum of one place, or of all.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) triples: u64,
    pub(super) near: u64,
    pub(super) zones: BTreeSet<&'static str>,
    pub(super) windows: u64,
    pub(super) with_gap: u64,
    pub(super) with_fold: u64,
    pub(super) moved: u64,
    pub(super) dropped: u64,
    pub(super) impossible: u64,
    pub(super) ticks: u64,
    pub(super) kinds: BTreeMap<&'static str, u64>,
    pub(super) features: BTreeMap<&'static str, u64>,
    pub(super) differences: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.triples += other.triples;
        self.near += other.near;
        self.zones.extend(other.zones);
        self.windows += other.windows;
        self.with_gap += other.with_gap;
        self.with_fold += other.with_fold;
        self.moved += other.moved;
        self.dropped += other.dropped;
        self.impossible += other.impossible;
        self.ticks += other.ticks;
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        for (feature, count) in other.features {
            *self.features.entry(feature).or_default() += count;
        }
        self.differences.extend(other.differences);
    }

    /// Takes down an expression and the window that its ticks are compared in.
    pub(super) fn note(&mut self, drawn: &Drawn, line: &Line) {
        *self.kinds.entry(drawn.kind).or_default() += 1;
        for (name, has) in FEATURES {
            *self.features.entry(name).or_default() += u64::from(has(drawn));
        }
        self.windows += 1;
        self.with_gap += u64::from(line.gaps().next().is_some());
        self.with_fold += u64::from(line.folds().next().is_some());
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} triples, {} near a change of clocks, in {} zones",
            self.triples,
            self.near,
            self.zones.len()
        )?;
        writeln!(
            f,
            "{} windows, {} with a gap, {} with a fold",
            self.windows, self.with_gap, self.with_fold
        )?;
        writeln!(f, "{} ticks compared each way", self.ticks)?;
        writeln!(
            f,
            "{} ticks moved to the end of a gap, {} wall times dropped in a fold",
            self.moved, self.dropped
        )?;
        writeln!(f, "{} impossible dates", self.impossible)?;
        for (name, count) in self.kinds.iter().chain(&self.features) {
            writeln!(f, "{count:>8} {name}")?;
        }
        Ok(())
    }
}

type Feature = fn(&Drawn) -> bool;

/// What expressions must have had among them.
const FEATURES: [(&str, Feature); 14] = [
    ("5 fields", |drawn| field_count(drawn) == 5),
    ("6 fields", |drawn| field_count(drawn) == 6),
    ("7 fields", |drawn| field_count(drawn) == 7),
    ("lists", |drawn| drawn.text.contains(',')),
    ("ranges", |drawn| drawn.text.contains('-')),
    ("steps", |drawn| drawn.text.contains('/')),
    ("L", |drawn| word(drawn, |item| item == "L")),
    ("LW", |drawn| word(drawn, |item| item == "LW")),
    ("15W", |drawn| word(drawn, |item| item.ends_with('W') && item != "LW")),
    ("FRIL", |drawn| {
        word(drawn, |item| item.ends_with('L') && item.len() > 1)
    }),
    ("FRI#3", |drawn| word(drawn, |item| item.contains('#'))),
    ("names", |drawn| {
        word(drawn, |item| {
            item.len() == 3 && item.starts_with(|c: char| c.is_alphabetic())
        })
    }),
    ("either day", |drawn| both_days(drawn) && drawn.days != Days::And),
    ("both days", |drawn| both_days(drawn) && drawn.days == Days::And),
];

fn field_count(drawn: &Drawn) -> usize {
    drawn.text.split(' ').count()
}

fn word(drawn: &Drawn, is: impl Fn(&str) -> bool) -> bool {
    drawn.text.split([' ', ',']).any(is)
}

fn both_days(drawn: &Drawn) -> bool {
    let fields: Vec<_> = drawn.text.split(' ').collect();
    let first = usize::from(fields.len() > 5);
    let restricted = |field: usize| {
        fields
            .get(first + field)
            .is_some_and(|field| *field != "*" && *field != "?")
    };
    restricted(2) && restricted(4)
}
