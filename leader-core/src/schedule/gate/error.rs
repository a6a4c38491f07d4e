//! Why an expression was refused, and what to write instead.

use super::unit::{Unit, WEEKDAYS};
use super::{Days, is_blank};
use crate::schedule::message::Message;

/// Why a cron expression was refused, and where.
///
/// It does not hold the expression: [`CronError::message`] takes it again, so that the error is `Copy` and can be made in a `const`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CronError {
    /// Where the fault begins, in bytes.
    pub at: usize,
    /// How long it is, in bytes; 0 when something is missing there.
    pub len: usize,
    kind: Kind,
}

/// What is wrong with the part of the expression that the error points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    TooLong,
    Character,
    OuterBlank,
    FieldCount(usize),
    ZonePrefix,
    Nickname,
    Reboot,
    EveryNickname,
    EmptyItem(Unit),
    Unreadable(Unit),
    Name(Unit),
    OutOfRange(Unit),
    Backwards(Unit, u32, u32),
    Step(Unit),
    Question,
    /// Digits somewhere in the field, all of which is at fault.
    WeekdayDigits,
    /// `H`, as Jenkins has it.
    Hashed(Unit),
    /// The last of six fields is a year.
    YearOfSix,
    LoneLast,
    LastOffset,
    Nth,
    /// Where the day-of-month field begins and how long it is.
    BothDays(usize, usize),
    /// No month that is named has such a day.
    NoSuchDay,
    /// The two day fields, both of which must match, never do on one day.
    NeverMeet(Apart),
    /// No listed year has such a date; this one has.
    NoSuchYear(u32),
}

/// Why two day fields never match on one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// `W` and `LW` beside days of the weekend.
    Workday,
    /// `FRI#3`: the number, from 1, and the weekday.
    Nth(u32, u32),
    /// `FRIL`.
    Last(u32),
}

const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// The longest expression, in bytes.
pub const MAX_EXPRESSION: usize = 256;

impl CronError {
    pub(super) const fn new(at: usize, end: usize, kind: Kind) -> Self {
        Self {
            at,
            len: end.saturating_sub(at),
            kind,
        }
    }

    /// The whole message for people: what is wrong, a picture of the expression with carets, and the way out.
    ///
    /// `expr` is the expression that was refused.
    #[must_use]
    pub const fn message(&self, expr: &str) -> Message {
        let mut out = Message::new();
        self.reason(out.text("invalid cron expression: "), expr);
        self.help(out.picture(expr, self.at, self.len).text("\nhelp: "), expr);
        out
    }

