//! What the gate accepts, and what it says of what it refuses.

use proptest::prelude::*;

use super::*;

fn parse(expr: &str) -> Cron {
    match Cron::read(expr, Days::Unsaid) {
        Ok(cron) => cron,
        Err(error) => panic!("{}", error.message(expr)),
    }
}

/// The message between the common beginning and the help.
fn refusal(expr: &str) -> (String, String) {
    let error = Cron::read(expr, Days::Unsaid).unwrap_err();
    let message = error.message(expr).to_string();
    let rest = message
        .strip_prefix("invalid cron expression: ")
        .expect("every message begins alike");
    let (rest, help) = rest.split_once("\nhelp: ").expect("every message has a way out");
    (rest.to_owned(), help.to_owned())
}

fn bits(values: impl IntoIterator<Item = u32>) -> u64 {
    values.into_iter().fold(0, |set, value| set | 1 << value)
}

#[test]
fn fields_become_bit_sets() {
    for (field, minutes) in [
        ("*", bits(0..60)),
        ("0", bits([0])),
        ("05", bits([5])),
        ("1,3,5", bits([1, 3, 5])),
        ("10-13", bits(10..=13)),
        ("*/20", bits([0, 20, 40])),
        ("*/59", bits([0, 59])),
        ("10-50/7", bits([10, 17, 24, 31, 38, 45])),
        ("5/15", bits([5, 20, 35, 50])),
        ("59,0-2,*/30", bits([59, 0, 1, 2, 30])),
        ("7-7", bits([7])),
    ] {
        let cron = parse(&format!("{field} * * * *"));
        assert_eq!(cron.minute, minutes, "{field}");
        assert_eq!(cron.second, 1);
    }
    for (field, months) in [
        ("JAN", bits([1])),
        ("jan-Mar", bits([1, 2, 3])),
        ("2/5", bits([2, 7, 12])),
        ("OCT/2", bits([10, 12])),
        ("Feb,11", bits([2, 11])),
    ] {
        let cron = parse(&format!("0 0 1 {field} *"));
        assert_eq!(u64::from(cron.month), months, "{field}");
    }
    let cron = parse("1-2 3 4 ? DEC mon 1970,2098-2100");
    assert_eq!((cron.second, cron.minute, cron.hour), (0b110, 8, 16));
    assert_eq!(cron.year, [1, 0, 0b111]);
    assert!(parse("0 0 0 * * *").every_year());
}

/// Monday is 1 in crontab(5) and 2 in Quartz and in the `cron` crate.
#[test]
fn case_56_weekdays_are_unix_numbers() {
    for (field, days) in [
        ("0", bits([0])),
        ("7", bits([0])),
        ("SUN", bits([0])),
        ("7-7", bits([0])),
        ("1-5", bits(1..=5)),
        ("MON-FRI", bits(1..=5)),
        ("5-7", bits([5, 6, 0])),
        ("0-7", bits(0..=6)),
        ("7-2", bits([0, 1, 2])),
        ("FRI-MON", bits([5, 6, 0, 1])),
        ("fri-sun", bits([5, 6, 0])),
        ("6-2", bits([6, 0, 1, 2])),
        ("FRI-MON/2", bits([5, 0])),
        ("*/2", bits([0, 2, 4, 6])),
        ("1/3", bits([1, 4])),
        ("7/2", bits([0, 2, 4, 6])),
        ("MON,WED,5", bits([1, 3, 5])),
    ] {
        let cron = parse(&format!("0 17 * * {field}"));
        assert_eq!(u64::from(cron.day_of_week), days, "{field}");
    }
    let both = |unix: &str, quartz: &str| {
        format!("write `{unix}` if you count from Sunday = 0 (Unix), `{quartz}` if from Sunday = 1 (Quartz)")
    };
    for (field, help) in [
        ("5", both("FRI", "THU")),
        ("1-5", both("MON-FRI", "SUN-THU")),
        ("MON-7", both("MON-SUN", "MON-SAT")),
        ("1,3,5", both("MON,WED,FRI", "SUN,TUE,THU")),
        ("1-5/2", both("MON-FRI/2", "SUN-THU/2")),
        ("5L", both("FRIL", "THUL")),
        ("5#3", both("FRI#3", "THU#3")),
        ("1,12", both("MON,12", "SUN,12")),
        ("0", "write `SUN`".to_owned()),
        ("0-4", "write `SUN-THU`".to_owned()),
        (
            "1,2,3,4,5,1,2,3,4,5,1,2,3,4,5,1,2",
            "write names: `MON-FRI`, `SUN,WED`".to_owned(),
        ),
    ] {
        for year in ["", " 2030"] {
            let (message, told) = refusal(&format!("0 0 13 * * {field}{year}"));
            assert_eq!(told, help);
            let carets = format!("\n{}{}", " ".repeat(13), "^".repeat(field.len()));
            assert!(
                message.starts_with("day of week `") && message.ends_with(&carets),
                "{message}"
            );
        }
    }
}

