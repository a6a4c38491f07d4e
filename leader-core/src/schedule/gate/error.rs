//! Why an expression was refused, and what to write instead.

use super::Days;
use super::unit::{Unit, WEEKDAYS};
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
    WeekdayDigit(u32),
    LoneLast,
    LastOffset,
    Nth,
    /// Where the day-of-month field begins and how long it is.
    BothDays(usize, usize),
    Never,
}

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
        self.help(out.picture(expr, self.at, self.len).text("\nhelp: "));
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
            Kind::WeekdayDigit(_) => out
                .text("day of week ")
                .quoted(expr, at, len)
                .text(" means different days in different dialects with seconds"),
            Kind::LoneLast => out.text("day of week `L` does not say which weekday"),
            Kind::LastOffset => out
                .text("day of month ")
                .quoted(expr, at, len)
                .text(" counts from the end of the month"),
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
            Kind::Never => out
                .text("no date matches ")
                .quoted(expr, at, len)
                .text(": it would never fire"),
        }
    }

    const fn help<'a>(&self, out: &'a mut Message) -> &'a mut Message {
        match self.kind {
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
                out.text("write ").text(unit.values()).text(
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
            Kind::WeekdayDigit(day) => weekday_help(out, day),
            Kind::LoneLast => out.text("write `SAT` for Saturdays, or `FRIL` for the last Friday of a month"),
            Kind::LastOffset => out.text("write `L` for the last day, `LW` for the last workday, or a day such as `28`"),
            Kind::Nth => out.text("write for example `FRI#3` for the third Friday, or `FRIL` for the last"),
            Kind::BothDays(..) => out.text(
                "say `days = \"or\"` (either matches, as in crontab) or `days = \"and\"` (both must match), \
                 or write `*` in one of the two fields",
            ),
            Kind::Never => out.text(
                "April, June, September and November have 30 days, February 28 or 29; \
                 `L` is the last day of every month",
            ),
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

/// In Unix numbers Monday is 1; in Quartz and in the `cron` crate, where 6 fields come from, it is 2 and 0 is no day.
const fn weekday_help(out: &mut Message, day: u32) -> &mut Message {
    let unix = WEEKDAYS[(day % 7) as usize];
    let out = out.text("write `").text(unix);
    if day == 0 {
        return out.text("`");
    }
    out.text("` if you count from Sunday = 0 (Unix), `")
        .text(WEEKDAYS[day as usize - 1])
        .text("` if from Sunday = 1 (Quartz)")
}
