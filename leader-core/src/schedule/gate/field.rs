//! One field of an expression: a comma-separated list of values, ranges, steps and, for days, of `L`, `W` and `#`.

use super::error::{CronError, Kind};
use super::unit::{FIRST_YEAR, LAST_YEAR, MONTHS, Unit, WEEKDAYS};

/// `?` is not yet usable in a `const fn`.
macro_rules! tri {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Err(error),
        }
    };
}
pub(super) use tri;

/// What a field allows.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Field {
    /// Bit `value`, for years `value - FIRST_YEAR`.
    pub(super) bits: [u64; 3],
    /// The field is exactly `*` (or `?`).
    pub(super) star: bool,
    /// A `*` occurs, with or without a step.
    pub(super) wild: bool,
    /// `L`: the last day of the month.
    pub(super) last_day: bool,
    /// `LW`: the last Monday to Friday of the month.
    pub(super) last_workday: bool,
    /// `15W`: bit 15.
    pub(super) nearest: u32,
    /// `FRIL`: bit 5.
    pub(super) last_weekdays: u8,
    /// `FRI#3`: bit 5 of element 2.
    pub(super) nth: [u8; 5],
}

impl Field {
    pub(super) const NONE: Self = Self {
        bits: [0; 3],
        star: false,
        wild: false,
        last_day: false,
        last_workday: false,
        nearest: 0,
        last_weekdays: 0,
        nth: [0; 5],
    };
}

/// The bytes `from..to` of an expression.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Part<'_> {
    const fn cut(self, from: usize, to: usize) -> Self {
        Self { from, to, ..self }
    }

    pub(super) const fn len(self) -> usize {
        self.to - self.from
    }

    pub(super) const fn at(self, i: usize) -> u8 {
        self.bytes[self.from + i]
    }

    const fn last(self) -> u8 {
        self.bytes[self.to - 1]
    }

    /// The position of `byte`, or the end.
    const fn find(self, byte: u8) -> usize {
        let mut i = self.from;
        while i < self.to && self.bytes[i] != byte {
            i += 1;
        }
        i
    }

    /// Equal to `word` in any ASCII case.
    pub(super) const fn is(self, word: &str) -> bool {
        self.len() == word.len() && self.starts(word)
    }

    /// Begins with `word` in any ASCII case.
    pub(super) const fn starts(self, word: &str) -> bool {
        let word = word.as_bytes();
        if self.len() < word.len() {
            return false;
        }
        let mut i = 0;
        while i < word.len() {
            if !self.at(i).eq_ignore_ascii_case(&word[i]) {
                return false;
            }
            i += 1;
        }
        true
    }

    /// The field that this is a part of.
    const fn field(self) -> Self {
        let (mut from, mut to) = (self.from, self.to);
        while from > 0 && !super::is_blank(self.bytes[from - 1]) {
            from -= 1;
        }
        while to < self.bytes.len() && !super::is_blank(self.bytes[to]) {
            to += 1;
        }
        self.cut(from, to)
    }

    /// Whether it begins with a year.
    pub(super) const fn is_year(self) -> bool {
        let mut to = self.from;
        while to < self.to && self.bytes[to].is_ascii_digit() {
            to += 1;
        }
        match self.cut(self.from, to).number() {
            Some(year) => year >= FIRST_YEAR && year <= LAST_YEAR,
            None => false,
        }
    }

    /// `H`, `H/5`, `H(0-29)`.
    const fn is_hashed(self) -> bool {
        self.starts("H") && (self.len() == 1 || matches!(self.at(1), b'/' | b'('))
    }

    pub(super) const fn error(self, kind: Kind) -> CronError {
        CronError::new(self.from, self.to, kind)
    }

    /// Decimal digits as a number, saturating; `None` for anything else.
    const fn number(self) -> Option<u32> {
        if self.from == self.to {
            return None;
        }
        let mut value: u32 = 0;
        let mut i = self.from;
        while i < self.to {
            let byte = self.bytes[i];
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value.saturating_mul(10).saturating_add((byte - b'0') as u32);
            i += 1;
        }
        Some(value)
    }

    const fn is_word(self) -> bool {
        let mut i = self.from;
        while i < self.to {
            if !self.bytes[i].is_ascii_alphanumeric() {
                return false;
            }
            i += 1;
        }
        self.from < self.to
    }
}

/// Reads one field. With `names_only` digits are refused as weekdays.
pub(super) const fn parse(field: Part<'_>, unit: Unit, names_only: bool) -> Result<Field, CronError> {
    let mut out = Field::NONE;
    let mut from = field.from;
    loop {
        let to = field.cut(from, field.to).find(b',');
        let item = field.cut(from, to);
        if item.len() == 0 {
            return Err(item.error(Kind::EmptyItem(unit)));
        }
        tri!(parse_item(item, field, unit, names_only, &mut out));
        if to == field.to {
            return Ok(out);
        }
        from = to + 1;
    }
}