#[test]
fn case_57_impossible_dates_are_refused_quickly() {
    for expr in [
        "0 0 31 2 *",
        "0 0 30 2 *",
        "0 0 30,31 FEB *",
        "0 0 31 4,6,9,11 *",
        "0 0 31 4,6 *",
        "0 0 0 30 2 ?",
        "0 0 31W APR *",
        "0 0 0 29 FEB ? 2027",
        "0 0 0 29 FEB ? 2100",
        "0 0 0 29 FEB ? 2025-2027,2029",
    ] {
        let (message, _) = refusal(expr);
        assert!(message.starts_with("no date matches"), "{message}");
    }
    for expr in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 31 */2 *", "0 0 0 29 FEB ? 2027-2028"] {
        parse(expr);
    }
    // Together with a weekday only one of the two needs to exist, unless both must match.
    parse("0 0 31 2 1");
    for (expr, possible) in [
        ("0 0 31 2 1", false),
        ("0 0 15W * SUN", false),
        ("0 0 1-7 * FRI#2", false),
        ("0 0 29 2 MON", true),
        ("0 0 29 2 MON#5", true),
        ("0 0 L * FRIL", true),
    ] {
        assert_eq!(Cron::read(expr, Days::And).is_ok(), possible, "{expr}");
    }
}

#[test]
fn an_impossible_date_is_told_by_its_kind() {
    let days =
        "April, June, September and November have 30 days, February 28 or 29; `L` is the last day of every month";
    let workdays = "`W` and `LW` name days from Monday to Friday";
    let nth = |what: &str, days: &str| format!("the {what} of a month is one of its days {days}");
    let last = "the last FRI of a month is one of its last seven days".to_owned();
    let year = |year: u32| format!("none of the listed years has such a date; {year} has");
    for (expr, help) in [
        ("0 0 31 2 *", days.to_owned()),
        ("0 0 31W 4,6 *", days.to_owned()),
        ("0 0 30 2 MON#2", days.to_owned()),
        ("0 0 0 30 2 ? 2028", days.to_owned()),
        ("0 0 15W * SUN", workdays.to_owned()),
        ("0 0 LW * SAT#5", workdays.to_owned()),
        ("0 0 1-7 * MON#2", nth("second MON", "8-14")),
        ("0 0 L * FRI#1", nth("first FRI", "1-7")),
        ("0 0 1 * WED#5,TUE#5", nth("fifth TUE", "29-31")),
        ("0 0 0 1-7 * MON#3 2027", nth("third MON", "15-21")),
        ("0 0 1-21 * FRIL", last),
        ("0 0 0 29 FEB ? 2027", year(2028)),
        ("0 0 0 29 FEB ? 2025-2027,2029", year(2028)),
        ("0 0 0 29 FEB ? 2100", year(1972)),
        ("0 0 0 29 FEB MON 2028", year(2044)),
        ("0 0 0 ? FEB FRI#5 2027", year(2036)),
    ] {
        let error = Cron::read(expr, Days::And).unwrap_err();
        let message = error.message(expr).to_string();
        assert!(message.ends_with(&format!("\nhelp: {help}")), "{message}");
        assert!(message.contains("no date matches"), "{message}");
    }
}

