//! Durations as the options write them: `30s`, `1h30m`, `250ms`, `7d`.

mod meant;

use std::fmt;
use std::time::Duration;

use super::error::ScheduleError;
use super::message::Message;

/// The units, largest first, in milliseconds. A day is 24 hours: a duration knows no calendar.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// Why a duration was refused, and where.
///
/// It does not hold the text: [`DurationError::message`] takes it again, so that the error is `Copy` and can be made in a `const`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurationError {
    /// Where the fault begins, in bytes.
    pub at: usize,
    /// How long it is, in bytes; 0 when something is missing there.
    pub len: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Empty,
    Blank,
    Number,
    Fraction,
    NoUnit,
    Unit,
    Order,
    Overflow,
}

impl DurationError {
    const fn new(at: usize, end: usize, kind: Kind) -> Self {
        Self {
            at,
            len: end - at,
            kind,
        }
    }

    /// The whole message for people: what is wrong, a picture of the text with carets, and the way out.
    ///
    /// `text` is the duration that was refused.
    #[must_use]
    pub const fn message(&self, text: &str) -> Message {
        let Self { at, len, kind } = *self;
        let mut message = Message::new();
        let out = message.text("invalid duration: ");
        match kind {
            Kind::Empty => out.text("it is empty"),
            Kind::Blank => out.text("it has a blank"),
            Kind::Number => out.text("a number is expected"),
            Kind::Fraction => out.text("it has a fraction"),
            Kind::NoUnit => out.quoted(text, at, len).text(" has no unit"),
            Kind::Unit => out.quoted(text, at, len).text(" is not a unit"),
            Kind::Order => out
                .text("the unit ")
                .quoted(text, at, len)
                .text(" does not follow a larger one"),
            Kind::Overflow => out.text("it is too large"),
        };
        out.picture(text, at, len).text("\nhelp: ");
        if let Some(ms) = meant::duration(text) {
            meant::write(out.text("write `"), ms).text("`");
            return message;
        }
        match kind {
            Kind::Fraction => out.text("use a smaller unit: `1500ms` for 1.5 seconds"),
            Kind::Overflow => out.text("the most is about 584 million years"),
            _ => out.text(
                "write whole numbers with the units d (24 hours), h, m, s, ms, each at most once and the largest first: \
                 `30s`, `1h30m`, `250ms`, `7d`",
            ),
        };
        message
    }
}

/// Reads a duration such as `30s`, `5m`, `1h30m`, `250ms` or `7d`.
///
/// Whole numbers with the units `d` (24 hours), `h`, `m`, `s`, `ms`, each at most once and the largest first; no blanks.
///
/// # Errors
/// [`ScheduleError::Duration`] with the place of the fault.
pub fn parse_duration(text: &str) -> Result<Duration, ScheduleError> {
    read_duration(text).map_err(|error| ScheduleError::Duration {
        text: text.to_owned(),
        error,
    })
}

/// [`parse_duration`] for a `const` too.
pub(super) const fn read_duration(text: &str) -> Result<Duration, DurationError> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return Err(DurationError::new(0, 0, Kind::Empty));
    }
    let mut total: u64 = 0;
    // Units before this one are used up.
    let mut allowed = 0;
    let mut i = 0;
    while i < bytes.len() {
        let from = i;
        let mut number: Option<u64> = Some(0);
        while i < bytes.len() && bytes[i].is_ascii_digit() {
            number = match number {
                Some(n) => match n.checked_mul(10) {
                    Some(n) => n.checked_add((bytes[i] - b'0') as u64),
                    None => None,
                },
                None => None,
            };
            i += 1;
        }
        if i < bytes.len() && bytes[i].is_ascii_whitespace() {
            return Err(DurationError::new(i, i + 1, Kind::Blank));
        }
        if i == from {
            return Err(DurationError::new(from, character_end(bytes, i), Kind::Number));
        }
        let unit_from = i;
        while i < bytes.len() && bytes[i].is_ascii_alphabetic() {
            i += 1;
        }
        if i == unit_from {
            let kind = if i < bytes.len() && bytes[i] == b'.' {
                Kind::Fraction
            } else {
                Kind::NoUnit
            };
            return Err(DurationError::new(from, i, kind));
        }
        let unit = find_unit(bytes, unit_from, i);
        if unit == UNITS.len() {
            return Err(DurationError::new(unit_from, i, Kind::Unit));
        }
        if unit < allowed {
            return Err(DurationError::new(unit_from, i, Kind::Order));
        }
        allowed = unit + 1;
        let sum = match number {
            Some(n) => match n.checked_mul(UNITS[unit].1) {
                Some(ms) => total.checked_add(ms),
                None => None,
            },
            None => None,
        };
        total = match sum {
            Some(sum) => sum,
            None => return Err(DurationError::new(from, i, Kind::Overflow)),
        };
    }
    Ok(Duration::from_millis(total))
}

/// Reads a duration at compile time: the macros put it into a `const`.
///
/// # Panics
/// When it is refused, with [`DurationError::message`]. In a `const` that is a compile error.
#[must_use]
#[track_caller]
pub const fn checked_duration(text: &'static str) -> Duration {
    match read_duration(text) {
        Ok(duration) => duration,
        Err(error) => panic!("{}", error.message(text).as_str()),
    }
}

