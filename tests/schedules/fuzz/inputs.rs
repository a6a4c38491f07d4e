//! What is thrown at the gate.

use jiff::{SignedDuration, Timestamp};
use leader_core::Days;

use crate::choice::Choice;
use crate::draw::{self, Hot};
use crate::oracle;

/// One of the kinds of input in which faults of different sorts hide.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bytes,
    Unicode,
    Tokens,
    Fields,
    Valid,
    Mutated,
    Impossible,
}

pub(super) const KINDS: [Kind; 8] = [
    Kind::Bytes,
    Kind::Unicode,
    Kind::Tokens,
    Kind::Fields,
    Kind::Valid,
    Kind::Mutated,
    Kind::Mutated,
    Kind::Impossible,
];

/// Any time, and around the ends of the years that schedules know.
pub(super) fn instant(choice: &mut Choice) -> Timestamp {
    let second = match choice.below(8) {
        0 => *choice.of(&[oracle::FIRST, oracle::LAST]) + choice.within(-400_000..=400_000),
        1 => choice.within(Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()),
        2 => *choice.of(&[Timestamp::MIN.as_second(), Timestamp::MAX.as_second()]),
        _ => choice.within(oracle::FIRST..=oracle::LAST),
    };
    let nanos = choice.within(0..=999_999_999) * i64::from(choice.chance(50));
    let second = Timestamp::from_second(second).unwrap();
    second.checked_add(SignedDuration::from_nanos(nanos)).unwrap_or(second)
}

/// An input of a kind, and how its day fields are to combine.
pub(super) fn input(choice: &mut Choice, kind: Kind) -> (String, Days) {
    let any = *choice.of(&[Days::Unsaid, Days::Or, Days::And]);
    match kind {
        Kind::Bytes => (bytes(choice), any),
        Kind::Unicode => (unicode(choice), any),
        Kind::Tokens => (tokens(choice), any),
        Kind::Fields => (fields(choice), any),
        Kind::Valid => valid(choice),
        Kind::Mutated => {
            let (text, days) = valid(choice);
            (mutated(choice, &text), days)
        }
        Kind::Impossible => impossible(choice),
    }
}

fn bytes(choice: &mut Choice) -> String {
    let length = *choice.of(&[8, 40, 300]);
    let length = choice.below(length);
    let ascii = choice.chance(50);
    let bytes: Vec<u8> = (0..length)
        .map(|_| {
            let [byte, ..] = choice.next().to_le_bytes();
            if ascii { byte & 0x7f } else { byte }
        })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unicode(choice: &mut Choice) -> String {
    const ODD: [char; 16] = [
        '５', '\u{660}', 'ſ', 'K', 'ı', '＊', '\u{a0}', '\u{2003}', '\u{202e}', '\u{feff}', '⏰', 'é', '\0', '\u{7f}',
        '\u{85}', '–',
    ];
    let length = choice.below(30);
    (0..length)
        .map(|_| match choice.below(4) {
            0 => *choice.of(&ODD),
            1 => char::from_u32(u32::try_from(choice.below(0x11_0000)).unwrap()).unwrap_or(' '),
            2 => *choice.of(&['*', ' ', '0', '5', ',', '-', '/', '?', 'L', 'W', '#']),
            _ => ' ',
        })
        .collect()
}

const TOKENS: [&str; 44] = [
    " ",
    " ",
    " ",
    " ",
    "*",
    "*",
    "*",
    "?",
    ",",
    ",",
    "-",
    "-",
    "/",
    "/",
    "#",
    "L",
    "W",
    "LW",
    "0",
    "1",
    "2",
    "5",
    "7",
    "9",
    "12",
    "15",
    "23",
    "29",
    "30",
    "31",
    "59",
    "60",
    "1970",
    "2100",
    "2101",
    "MON",
    "FRI",
    "sun",
    "JAN",
    "dec",
    "@daily",
    "99999999999",
    "H",
    "~",
];

fn tokens(choice: &mut Choice) -> String {
    let count = choice.below(30);
    (0..count).map(|_| *choice.of(&TOKENS)).collect()
}

/// The right number of fields, more or less, each of some tokens.
fn fields(choice: &mut Choice) -> String {
    let count = *choice.of(&[4, 5, 5, 5, 6, 6, 7, 7, 8]);
    let fields: Vec<String> = (0..count)
        .map(|_| {
            let count = *choice.of(&[1, 1, 1, 1, 3, 3, 5]);
            (0..count).map(|_| *choice.of(&TOKENS[4..])).collect()
        })
        .collect();
    fields.join(" ")
}

fn valid(choice: &mut Choice) -> (String, Days) {
    let hot = Hot {
        year: choice.within(1970..=2100),
        month: choice.within(1..=12),
        day: choice.within(1..=31),
        hour: choice.within(0..=23),
        minute: choice.within(0..=59),
    };
    let drawn = draw::expression(choice, hot);
    let days = match drawn.days {
        oracle::Days::Unsaid => Days::Unsaid,
        oracle::Days::Or => Days::Or,
        oracle::Days::And => Days::And,
    };
    (drawn.text, days)
}

/// A few characters are lost, doubled, swapped, or others.
fn mutated(choice: &mut Choice, text: &str) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=choice.below(3) {
        let at = choice.below(text.len() + 1);
        let inside = at < text.len();
        match choice.below(6) {
            0 if inside => {
                text.remove(at);
            }
            1 if inside => text.insert(at, text[at]),
            2 if at + 1 < text.len() => text.swap(at, at + 1),
            3 if inside => text[at] = *choice.of(&['*', ' ', ',', '-', '/', '?', 'L', 'W', '#', '\t', 'ſ']),
            4 if inside => text[at] = *choice.of(&['0', '1', '2', '3', '5', '7', '9']),
            _ => {
                let token: Vec<_> = choice.of(&TOKENS).chars().collect();
                text.splice(at..at, token);
            }
        }
    }
    text.into_iter().collect()
}

/// A well-formed expression of days that no month it names has.
fn impossible(choice: &mut Choice) -> (String, Days) {
    let (days, months): (&[&str], &[&str]) = if choice.chance(50) {
        (
            &["30", "31", "30,31", "30-31", "30W", "31W", "30/1", "31,30W"],
            &["2", "FEB", "feb-FEB", "2-2/3"],
        )
    } else {
        (
            &["31", "31W", "31/2", "31-31"],
            &["2", "4", "APR", "4,6,9,11", "jun,FEB", "9-9", "NOV", "2-6/2"],
        )
    };
    let (day, month) = (*choice.of(days), *choice.of(months));
    let time = format!(
        "{} {}",
        choice.within(0..=59),
        *choice.of(&["*", "0", "2-5", "*/3", "1,13"])
    );
    match choice.below(4) {
        0 => (format!("{time} {day} {month} *"), Days::Unsaid),
        1 => (format!("{time} {day} {month} MON-FRI"), Days::And),
        2 => (
            format!("{} {time} {day} {month} ?", *choice.of(&["0", "*", "*/7"])),
            Days::Or,
        ),
        _ => (
            format!(
                "0 {time} 29 2 ? {}",
                *choice.of(&["2100", "2001-2003", "1970", "2025,2026"])
            ),
            Days::Unsaid,
        ),
    }
}