#[test]
fn case_59_two_restricted_day_fields_follow_one_rule() {
    for (expr, days) in [
        ("0 0 13 * 5", Days::Or),
        ("0 0 */2 * 1", Days::Or),
        ("0 9 1-31 * 1", Days::Or),
        ("0 0 */2 * *", Days::Unsaid),
        ("0 0 * * */2", Days::Unsaid),
        ("0 0 ? * 1", Days::Unsaid),
        ("0 0 1 * ?", Days::Unsaid),
        ("0 0 0 * * MON", Days::Unsaid),
    ] {
        assert_eq!(parse(expr).days(), days, "{expr}");
    }
    for days in [Days::Or, Days::And] {
        for expr in ["0 0 13 * 5", "0 0 0 13 * FRI", "0 0 0 13 * FRI 2030-2040"] {
            assert_eq!(Cron::read(expr, days).unwrap().days(), days);
        }
        // It means nothing where it is not needed.
        assert_eq!(Cron::read("0 0 13 * *", days), Ok(parse("0 0 13 * *")));
    }
    assert_eq!(
        refusal("0 0 9 1,15 * MON"),
        (
            "day of month `1,15` and day of week `MON` are both restricted\n  0 0 9 1,15 * MON\n               ^^^".to_owned(),
            "say `days = \"or\"` (either matches, as in crontab) or `days = \"and\"` (both must match), or write `*` in one of the two fields".to_owned()
        )
    );
}

#[test]
fn a_star_in_a_time_field_is_wild() {
    for (expr, wild) in [
        ("30 2 * * *", false),
        ("30 2,14 * * *", false),
        ("0-30/10 2 * * *", false),
        ("30 */2 * * *", true),
        ("* 2 * * *", true),
        ("5,*/20 2 * * *", true),
        ("* 30 2 * * *", true),
        ("@daily", false),
        ("@hourly", true),
    ] {
        assert_eq!(parse(expr).is_wild(), wild, "{expr}");
    }
}

#[test]
fn nicknames_are_those_of_crontab() {
    for (name, expr) in [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@Daily", "0 0 * * *"),
    ] {
        assert_eq!(parse(name), parse(expr));
    }
}