const fn parse_item(
    item: Part<'_>,
    field: Part<'_>,
    unit: Unit,
    names_only: bool,
    out: &mut Field,
) -> Result<(), CronError> {
    if item.is_hashed() {
        return Err(item.error(Kind::Hashed(unit)));
    }
    let slash = item.find(b'/');
    let base = item.cut(item.from, slash);
    let stepped = slash < item.to;
    let alone = item.len() == field.len() && !stepped;
    if base.find(b'?') < base.to {
        if base.len() == 1 && alone && unit.is_day() {
            out.star = true;
            fill(out, unit, unit.min(), unit.last(), 1);
            return Ok(());
        }
        return Err(item.error(Kind::Question));
    }
    let step = if stepped {
        let step = item.cut(slash + 1, item.to);
        match step.number() {
            Some(n) if n >= 1 && n <= unit.max_step() => n,
            Some(_) => return Err(step.error(Kind::Step(unit))),
            None => return Err(item.error(Kind::Unreadable(unit))),
        }
    } else {
        if tri!(parse_special(base, unit, names_only, out)) {
            return Ok(());
        }
        1
    };
    if base.is("*") {
        out.wild = true;
        out.star = alone;
        fill(out, unit, unit.min(), unit.last(), step);
        return Ok(());
    }
    let dash = base.find(b'-');
    let low = base.cut(base.from, dash);
    let start = tri!(value(low, item, unit, names_only));
    if dash == base.to {
        // `7` is Sunday, and so is the start of `7/2`.
        let start = match unit {
            Unit::DayOfWeek => start % 7,
            _ => start,
        };
        let end = if stepped { unit.last() } else { start };
        fill(out, unit, start, end, step);
        return Ok(());
    }
    let end = tri!(value(base.cut(dash + 1, base.to), item, unit, names_only));
    if !matches!(unit, Unit::DayOfWeek) {
        if start > end {
            return Err(base.error(Kind::Backwards(unit, start, end)));
        }
        fill(out, unit, start, end, step);
        return Ok(());
    }
    let (start, end) = match (start, end) {
        (7, 7) => (0, 0),
        (7, end) => (0, end),
        (start, end) if start > end => (start, end + 7),
        both => both,
    };
    fill(out, unit, start, end, step);
    Ok(())
}

/// `L`, `LW`, `15W`, `FRIL`, `FRI#3`; false when `base` is none of them.
const fn parse_special(base: Part<'_>, unit: Unit, names_only: bool, out: &mut Field) -> Result<bool, CronError> {
    if base.len() == 0 {
        return Ok(false);
    }
    match unit {
        Unit::DayOfMonth => {
            if base.is("L") {
                out.last_day = true;
            } else if base.is("LW") {
                out.last_workday = true;
            } else if base.starts("L-") {
                return Err(base.error(Kind::LastOffset));
            } else if base.last().eq_ignore_ascii_case(&b'W') {
                let day = tri!(value(base.cut(base.from, base.to - 1), base, unit, names_only));
                out.nearest |= 1 << day;
            } else {
                return Ok(false);
            }
        }
        Unit::DayOfWeek => {
            let hash = base.find(b'#');
            if base.is("L") {
                return Err(base.error(Kind::LoneLast));
            } else if hash < base.to {
                let day = tri!(value(base.cut(base.from, hash), base, unit, names_only));
                let nth = base.cut(hash + 1, base.to);
                match nth.number() {
                    Some(n) if n >= 1 && n <= 5 => out.nth[n as usize - 1] |= 1 << (day % 7),
                    Some(_) => return Err(nth.error(Kind::Nth)),
                    None => return Err(base.error(Kind::Unreadable(unit))),
                }
            } else if base.last().eq_ignore_ascii_case(&b'L') {
                let day = tri!(value(base.cut(base.from, base.to - 1), base, unit, names_only));
                out.last_weekdays |= 1 << (day % 7);
            } else {
                return Ok(false);
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A number or a name; `item` is what an unreadable one is reported as.
const fn value(word: Part<'_>, item: Part<'_>, unit: Unit, names_only: bool) -> Result<u32, CronError> {
    if let Some(number) = word.number() {
        if number < unit.min() || number > unit.max() {
            return Err(word.error(Kind::OutOfRange(unit)));
        }
        if matches!(unit, Unit::DayOfWeek) && names_only {
            // All of the field is told in names.
            return Err(word.field().error(Kind::WeekdayDigits));
        }
        return Ok(number);
    }
    let (names, first): (&[&str], u32) = match unit {
        Unit::Month => (&MONTHS, 1),
        Unit::DayOfWeek => (&WEEKDAYS, 0),
        _ => (&[], 0),
    };
    let mut value = first;
    let mut i = 0;
    while i < names.len() {
        if word.is(names[i]) {
            return Ok(value);
        }
        value += 1;
        i += 1;
    }
    if word.is_word() {
        Err(word.error(Kind::Name(unit)))
    } else {
        Err(item.error(Kind::Unreadable(unit)))
    }
}

const fn fill(out: &mut Field, unit: Unit, start: u32, end: u32, step: u32) {
    let mut value = start;
    while value <= end {
        let bit = match unit {
            Unit::DayOfWeek => value % 7,
            Unit::Year => value - FIRST_YEAR,
            _ => value,
        };
        out.bits[(bit / 64) as usize] |= 1 << (bit % 64);
        value += step;
    }
}
