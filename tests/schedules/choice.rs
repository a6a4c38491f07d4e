//! Chance that can be repeated.

use std::ops::RangeInclusive;

/// An even and repeatable choice (splitmix64: Steele, Lea and Flood, 2014).
#[derive(Debug)]
pub struct Choice(u64);

impl Choice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another one, for the piece of work `number`.
    pub fn part(seed: u64, number: u64) -> Self {
        let mut choice = Self(seed);
        Self(choice.next() ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub fn within(&mut self, range: RangeInclusive<i64>) -> i64 {
        let width = range.end().abs_diff(*range.start()) + 1;
        range.start() + i64::try_from(self.next() % width).unwrap()
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
    }
}

/// What an environment variable holds as a number.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is a whole number, not `{text}`")),
    )
}

/// How many an environment variable asks for: a number, or `full`.
pub fn wanted(variable: &str, ordinary: u64, full: u64) -> u64 {
    match std::env::var(variable).as_deref() {
        Ok("full") => full,
        _ => number(variable).unwrap_or(ordinary),
    }
}

/// The threads for that many: one for an ordinary run, beside other tests, and every core for more.
pub fn threads(wanted: u64, ordinary: u64) -> usize {
    if wanted > ordinary {
        std::thread::available_parallelism().map_or(1, usize::from)
    } else {
        1
    }
}