const REFUSALS: &[(&str, &str)] = &[
    ("", "it is empty\n  \n  ^"),
    (" ", "it is empty\n   \n  ^"),
    (
        " 0 0 * * *",
        "a blank stands before the first or after the last field\n   0 0 * * *\n  ^",
    ),
    (
        "0 0 * * * ",
        "a blank stands before the first or after the last field\n  0 0 * * * \n           ^",
    ),
    ("0 0 * *", "it has 4 fields\n  0 0 * *\n  ^^^^^^^"),
    ("*", "it has 1 field\n  *\n  ^"),
    (
        "* * * * * * * *",
        "it has 8 fields\n  * * * * * * * *\n  ^^^^^^^^^^^^^^^",
    ),
    ("******", "it has 1 field\n  ******\n  ^^^^^^"),
    (
        "0 0 * * ü",
        "a character is not printable ASCII\n  0 0 * * ü\n          ^",
    ),
    (
        "0 0 * ſep *",
        "a character is not printable ASCII\n  0 0 * ſep *\n        ^",
    ),
    ("0 0\n* * *", "a character is not printable ASCII\n  0 0\n* * *\n     ^"),
    (
        "TZ=UTC 0 0 * * *",
        "a time zone does not belong into the expression\n  TZ=UTC 0 0 * * *\n  ^^^^^^",
    ),
    (
        "CRON_TZ=UTC 0 0 * * *",
        "a time zone does not belong into the expression\n  CRON_TZ=UTC 0 0 * * *\n  ^^^^^^^^^^^",
    ),
    (
        "@reboot",
        "`@reboot` is not a schedule of this grammar\n  @reboot\n  ^^^^^^^",
    ),
    (
        "@every 5m",
        "`@every` is not a schedule of this grammar\n  @every 5m\n  ^^^^^^",
    ),
    (
        "@daily 5",
        "`@daily 5` is not a schedule of this grammar\n  @daily 5\n  ^^^^^^^^",
    ),
    ("@", "`@` is not a schedule of this grammar\n  @\n  ^"),
    ("75 * * * *", "minute `75` is out of range 0-59\n  75 * * * *\n  ^^"),
    ("60 * * * * *", "second `60` is out of range 0-59\n  60 * * * * *\n  ^^"),
    ("0 24 * * *", "hour `24` is out of range 0-23\n  0 24 * * *\n    ^^"),
    (
        "0 0 0 * *",
        "day of month `0` is out of range 1-31\n  0 0 0 * *\n      ^",
    ),
    (
        "0 0 1-32 * *",
        "day of month `32` is out of range 1-31\n  0 0 1-32 * *\n        ^^",
    ),
    ("0 0 * 0 *", "month `0` is out of range 1-12\n  0 0 * 0 *\n        ^"),
    (
        "0 0 * * 8",
        "day of week `8` is out of range 0-7\n  0 0 * * 8\n          ^",
    ),
    (
        "0 0 0 * * ? 1969",
        "year `1969` is out of range 1970-2100\n  0 0 0 * * ? 1969\n              ^^^^",
    ),
    (
        "0 0 0 * * ? 2101",
        "year `2101` is out of range 1970-2100\n  0 0 0 * * ? 2101\n              ^^^^",
    ),
    (
        "99999999999999999999 * * * *",
        "minute `99999999999999999999` is out of range 0-59\n  99999999999999999999 * * * *\n  ^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "0000000000000000000000000075 * * * *",
        "minute `000000000000000000000000…` is out of range 0-59\n  0000000000000000000000000075 * * * *\n  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "*/0 * * * *",
        "minute step `0` is out of range 1-59\n  */0 * * * *\n    ^",
    ),
    (
        "*/60 * * * *",
        "minute step `60` is out of range 1-59\n  */60 * * * *\n    ^^",
    ),
    (
        "0 */24 * * *",
        "hour step `24` is out of range 1-23\n  0 */24 * * *\n      ^^",
    ),
    (
        "0 22-6 * * *",
        "hour range `22-6` runs backwards\n  0 22-6 * * *\n    ^^^^",
    ),
    (
        "0 0 1 NOV-FEB *",
        "month range `NOV-FEB` runs backwards\n  0 0 1 NOV-FEB *\n        ^^^^^^^",
    ),
    ("1,,3 * * * *", "minute has an empty list item\n  1,,3 * * * *\n    ^"),
    ("1, * * * *", "minute has an empty list item\n  1, * * * *\n    ^"),
    (", * * * *", "minute has an empty list item\n  , * * * *\n  ^"),
    ("/5 * * * *", "minute `/5` cannot be read\n  /5 * * * *\n  ^^"),
    ("5/ * * * *", "minute `5/` cannot be read\n  5/ * * * *\n  ^^"),
    ("*/x * * * *", "minute `*/x` cannot be read\n  */x * * * *\n  ^^^"),
    (
        "1-2-3 * * * *",
        "minute `1-2-3` cannot be read\n  1-2-3 * * * *\n  ^^^^^",
    ),
    ("-5 * * * *", "minute `-5` cannot be read\n  -5 * * * *\n  ^^"),
    ("5- * * * *", "minute `5-` cannot be read\n  5- * * * *\n  ^^"),
    ("*-5 * * * *", "minute `*-5` cannot be read\n  *-5 * * * *\n  ^^^"),
    ("** * * * *", "minute `**` cannot be read\n  ** * * * *\n  ^^"),
    ("+5 * * * *", "minute `+5` cannot be read\n  +5 * * * *\n  ^^"),
    (
        "H * * * *",
        "minute `H` leaves the value to chance, as Jenkins does, and is not of this grammar\n  H * * * *\n  ^",
    ),
    (
        "0 H(0-7)/2 * * *",
        "hour `H(0-7)/2` leaves the value to chance, as Jenkins does, and is not of this grammar\n  0 H(0-7)/2 * * *\n    ^^^^^^^^",
    ),
    (
        "30 14 25 12 * 2030",
        "day of week `2030` is a year, and the year is the seventh field\n  30 14 25 12 * 2030\n                ^^^^",
    ),
    (
        "0 0 9 * * 1970-2100",
        "day of week `1970-2100` is a year, and the year is the seventh field\n  0 0 9 * * 1970-2100\n            ^^^^^^^^^",
    ),
    (
        "0 0 9 * * 2101",
        "day of week `2101` is out of range 0-7\n  0 0 9 * * 2101\n            ^^^^",
    ),
    (
        "every 5 minutes",
        "`every` is not a schedule of this grammar\n  every 5 minutes\n  ^^^^^",
    ),
    (
        "0 FEB * * *",
        "hour `FEB` is not a name of this field\n  0 FEB * * *\n    ^^^",
    ),
    (
        "0 0 1 JANFEB *",
        "month `JANFEB` is not a name of this field\n  0 0 1 JANFEB *\n        ^^^^^^",
    ),
    (
        "0 0 1 MON *",
        "month `MON` is not a name of this field\n  0 0 1 MON *\n        ^^^",
    ),
    (
        "0 0 * * MONDAY",
        "day of week `MONDAY` is not a name of this field\n  0 0 * * MONDAY\n          ^^^^^^",
    ),
    (
        "0 0 12 * * MON2030",
        "day of week `MON2030` is not a name of this field\n  0 0 12 * * MON2030\n             ^^^^^^^",
    ),
    (
        "? * * * *",
        "`?` is misplaced: `?` stands alone in a day field\n  ? * * * *\n  ^",
    ),
    (
        "0 0 ?,5 * *",
        "`?` is misplaced: `?` stands alone in a day field\n  0 0 ?,5 * *\n      ^",
    ),
    (
        "0 0 ?/2 * *",
        "`?/2` is misplaced: `?` stands alone in a day field\n  0 0 ?/2 * *\n      ^^^",
    ),
    (
        "0 0 * * L",
        "day of week `L` does not say which weekday\n  0 0 * * L\n          ^",
    ),
    (
        "0 0 L-3 * *",
        "day of month `L-3` counts from the end of the month, which is not supported\n  0 0 L-3 * *\n      ^^^",
    ),
    (
        "0 0 L/2 * *",
        "day of month `L` is not a name of this field\n  0 0 L/2 * *\n      ^",
    ),
    (
        "0 0 32W * *",
        "day of month `32` is out of range 1-31\n  0 0 32W * *\n      ^^",
    ),
    ("0 0 W * *", "day of month `W` cannot be read\n  0 0 W * *\n      ^"),
    (
        "0 0 1-15W * *",
        "day of month `1-15W` cannot be read\n  0 0 1-15W * *\n      ^^^^^",
    ),
    (
        "0 0 * * FRI#6",
        "the weekday's number in the month `6` is out of range 1-5\n  0 0 * * FRI#6\n              ^",
    ),
    (
        "0 0 * * FRI#",
        "day of week `FRI#` cannot be read\n  0 0 * * FRI#\n          ^^^^",
    ),
    (
        "0 0 * * #3",
        "day of week `#3` cannot be read\n  0 0 * * #3\n          ^^",
    ),
    (
        "0 0 * * FRIL/2",
        "day of week `FRIL` is not a name of this field\n  0 0 * * FRIL/2\n          ^^^^",
    ),
    ("0 L * * *", "hour `L` is not a name of this field\n  0 L * * *\n    ^"),
    (
        "0 0 31 2 *",
        "no date matches `31 2`: it would never fire\n  0 0 31 2 *\n      ^^^^",
    ),
    (
        "0 0 0 29 FEB ? 2027",
        "no date matches `29 FEB ? 2027`: it would never fire\n  0 0 0 29 FEB ? 2027\n        ^^^^^^^^^^^^^",
    ),
];

