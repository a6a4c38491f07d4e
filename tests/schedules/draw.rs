//! Random expressions of the whole grammar.

use crate::choice::Choice;
use crate::oracle::Days;

const MONTHS: [&str; 12] = [
    "JAN", "FEB", "mar", "APR", "May", "JUN", "JUL", "AUG", "sep", "OCT", "NOV", "DEC",
];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "tue", "WED", "THU", "Fri", "SAT"];

/// A wall time near which fixed times are wanted, and the year of interest.
#[derive(Clone, Copy, Debug)]
pub struct Hot {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
}

/// An expression, how its day fields combine, and what kind of times it has.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub text: String,
    pub days: Days,
    pub kind: &'static str,
}

/// An expression; many name times around `hot`.
pub fn expression(choice: &mut Choice, hot: Hot) -> Drawn {
    if choice.chance(2) {
        let text = *choice.of(&[
            "@hourly",
            "@daily",
            "@midnight",
            "@weekly",
            "@monthly",
            "@yearly",
            "@annually",
        ]);
        return Drawn {
            text: text.to_owned(),
            days: Days::Unsaid,
            kind: "nickname",
        };
    }
    let fields = *choice.of(&[5, 5, 5, 5, 6, 6, 7]);
    let (second, time, kind) = time(choice, hot, fields > 5);
    let (day_of_month, month, day_of_week) = day(choice, hot, fields > 5);
    let restricted = [&day_of_month, &day_of_week]
        .iter()
        .all(|field| *field != "*" && *field != "?");
    let days = match (restricted, fields) {
        (true, 5) => *choice.of(&[Days::Unsaid, Days::Or, Days::And]),
        (true, _) => *choice.of(&[Days::Or, Days::And]),
        (false, _) => *choice.of(&[Days::Unsaid, Days::Unsaid, Days::Or, Days::And]),
    };
    let mut text = format!("{time} {day_of_month} {month} {day_of_week}");
    if fields > 5 {
        text = format!("{second} {text}");
    }
    if fields == 7 {
        text = format!("{text} {}", year(choice, hot));
    }
    Drawn { text, days, kind }
}

/// Second, and minute with hour.
fn time(choice: &mut Choice, hot: Hot, seconds: bool) -> (String, String, &'static str) {
    let hour = |choice: &mut Choice| {
        if choice.chance(50) {
            (hot.hour + choice.within(-2..=2)).rem_euclid(24)
        } else {
            choice.within(0..=23)
        }
    };
    let minute = |choice: &mut Choice| match choice.below(4) {
        0 => 0,
        1 => (hot.minute + choice.within(-1..=1)).rem_euclid(60),
        2 => *choice.of(&[15, 30, 45, 59]),
        _ => choice.within(0..=59),
    };
    let (h, m) = if choice.chance(70) {
        (hot.hour, hot.minute)
    } else {
        (hour(choice), minute(choice))
    };
    let (time, kind) = match choice.below(19) {
        0 | 1 | 16 | 17 => (format!("{m} {h}"), "one time"),
        2 | 18 => (format!("{m} {h},{}", (h + choice.within(1..=23)) % 24), "hours listed"),
        3 => (format!("{m},{} {h}", minute(choice)), "minutes listed"),
        4 => ("0 0".to_owned(), "midnight"),
        5 => (format!("* {h}"), "every minute of an hour"),
        6 => (format!("0-59 {h}"), "each minute of an hour, fixed"),
        7 => (
            format!("0-59/{} {}-{}", choice.within(5..=40), (h - 1).max(0), (h + 2).min(23)),
            "ranges, fixed",
        ),
        8 => {
            let step = *choice.of(&[2, 5, 7, 15, 20, 30]);
            (format!("*/{step} *"), "every few minutes")
        }
        9 => (
            format!("*/{} {h}", *choice.of(&[5, 10, 15, 30])),
            "every few minutes of an hour",
        ),
        10 => (format!("{m} */{}", choice.within(2..=13)), "every few hours"),
        11 => (format!("{m} *"), "every hour"),
        12 => {
            let step = choice.within(1..=5);
            (format!("{m} {}-23/{step}", h % step), "hours in steps, fixed")
        }
        13 => (format!("{},{m} *", choice.within(0..=59)), "twice an hour"),
        14 => (format!("{} {}", field(choice, 0, 59), field(choice, 0, 23)), "anything"),
        _ => ("* *".to_owned(), "every minute"),
    };
    if !seconds {
        return (String::new(), time, kind);
    }
    let second = match choice.below(9) {
        0..=2 => "0".to_owned(),
        3 => choice.within(0..=59).to_string(),
        4 => format!("{},59", choice.within(0..=58)),
        5 => "*".to_owned(),
        6 => format!("*/{}", choice.within(2..=59)),
        7 => format!("0-59/{}", choice.within(1..=30)),
        _ => field(choice, 0, 59),
    };
    (second, time, kind)
}

