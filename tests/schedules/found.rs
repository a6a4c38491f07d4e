//! What the random comparison has found: each was wrong once.

use jiff::Timestamp;
use leader_core::{Schedule, Zone};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Asked within a year that is not listed, the `cron` crate looks backwards only at the days of the year up to the one asked about.
#[test]
fn backwards_from_a_year_that_is_not_listed() {
    let fridays = Schedule::cron("53,59 */30 * * * Fri 1970-2100/3").unwrap();
    assert_eq!(
        fridays.prev(at("2034-03-02T23:14:28Z")),
        Some(at("2033-12-30T23:30:59Z"))
    );
    let fridays = fridays.in_zone(Zone::new("Asia/Yakutsk").unwrap()).unwrap();
    let asked = at("2034-03-02T23:14:28.000000001Z");
    assert_eq!(fridays.prev(asked), Some(at("2033-12-30T23:30:59+09:00")));

    let once = Schedule::cron("0 0 12 30 12 ? 2011").unwrap();
    for asked in [
        "2012-01-01T00:00:00Z",
        "2013-06-15T06:00:00Z",
        "2100-01-01T00:00:00Z",
        "2300-01-01T00:00:00Z",
    ] {
        assert_eq!(once.prev(at(asked)), Some(at("2011-12-30T12:00:00Z")), "from {asked}");
    }
    assert_eq!(once.prev(at("2011-12-30T11:59:59Z")), None);
}