/// The unit spelled `bytes[from..to]`, or `UNITS.len()`.
const fn find_unit(bytes: &[u8], from: usize, to: usize) -> usize {
    let mut unit = 0;
    while unit < UNITS.len() {
        let name = UNITS[unit].0.as_bytes();
        let mut i = 0;
        while i < name.len() && from + i < to && name[i] == bytes[from + i] {
            i += 1;
        }
        if i == name.len() && from + i == to {
            return unit;
        }
        unit += 1;
    }
    unit
}

const fn character_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] & 0xC0 == 0x80 {
        end += 1;
    }
    end
}

/// A duration in the form that [`parse_duration`] reads, to the millisecond.
pub(crate) fn written(duration: Duration) -> String {
    Written(duration.as_millis().try_into().unwrap_or(u64::MAX)).to_string()
}

/// Writes whole milliseconds in the form that [`parse_duration`] reads, each value in one way only.
pub(super) struct Written(pub(super) u64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut left = self.0;
        for (name, size) in UNITS {
            if left >= size {
                write!(f, "{}{name}", left / size)?;
                left %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read() {
        const HOUR: Duration = checked_duration("1h");
        for (text, ms) in [
            ("0s", 0),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("1s5ms", 1005),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("90m", 5_400_000),
            ("18446744073709551615ms", u64::MAX),
        ] {
            assert_eq!(read_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(HOUR.as_secs(), 3600);
    }

    #[test]
    fn refusals_point_at_the_fault() {
        for (text, message) in [
            ("", "it is empty\n  \n  ^"),
            ("s", "a number is expected\n  s\n  ^"),
            ("-5s", "a number is expected\n  -5s\n  ^"),
            ("5s x", "it has a blank\n  5s x\n    ^"),
            ("5s-x", "a number is expected\n  5s-x\n    ^"),
            ("ü", "a number is expected\n  ü\n  ^"),
            ("30", "`30` has no unit\n  30\n  ^^"),
            ("1h30", "`30` has no unit\n  1h30\n    ^^"),
            ("5 m", "it has a blank\n  5 m\n   ^"),
            ("1h 30m", "it has a blank\n  1h 30m\n    ^"),
            (" 5m", "it has a blank\n   5m\n  ^"),
            ("1.5s", "it has a fraction\n  1.5s\n  ^"),
            ("5x", "`x` is not a unit\n  5x\n   ^"),
            ("5M", "`M` is not a unit\n  5M\n   ^"),
            ("5min", "`min` is not a unit\n  5min\n   ^^^"),
            ("5s1m", "the unit `m` does not follow a larger one\n  5s1m\n     ^"),
            ("5s5s", "the unit `s` does not follow a larger one\n  5s5s\n     ^"),
            (
                "99999999999999999999s",
                "it is too large\n  99999999999999999999s\n  ^^^^^^^^^^^^^^^^^^^^^",
            ),
            (
                "18446744073709551615d",
                "it is too large\n  18446744073709551615d\n  ^^^^^^^^^^^^^^^^^^^^^",
            ),
            (
                "18446744073709551s999ms",
                "it is too large\n  18446744073709551s999ms\n                    ^^^^^",
            ),
        ] {
            let error = read_duration(text).unwrap_err();
            let said = error.message(text).to_string();
            let (said, help) = said.split_once("\nhelp: ").unwrap();
            assert_eq!(said, format!("invalid duration: {message}"));
            assert!(!help.is_empty());
        }
    }

    #[test]
    fn what_was_meant_is_offered() {
        for (text, meant) in [
            ("5 m", "5m"),
            ("5min", "5m"),
            ("10 minutes", "10m"),
            ("1w", "7d"),
            ("1.5h", "1h30m"),
            ("1.5s", "1s500ms"),
            ("0.25 days", "6h"),
            ("1 hour 30 mins", "1h30m"),
            ("5s1m", "1m5s"),
            ("30s30s", "1m"),
            ("90 Sec", "1m30s"),
            ("250 millis", "250ms"),
        ] {
            let message = read_duration(text).unwrap_err().message(text).to_string();
            assert!(message.ends_with(&format!("\nhelp: write `{meant}`")), "{message}");
            assert!(read_duration(meant).is_ok());
        }
        // `M` may be a month; a third of a second, and nothing, are no durations.
        for text in [
            "5M",
            "30",
            "1.0001s",
            "1.s",
            ".5s",
            "0 s",
            "half an hour",
            "5 fortnights",
            "",
            "99999999999999999999 s",
        ] {
            let message = read_duration(text).unwrap_err().message(text).to_string();
            let help = message.split("\nhelp: ").nth(1).unwrap();
            assert!(!help.starts_with("write `"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(ms: u64) {
            let text = Written(ms).to_string();
            prop_assert_eq!(read_duration(&text), Ok(Duration::from_millis(ms)));
        }

        #[test]
        fn no_text_panics(text in "[0-9dhms. üx-]{0,12}") {
            if let Err(error) = read_duration(&text) {
                prop_assert!(error.message(&text).as_str().contains("help"));
            }
        }
    }
}
