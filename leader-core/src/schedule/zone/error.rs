//! Why a zone's name was refused, and what to write instead.

use super::abbreviations::places;
use crate::schedule::message::Message;

/// Why the name of a time zone was refused.
///
/// It does not hold the name: [`ZoneError::message`] takes it again, so that the error is `Copy` and can be made in a `const`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZoneError {
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Empty,
    Offset(Offset),
    /// With the places where it is used.
    Abbreviation(&'static str, &'static str),
    Unknown(Option<&'static str>),
    Missing,
}

impl ZoneError {
    pub(super) const fn of(name: &str, meant: Option<&'static str>) -> Self {
        let kind = match (meant, offset(name), places(name)) {
            (Some(_), ..) => Kind::Unknown(meant),
            (None, Some(offset), _) => Kind::Offset(offset),
            (None, _, Some((first, second))) => Kind::Abbreviation(first, second),
            _ if name.is_empty() => Kind::Empty,
            _ => Kind::Unknown(None),
        };
        Self { kind }
    }

    /// A copy of the database has no such zone.
    pub(super) fn missing() -> Self {
        Self { kind: Kind::Missing }
    }

    /// The whole message for people: what is wrong, a picture of the name, and the way out.
    ///
    /// `name` is the name that was refused.
    #[must_use]
    pub const fn message(&self, name: &str) -> Message {
        let mut message = Message::new();
        let out = message.text("invalid time zone: ");
        if matches!(self.kind, Kind::Empty) {
            out.text("it is empty");
        } else {
            out.quoted(name, 0, name.len()).text(match self.kind {
                Kind::Offset(_) => " is an offset, not a zone",
                Kind::Abbreviation(..) => " is an abbreviation, not a zone",
                Kind::Missing => " is not in the system's time zone database, or cannot be read there",
                _ => " is not in the time zone database",
            });
        }
        out.picture(name, 0, name.len()).text("\nhelp: ");
        match self.kind {
            Kind::Unknown(Some(meant)) => out.text("did you mean `").text(meant).text("`?"),
            Kind::Offset(Offset::Hours(0)) => out.text("write `UTC`"),
            Kind::Offset(Offset::Hours(hours)) => hours_help(out, hours),
            Kind::Offset(Offset::Other) => out.text(
                "write the zone of a place, such as `Asia/Kolkata`, which is UTC+5:30; only whole hours have names of their own, \
                 such as `Etc/GMT-2` for UTC+2",
            ),
            Kind::Abbreviation(first, second) => places_help(out, first, second),
            Kind::Missing => out.text("install or mend the system's tzdata, or use the database that is compiled in"),
            Kind::Empty | Kind::Unknown(None) => out.text(
                "write an IANA name, such as `Europe/Berlin` or `America/New_York`, or `UTC`; the database names one city for each \
                 set of rules, and not every place",
            ),
        };
        message
    }
}

/// Offsets of whole hours have names, whose sign is that of POSIX.
const fn hours_help(out: &mut Message, hours: i32) -> &mut Message {
    let (sign, reversed) = if hours > 0 { ("+", "-") } else { ("-", "+") };
    let count = hours.unsigned_abs() as u64;
    out.text("write the zone of a place, such as `Europe/Berlin`, which knows when its clocks change; `Etc/GMT")
        .text(reversed)
        .number(count)
        .text("`, its sign the other way round, is UTC")
        .text(sign)
        .number(count)
        .text(" all year")
}

const fn places_help<'a>(out: &'a mut Message, first: &str, second: &str) -> &'a mut Message {
    let out = out
        .text("write the zone of a place where it is used: `")
        .text(first)
        .text("`");
    if second.is_empty() {
        out
    } else {
        out.text(" or `").text(second).text("`")
    }
}

/// An offset from UTC, as far as it has a name in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Offset {
    /// So many whole hours.
    Hours(i32),
    Other,
}

/// What is written like `+02:00`, `UTC+2`, `GMT-0530`, `Z+1` or `02:00`.
const fn offset(name: &str) -> Option<Offset> {
    let bytes = name.as_bytes();
    let word = match bytes {
        [a, b, c, ..] if is_utc([*a, *b, *c]) => 3,
        [b'Z' | b'z', ..] => 1,
        _ => 0,
    };
    let (_, rest) = bytes.split_at(word);
    let (negative, rest) = match rest {
        [] if word == 1 => return Some(Offset::Hours(0)),
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        // Without a sign only what looks like a time of the day.
        [_, b':', ..] | [_, _, b':', ..] => (false, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [h] => (number(b'0', *h), Some(0)),
        [h, b':', m, n] => (number(b'0', *h), number(*m, *n)),
        [h, g] => (number(*h, *g), Some(0)),
        [h, g, m, n] | [h, g, b':', m, n] | [h, g, b':', m, n, b':', b'0', b'0'] => (number(*h, *g), number(*m, *n)),
        _ => return None,
    };
    let (Some(hours), Some(minutes)) = (hours, minutes) else {
        return None;
    };
    let hours = if negative { -hours } else { hours };
    let named = minutes == 0 && hours >= FIRST_HOUR && hours <= LAST_HOUR;
    Some(if named { Offset::Hours(hours) } else { Offset::Other })
}

/// The offsets with a name: `Etc/GMT+12` to `Etc/GMT-14`.
const FIRST_HOUR: i32 = -12;
/// See [`FIRST_HOUR`].
const LAST_HOUR: i32 = 14;

const fn number(tens: u8, ones: u8) -> Option<i32> {
    if tens.is_ascii_digit() && ones.is_ascii_digit() {
        Some((tens - b'0') as i32 * 10 + (ones - b'0') as i32)
    } else {
        None
    }
}

const fn is_utc(word: [u8; 3]) -> bool {
    let [a, b, c] = word;
    let word = [a.to_ascii_uppercase(), b.to_ascii_uppercase(), c.to_ascii_uppercase()];
    matches!(&word, b"UTC" | b"GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_hours_where_they_are_whole() {
        for (name, hours) in [
            ("+02:00", Some(Offset::Hours(2))),
            ("+2", Some(Offset::Hours(2))),
            ("-05", Some(Offset::Hours(-5))),
            ("+0200", Some(Offset::Hours(2))),
            ("02:00", Some(Offset::Hours(2))),
            ("2:00", Some(Offset::Hours(2))),
            ("UTC+2", Some(Offset::Hours(2))),
            ("utc-12", Some(Offset::Hours(-12))),
            ("GMT+14:00", Some(Offset::Hours(14))),
            ("Z", Some(Offset::Hours(0))),
            ("Z+1", Some(Offset::Hours(1))),
            ("+00:00", Some(Offset::Hours(0))),
            ("+02:00:00", Some(Offset::Hours(2))),
            ("UTC-13", Some(Offset::Other)),
            ("+15", Some(Offset::Other)),
            ("+0530", Some(Offset::Other)),
            ("GMT-05:30", Some(Offset::Other)),
            ("5:45", Some(Offset::Other)),
            ("Zulu+1", None),
            ("UTC", None),
            ("UTC2", None),
            ("+", None),
            ("+x", None),
            ("+1:2", None),
            ("0200", None),
            ("", None),
            ("EST5EDT", None),
        ] {
            assert_eq!(offset(name), hours, "{name}");
        }
    }
}