#[test]
fn refusals_point_at_the_fault() {
    for (expr, message) in REFUSALS {
        assert_eq!(refusal(expr).0, *message);
    }
}

#[test]
fn every_refusal_says_what_to_write() {
    for (expr, help) in [
        ("0 22-6 * * *", "only weekdays wrap around; write `22-23,0-6`"),
        ("0 23-0 * * *", "only weekdays wrap around; write `23,0`"),
        (
            "75 * * * *",
            "write 0-59, a range `a-b`, a step `*/n`, `a-b/n` or `a/n`, or a list of these",
        ),
        (
            "0 0 * * L",
            "write `SAT` for Saturdays, or `FRIL` for the last Friday of a month",
        ),
        ("@every 5m", "use the option `every = \"5m\"` in place of `cron`"),
        ("every 5m", "use the option `every = \"5m\"` in place of `cron`"),
        (
            "0 9 * * 8",
            "write 0-7 (0 and 7 are Sunday), SUN to SAT (three letters), `FRIL`, `FRI#3`, a range `a-b`, a step `*/n`, `a-b/n` or `a/n`, \
             or a list of these",
        ),
        (
            "0 0 9 * * MONDAY",
            "write SUN to SAT (three letters), `FRIL`, `FRI#3`, a range `a-b`, a step `*/n`, `a-b/n` or `a/n`, or a list of these",
        ),
        (
            "H 9 * * *",
            "write a value, and let the option `jitter = \"10m\"` spread the ticks",
        ),
        (
            "0 9 1 1 * 2030",
            "write 7 fields: second, minute, hour, day of month, month, day of week, year, as in `0 0 9 1 JAN ? 2030`",
        ),
    ] {
        assert_eq!(refusal(expr).1, help);
    }
}