/// Day of month, month, day of week.
fn day(choice: &mut Choice, hot: Hot, names: bool) -> (String, String, String) {
    if choice.chance(60) {
        let star = |choice: &mut Choice| (*choice.of(&["*", "*", "?"])).to_owned();
        return (star(choice), "*".to_owned(), star(choice));
    }
    let day_of_month = match choice.below(20) {
        0..=9 => "*".to_owned(),
        10 => "?".to_owned(),
        11 => choice.within(1..=31).to_string(),
        12 => hot.day.to_string(),
        13 => "L".to_owned(),
        14 => "LW".to_owned(),
        15 => format!("{}W", choice.within(1..=31)),
        16 => format!("*/{}", choice.within(2..=31)),
        17 => format!("{},{}W,L", choice.within(1..=31), choice.within(1..=31)),
        18 => format!("{},{}", hot.day, field(choice, 1, 31)),
        _ => field(choice, 1, 31),
    };
    let month = match choice.below(12) {
        0..=7 => "*".to_owned(),
        8 => hot.month.to_string(),
        9 => (*choice.of(&MONTHS)).to_owned(),
        10 => {
            let first = choice.below(12);
            format!("{}-{}", MONTHS[first], MONTHS[first + choice.below(12 - first)])
        }
        _ => field(choice, 1, 12),
    };
    let weekday = |choice: &mut Choice| {
        if names || choice.chance(50) {
            (*choice.of(&WEEKDAYS)).to_owned()
        } else {
            choice.within(0..=7).to_string()
        }
    };
    let day_of_week = match choice.below(20) {
        0..=9 => "*".to_owned(),
        10 => "?".to_owned(),
        11 | 12 => weekday(choice),
        13 => format!("{},{}", weekday(choice), weekday(choice)),
        14 | 15 => format!("{}-{}", weekday(choice), weekday(choice)),
        16 => format!("{}-{}/{}", weekday(choice), weekday(choice), choice.within(2..=4)),
        17 => format!("{}L", weekday(choice)),
        18 => format!("{}#{}", weekday(choice), choice.within(1..=5)),
        _ => format!(
            "{}#{},{}L,{}",
            weekday(choice),
            choice.within(1..=5),
            weekday(choice),
            weekday(choice)
        ),
    };
    (day_of_month, month, day_of_week)
}

fn year(choice: &mut Choice, hot: Hot) -> String {
    let year = hot.year.clamp(1970, 2100);
    match choice.below(8) {
        0..=2 => "*".to_owned(),
        3 => year.to_string(),
        4 => format!(
            "{}-{}",
            (year - choice.within(0..=5)).max(1970),
            (year + choice.within(0..=5)).min(2100)
        ),
        5 => format!("*/{}", choice.within(1..=7)),
        6 => format!("1970-2100/{}", choice.within(1..=5)),
        _ => format!("{year},{}", choice.within(1970..=2100)),
    }
}

/// A list of values, ranges and steps.
fn field(choice: &mut Choice, min: i64, max: i64) -> String {
    let count = *choice.of(&[1, 1, 2, 3]);
    let items: Vec<_> = (0..count)
        .map(|_| {
            let first = choice.within(min..=max);
            let last = choice.within(first..=max);
            let step = choice.within(1..=max);
            match choice.below(10) {
                0 => "*".to_owned(),
                1 => format!("*/{step}"),
                2 => format!("{first}/{step}"),
                3 | 4 => format!("{first}-{last}"),
                5 => format!("{first}-{last}/{step}"),
                _ => first.to_string(),
            }
        })
        .collect();
    items.join(",")
}