    const fn reason<'a>(&self, out: &'a mut Message, expr: &str) -> &'a mut Message {
        let Self { at, len, kind } = *self;
        match kind {
            Kind::Empty => out.text("it is empty"),
            Kind::TooLong => out
                .text("it has ")
                .number(expr.len() as u64)
                .text(" bytes, at most ")
                .number(MAX_EXPRESSION as u64)
                .text(" are allowed"),
            Kind::Character => out.text("a character is not printable ASCII"),
            Kind::OuterBlank => out.text("a blank stands before the first or after the last field"),
            Kind::FieldCount(1) => out.text("it has 1 field"),
            Kind::FieldCount(count) => out.text("it has ").number(count as u64).text(" fields"),
            Kind::ZonePrefix => out.text("a time zone does not belong into the expression"),
            Kind::Nickname | Kind::Reboot | Kind::EveryNickname => {
                out.quoted(expr, at, len).text(" is not a schedule of this grammar")
            }
            Kind::EmptyItem(unit) => out.text(unit.name()).text(" has an empty list item"),
            Kind::Unreadable(unit) => out
                .text(unit.name())
                .text(" ")
                .quoted(expr, at, len)
                .text(" cannot be read"),
            Kind::Name(unit) => out
                .text(unit.name())
                .text(" ")
                .quoted(expr, at, len)
                .text(" is not a name of this field"),
            Kind::OutOfRange(unit) => range(
                out.text(unit.name()).text(" ").quoted(expr, at, len),
                unit.min(),
                unit.max(),
            ),
            Kind::Backwards(unit, ..) => out
                .text(unit.name())
                .text(" range ")
                .quoted(expr, at, len)
                .text(" runs backwards"),
            Kind::Step(unit) => range(
                out.text(unit.name()).text(" step ").quoted(expr, at, len),
                1,
                unit.max_step(),
            ),
            Kind::Question => out
                .quoted(expr, at, len)
                .text(" is misplaced: `?` stands alone in a day field"),
            Kind::WeekdayDigits => out
                .text("day of week ")
                .quoted(expr, at, len)
                .text(" means different days in different dialects with seconds"),
            Kind::Hashed(unit) => out
                .text(unit.name())
                .text(" ")
                .quoted(expr, at, len)
                .text(" leaves the value to chance, as Jenkins does, and is not of this grammar"),
            Kind::YearOfSix => out
                .text("day of week ")
                .quoted(expr, at, len)
                .text(" is a year, and the year is the seventh field"),
            Kind::LoneLast => out.text("day of week `L` does not say which weekday"),
            Kind::LastOffset => out
                .text("day of month ")
                .quoted(expr, at, len)
                .text(" counts from the end of the month, which is not supported"),
            Kind::Nth => range(
                out.text("the weekday's number in the month ").quoted(expr, at, len),
                1,
                5,
            ),
            Kind::BothDays(dom, dom_len) => out
                .text("day of month ")
                .quoted(expr, dom, dom_len)
                .text(" and day of week ")
                .quoted(expr, at, len)
                .text(" are both restricted"),
            Kind::NoSuchDay | Kind::NeverMeet(_) | Kind::NoSuchYear(_) => out
                .text("no date matches ")
                .quoted(expr, at, len)
                .text(": it would never fire"),
        }
    }

    const fn help<'a>(&self, out: &'a mut Message, expr: &str) -> &'a mut Message {
        let Self { at, len, kind } = *self;
        match kind {
            Kind::Empty | Kind::FieldCount(_) => out.text(
                "write 5 fields (minute, hour, day of month, month, day of week), 6 (second first), 7 (year last) \
                 or a nickname such as `@daily`",
            ),
            Kind::TooLong => out.text("split it into several jobs, or use ranges and steps"),
            Kind::Character => out.text("use digits, letters, `* , - / ? # @`, and blanks between fields"),
            Kind::OuterBlank => out.text("remove it"),
            Kind::ZonePrefix => out.text("use the option `timezone = \"Europe/Berlin\"`"),
            Kind::Nickname => out.text(
                "the nicknames are `@hourly @daily @midnight @weekly @monthly @yearly @annually`",
            ),
            Kind::Reboot => out.text("a start is not an instant of the fleet; use `while_leading` for a body that starts with each leadership"),
            Kind::EveryNickname => out.text("use the option `every = \"5m\"` in place of `cron`"),
            Kind::EmptyItem(_) => out.text("remove the comma, or write what is missing"),
            Kind::Unreadable(unit) | Kind::Name(unit) | Kind::OutOfRange(unit) => {
                let out = out.text("write ");
                let out = if matches!(unit, Unit::DayOfWeek) && has_five_fields(expr) {
                    out.text("0-7 (0 and 7 are Sunday), ")
                } else {
                    out
                };
                out.text(unit.values()).text(
                    ", a range `a-b`, a step `*/n`, `a-b/n` or `a/n`, or a list of these",
                )
            }
            Kind::Backwards(unit, from, to) => pair(
                pair(out.text("only weekdays wrap around; write `"), from, unit.max()).text(","),
                unit.min(),
                to,
            )
            .text("`"),
            Kind::Step(_) => out.text("a step counts within its range: `*/5` is every fifth value from the first; for one value write it alone"),
            Kind::Question => out.text("write `*`"),
            Kind::WeekdayDigits => weekday_help(out, expr, at, len),
            Kind::Hashed(_) => out.text("write a value, and let the option `jitter = \"10m\"` spread the ticks"),
            Kind::YearOfSix => out.text(
                "write 7 fields: second, minute, hour, day of month, month, day of week, year, as in `0 0 9 1 JAN ? 2030`",
            ),
            Kind::LoneLast => out.text("write `SAT` for Saturdays, or `FRIL` for the last Friday of a month"),
            Kind::LastOffset => out.text("write `L` for the last day, `LW` for the last workday, or a day such as `28`"),
            Kind::Nth => out.text("write for example `FRI#3` for the third Friday, or `FRIL` for the last"),
            Kind::BothDays(..) => out.text(
                "say `days = \"or\"` (either matches, as in crontab) or `days = \"and\"` (both must match), \
                 or write `*` in one of the two fields",
            ),
            Kind::NoSuchDay => out.text(
                "April, June, September and November have 30 days, February 28 or 29; \
                 `L` is the last day of every month",
            ),
            Kind::NeverMeet(Apart::Workday) => out.text("`W` and `LW` name days from Monday to Friday"),
            Kind::NeverMeet(Apart::Nth(nth, weekday)) => {
                let out = out.text("the ").text(NTH[nth as usize - 1]).text(" ").text(WEEKDAYS[weekday as usize]);
                let out = out.text(" of a month is one of its days ").number(nth as u64 * 7 - 6).text("-");
                out.number(if nth == 5 { 31 } else { nth as u64 * 7 })
            }
            Kind::NeverMeet(Apart::Last(weekday)) => out
                .text("the last ")
                .text(WEEKDAYS[weekday as usize])
                .text(" of a month is one of its last seven days"),
            Kind::NoSuchYear(year) => out
                .text("none of the listed years has such a date; ")
                .number(year as u64)
                .text(" has"),
        }
    }
}

