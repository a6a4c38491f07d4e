//! What a refused duration probably meant: other words for the units, blanks, fractions, any order.

use super::UNITS;
use crate::schedule::ascii::is_alike;
use crate::schedule::message::Message;

/// In milliseconds; `None` where anything of it is not certain.
pub(super) const fn duration(text: &str) -> Option<u64> {
    let mut rest = text.as_bytes();
    let mut total: u64 = 0;
    loop {
        rest = rest.trim_ascii();
        if rest.is_empty() {
            return if total == 0 { None } else { Some(total) };
        }
        let whole = digits(rest);
        let (number, after) = rest.split_at(whole);
        let (fraction, after) = match after {
            [b'.', after @ ..] => after.split_at(digits(after)),
            _ => (b"".as_slice(), after),
        };
        let has_point = after.len() + fraction.len() + whole < rest.len();
        if number.is_empty() || has_point && fraction.is_empty() {
            return None;
        }
        let after = after.trim_ascii_start();
        let (word, after) = after.split_at(letters(after));
        let part = match (value(number), value(fraction), unit(word)) {
            (Some(number), Some(parts), Some(unit)) => milliseconds(number, parts, fraction.len(), unit),
            _ => None,
        };
        total = match part {
            Some(part) => match total.checked_add(part) {
                Some(total) => total,
                None => return None,
            },
            None => return None,
        };
        rest = after;
    }
}

/// The number, and its fraction of so many digits, which must be whole milliseconds.
const fn milliseconds(number: u64, parts: u64, digits: usize, unit: u64) -> Option<u64> {
    if digits > 6 {
        return None;
    }
    let (mut scale, mut left) = (1, digits);
    while left > 0 {
        scale *= 10;
        left -= 1;
    }
    let (Some(whole), Some(parts)) = (number.checked_mul(unit), parts.checked_mul(unit)) else {
        return None;
    };
    if parts.is_multiple_of(scale) {
        whole.checked_add(parts / scale)
    } else {
        None
    }
}

const fn digits(text: &[u8]) -> usize {
    let mut i = 0;
    while i < text.len() && text[i].is_ascii_digit() {
        i += 1;
    }
    i
}

const fn letters(text: &[u8]) -> usize {
    let mut i = 0;
    while i < text.len() && text[i].is_ascii_alphabetic() {
        i += 1;
    }
    i
}

/// Of digits alone; nothing is 0.
const fn value(digits: &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    let mut i = 0;
    while i < digits.len() {
        value = match value.checked_mul(10) {
            Some(value) => value + (digits[i] - b'0') as u64,
            None => return None,
        };
        i += 1;
    }
    Some(value)
}

/// A unit by any of its names, in milliseconds.
const fn unit(word: &[u8]) -> Option<u64> {
    const WORDS: [(&str, u64); 26] = [
        ("w", 604_800_000),
        ("week", 604_800_000),
        ("weeks", 604_800_000),
        ("d", 86_400_000),
        ("day", 86_400_000),
        ("days", 86_400_000),
        ("h", 3_600_000),
        ("hr", 3_600_000),
        ("hrs", 3_600_000),
        ("hour", 3_600_000),
        ("hours", 3_600_000),
        ("m", 60_000),
        ("min", 60_000),
        ("mins", 60_000),
        ("minute", 60_000),
        ("minutes", 60_000),
        ("s", 1000),
        ("sec", 1000),
        ("secs", 1000),
        ("second", 1000),
        ("seconds", 1000),
        ("ms", 1),
        ("msec", 1),
        ("millis", 1),
        ("millisecond", 1),
        ("milliseconds", 1),
    ];
    let mut i = 0;
    while i < WORDS.len() {
        let (name, size) = WORDS[i];
        // A capital letter alone may be another unit, as `M` is a month.
        if is_alike(word, name.as_bytes()) && (word.len() > 2 || word[0].is_ascii_lowercase()) {
            return Some(size);
        }
        i += 1;
    }
    None
}

/// Writes it as it is to be written.
pub(super) const fn write(mut out: &mut Message, mut left: u64) -> &mut Message {
    let mut i = 0;
    while i < UNITS.len() {
        let (name, size) = UNITS[i];
        if left >= size {
            out = out.number(left / size).text(name);
            left %= size;
        }
        i += 1;
    }
    out
}