#[test]
fn expressions_have_a_bounded_length() {
    let long = format!("{}0 * * * *", "0,".repeat(123));
    assert_eq!(long.len(), 255);
    assert_eq!(parse(&long).minute, 1);
    let (message, _) = refusal(&"0".repeat(1_000_000));
    assert!(message.starts_with("it has 1000000 bytes, at most 256 are allowed\n"));
    assert!(message.len() < 200);
}

#[test]
fn literals_are_checked_at_compile_time() {
    const FIVE: Cron = Cron::checked("*/5 * * * *");
    const BOTH: Cron = Cron::checked_with("0 0 0 13 * FRI", Days::And);
    // As long and as slow as an expression gets: `long_running_const_eval` is an error by default.
    const LIST: Cron = Cron::checked(
        "0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,\
         0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,\
         0-59,0-59,0-59,0-59,0-59,0-59,0-59,0-59,0 0 29 FEB *",
    );
    const YEARS: Cron = Cron::checked(
        "0 0 0 29 FEB ? 1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,\
         1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1,1970/1",
    );
    const _: () = {
        // The search for a date that never exists looks at every kind of year.
        assert!(Cron::read("0 0 31W * SUN", Days::And).is_err());
        assert!(Cron::read("0 0 0 1-28 * MON#5 2027", Days::And).is_err());
        assert!(Cron::read("0 0 0 29 FEB MON 2100", Days::And).is_err());
    };
    assert_eq!(FIVE, parse("*/5 * * * *"));
    assert_eq!(BOTH.days(), Days::And);
    assert_eq!(LIST.minute, bits(0..60));
    assert!(YEARS.every_year());
}

#[test]
#[should_panic(
    expected = "invalid cron expression: minute `75` is out of range 0-59\n  75 * * * *\n  ^^\nhelp: write 0-59"
)]
fn the_panic_is_the_message() {
    let _ = Cron::checked("75 * * * *");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_panics(expr: String) {
        if let Err(error) = Cron::read(&expr, Days::Unsaid) {
            prop_assert!(error.message(&expr).as_str().contains("\nhelp: "));
        }
    }

    #[test]
    fn no_near_miss_panics(expr in "[-0-9*,/?#LW@ \tA-Fa-zü]{0,40}", days in 0..3) {
        let days = [Days::Unsaid, Days::Or, Days::And][usize::try_from(days).unwrap()];
        if let Err(error) = Cron::read(&expr, days) {
            prop_assert!(error.at + error.len <= expr.len());
            prop_assert!(error.message(&expr).as_str().contains("\nhelp: "));
        }
    }
}
