//! Why a zone's name was refused, and which one may have been meant.

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
    Offset,
    Unknown(Option<&'static str>),
    Missing,
}

impl ZoneError {
    pub(super) const fn of(name: &str, meant: Option<&'static str>) -> Self {
        let kind = match meant {
            None if name.is_empty() => Kind::Empty,
            None if is_offset(name) => Kind::Offset,
            meant => Kind::Unknown(meant),
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
        match self.kind {
            Kind::Empty => out.text("it is empty"),
            Kind::Offset => out.quoted(name, 0, name.len()).text(" is an offset, not a zone"),
            Kind::Unknown(_) => out
                .quoted(name, 0, name.len())
                .text(" is not in the time zone database"),
            Kind::Missing => out
                .quoted(name, 0, name.len())
                .text(" is not in the system's time zone database, or cannot be read there"),
        };
        out.picture(name, 0, name.len()).text("\nhelp: ");
        match self.kind {
            Kind::Unknown(Some(meant)) => out.text("did you mean `").text(meant).text("`?"),
            Kind::Offset => out.text(
                "write the zone of a place, such as `Europe/Berlin`, which knows when its clocks change; \
                 `Etc/GMT-2` is UTC+2 all year",
            ),
            Kind::Missing => out.text("install or mend the system's tzdata, or use the database that is compiled in"),
            Kind::Empty | Kind::Unknown(None) => {
                out.text("write an IANA name of a place, such as `Europe/Berlin` or `America/New_York`, or `UTC`")
            }
        };
        message
    }
}

/// Begins like `+02:00`, `UTC+2`, `GMT-5`.
const fn is_offset(name: &str) -> bool {
    let bytes = name.as_bytes();
    let sign = if bytes.len() > 3 && starts_with_utc(bytes) {
        3
    } else {
        0
    };
    bytes.len() > sign + 1 && (bytes[sign] == b'+' || bytes[sign] == b'-') && bytes[sign + 1].is_ascii_digit()
}

const fn starts_with_utc(bytes: &[u8]) -> bool {
    let word = [
        bytes[0].to_ascii_uppercase(),
        bytes[1].to_ascii_uppercase(),
        bytes[2].to_ascii_uppercase(),
    ];
    matches!(&word, b"UTC" | b"GMT")
}

/// More changes than these are another name.
const MOST_CHANGES: usize = 2;
/// So many changes, or more.
const FAR: usize = MOST_CHANGES + 1;
/// Longer names are nobody's.
const LONGEST: usize = 40;

/// The name that was probably meant: of the same place, or with one or two letters changed.
pub(super) const fn nearest(wrong: &str, names: &[&'static str]) -> Option<&'static str> {
    let wrong = wrong.as_bytes();
    // Short words are near to everything.
    if wrong.len() < 4 || wrong.len() > LONGEST || is_signed(wrong) {
        return None;
    }
    let (mut best, mut least) = (None, FAR);
    let mut i = 0;
    while i < names.len() {
        let name = names[i].as_bytes();
        let place = place_from(name);
        let whole = changes(wrong, name, 0);
        // A place alone, such as `Berlin`, must be nearer.
        let short = changes(wrong, name, place) * 2;
        let count = if short < whole { short } else { whole };
        if count < least {
            (best, least) = (Some(names[i]), count);
        }
        i += 1;
    }
    best
}

const fn is_signed(bytes: &[u8]) -> bool {
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'+' || bytes[i].is_ascii_digit() {
            return true;
        }
        i += 1;
    }
    false
}

/// Where the last part of a name begins.
const fn place_from(name: &[u8]) -> usize {
    let mut from = name.len();
    while from > 0 && name[from - 1] != b'/' {
        from -= 1;
    }
    from
}

/// How many letters must be put in, taken out or changed to make `a` of `b[from..]`, without regard to case; the common distance of
/// Levenshtein, looked at only near the diagonal, because more than [`MOST_CHANGES`] are of no interest.
const fn changes(a: &[u8], b: &[u8], from: usize) -> usize {
    let (a_len, b_len) = (a.len(), b.len() - from);
    if a_len.abs_diff(b_len) > MOST_CHANGES || b_len > LONGEST {
        return FAR;
    }
    let mut row = [FAR; LONGEST + 1];
    let mut j = 0;
    while j <= b_len && j <= MOST_CHANGES {
        row[j] = j;
        j += 1;
    }
    let mut i = 1;
    while i <= a_len {
        let low = i.saturating_sub(MOST_CHANGES);
        let high = if i + MOST_CHANGES < b_len {
            i + MOST_CHANGES
        } else {
            b_len
        };
        let mut diagonal = if low == 0 { row[0] } else { row[low - 1] };
        let mut left = FAR;
        let mut least = FAR;
        let mut j = low;
        while j <= high {
            let above = if j < i + MOST_CHANGES { row[j] } else { FAR };
            let mut here = above + 1;
            if j == 0 {
                here = i;
            } else {
                let differs = !is_alike(a[i - 1], b[from + j - 1]);
                here = min(here, min(left + 1, diagonal + differs as usize));
            }
            diagonal = row[j];
            row[j] = min(here, FAR);
            left = row[j];
            least = min(least, row[j]);
            j += 1;
        }
        if least == FAR {
            return FAR;
        }
        i += 1;
    }
    row[b_len]
}

/// Blanks and dashes are often written for underscores.
const fn is_alike(a: u8, b: u8) -> bool {
    a.eq_ignore_ascii_case(&b) || b == b'_' && (a == b' ' || a == b'-')
}

const fn min(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_up_to_two() {
        for (a, b, count) in [
            ("abc", "abc", 0),
            ("ABC", "abc", 0),
            ("abc", "abd", 1),
            ("abc", "ab", 1),
            ("ab", "abc", 1),
            ("bc", "abc", 1),
            ("abc", "cab", 2),
            ("abcdef", "abcd", 2),
            ("abcd", "abcdef", 2),
            ("abcdef", "badcfe", 3),
            ("abc", "xyz", 3),
            ("abcdefgh", "abc", 3),
            ("new york", "New_York", 0),
        ] {
            assert_eq!(changes(a.as_bytes(), b.as_bytes(), 0), count, "{a} {b}");
        }
    }
}