impl Days {
    /// What is told of it beside an expression that has no use for it.
    pub(crate) const fn without_effect(expr: &str) -> Message {
        let mut out = Message::new();
        out.text("`days` has no effect: it says how two restricted day fields combine, and the expression restricts at most one")
            .picture(expr, 0, expr.len())
            .text("\nhelp: take `days` out, or restrict both day of month and day of week, as in `0 9 1-7 * MON`");
        out
    }
}

const fn range(out: &mut Message, min: u32, max: u32) -> &mut Message {
    pair(out.text(" is out of range "), min, max)
}

const fn pair(out: &mut Message, from: u32, to: u32) -> &mut Message {
    if from == to {
        out.number(from as u64)
    } else {
        out.number(from as u64).text("-").number(to as u64)
    }
}

/// Fields are separated by blanks, none of which stands at an end.
const fn has_five_fields(expr: &str) -> bool {
    let bytes = expr.as_bytes();
    let (mut blanks, mut i) = (0, 1);
    while i < bytes.len() {
        blanks += (is_blank(bytes[i]) && !is_blank(bytes[i - 1])) as usize;
        i += 1;
    }
    blanks == 4
}

/// Longer fields are not written out in names.
const MAX_NAMED: usize = 32;

/// In Unix numbers Monday is 1; in Quartz and in the `cron` crate, where 6 fields come from, it is 2 and 0 is no day.
const fn weekday_help<'a>(out: &'a mut Message, expr: &str, at: usize, len: usize) -> &'a mut Message {
    if len > MAX_NAMED {
        return out.text("write names: `MON-FRI`, `SUN,WED`");
    }
    let (out, zero) = named(out.text("write `"), expr, at, len, 0);
    if zero {
        return out.text("`");
    }
    let (out, _) = named(out.text("` if you count from Sunday = 0 (Unix), `"), expr, at, len, 1);
    out.text("` if from Sunday = 1 (Quartz)")
}

/// A day-of-week field with names for its digits, where Sunday is `first`; and whether there is a 0 among them.
const fn named<'a>(
    mut out: &'a mut Message,
    expr: &str,
    at: usize,
    len: usize,
    first: usize,
) -> (&'a mut Message, bool) {
    let bytes = expr.as_bytes();
    let (mut zero, mut i) = (false, at);
    while i < at + len {
        let byte = bytes[i];
        // A number that is a step or counts weekdays is no weekday, and of one that is too large nothing is known.
        let other = i > at && matches!(bytes[i - 1], b'/' | b'#' | b'0'..=b'9');
        let longer = i + 1 < at + len && bytes[i + 1].is_ascii_digit();
        out = if byte >= b'0' && byte <= b'7' && !other && !longer {
            zero |= byte == b'0';
            out.text(WEEKDAYS[((byte - b'0') as usize + 7 - first) % 7])
        } else {
            out.byte(byte);
            out
        };
        i += 1;
    }
    (out, zero)
}
