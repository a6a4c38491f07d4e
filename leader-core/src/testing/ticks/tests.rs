//! Days of ticks against lists.

use super::*;

fn berlin(expr: &str) -> Schedule {
    let zone = Zone::new("Europe/Berlin").unwrap();
    Schedule::cron(expr).unwrap().in_zone(zone).unwrap()
}

#[test]
fn a_day_is_one_of_the_zone() {
    let schedule = berlin("0,30 0,2,23 * * *");
    for ticks in [
        ["22:00Z", "22:30Z", "00:00Z", "00:30Z", "21:00Z", "21:30Z"],
        ["00:00", "00:30:00", "02:00", "02:30", "23:00", "23:30"],
        [
            "00:00+02",
            "00:30+02:00",
            "02:00+0200",
            "02:30+02",
            "23:00+02",
            "23:30+02:00",
        ],
        [
            "2026-05-31T22:00Z",
            "2026-06-01T00:30+02:00",
            "2026-06-01T02:00+02",
            "02:30",
            "23:00",
            "21:30Z",
        ],
    ] {
        assert_eq!(check("job", &schedule, "2026-06-01", &ticks), Ok(()));
    }
    assert_eq!(check("job", &berlin("0 0 L * *"), "2026-06-01", &[]), Ok(()));
    // A clock that shows an hour twice.
    let all = ["02:00+02", "02:30+02", "02:00+01", "02:30+01:00"];
    assert_eq!(check("job", &berlin("*/30 2 * * *"), "2026-10-25", &all), Ok(()));
    assert_eq!(check("job", &berlin("0,30 2 * * *"), "2026-10-25", &all[..2]), Ok(()));
    // A day without midnight, and one that was left out.
    let zone = |name| {
        Schedule::cron("0 0 * * *")
            .unwrap()
            .in_zone(Zone::new(name).unwrap())
            .unwrap()
    };
    assert_eq!(
        check("job", &zone("America/Santiago"), "2024-09-08", &["01:00-03"]),
        Ok(())
    );
    assert_eq!(check("job", &zone("Pacific/Apia"), "2011-12-30", &[]), Ok(()));
    // Periods are read in UTC.
    let every = Schedule::every("8h").unwrap();
    assert_eq!(
        check("job", &every, "2026-06-01", &["00:00", "08:00Z", "16:00:00+00"]),
        Ok(())
    );
}

/// The mark of each row, and which side has no tick.
fn marks(schedule: &Schedule, day: &str, expected: &[&str]) -> Vec<&'static str> {
    let told = check("job", schedule, day, expected).unwrap_err();
    let mark = |row: &str| match (
        row.starts_with('!'),
        row.contains("expected none"),
        row.ends_with("found none"),
    ) {
        (false, ..) => "same",
        (true, true, false) => "surplus",
        (true, false, true) => "missing",
        _ => "other",
    };
    told.lines().skip(1).map(mark).collect()
}

#[test]
fn one_tick_too_many_or_too_few_is_one_row() {
    let hourly = berlin("0 8-11 * * *");
    let day = "2026-06-01";
    for (expected, rows) in [
        (
            &["09:00", "10:00", "11:00"][..],
            ["surplus", "same", "same", "same"].as_slice(),
        ),
        (&["06:00Z", "08:00Z", "09:00Z"], &["same", "surplus", "same", "same"]),
        (&["08:00", "09:00", "10:00"], &["same", "same", "same", "surplus"]),
        (
            &["07:00", "08:00", "09:00+02", "10:00", "11:00"],
            &["missing", "same", "same", "same", "same"],
        ),
        (
            &["08:00", "08:30", "09:00", "10:00", "11:00", "23:00Z"],
            &["same", "missing", "same", "same", "same", "missing"],
        ),
        (&[], &["surplus"; 4]),
    ] {
        assert_eq!(marks(&hourly, day, expected), rows, "{expected:?}");
    }
    // Where the clock shows an hour twice, and where it leaves one out.
    let halves = berlin("*/30 2 * * *");
    for (expected, rows) in [
        (
            &["02:00", "02:00", "02:30"][..],
            ["same", "surplus", "same", "same"].as_slice(),
        ),
        (&["02:00", "02:30", "02:30+01"], &["same", "same", "surplus", "same"]),
        (&["00:00Z", "01:00Z", "01:30Z"], &["same", "surplus", "same", "same"]),
    ] {
        assert_eq!(marks(&halves, "2026-10-25", expected), rows, "{expected:?}");
    }
    assert_eq!(
        marks(&berlin("30 2,14 * * *"), "2026-03-29", &["02:30", "14:30"]),
        ["other", "same"]
    );
    assert_eq!(marks(&berlin("0 2 * * *"), "2026-03-29", &["02:00"]), ["other"]);
    // Of a long list what differs is shown.
    let all: Vec<_> = (0..24 * 60).map(|m| format!("{:02}:{:02}", m / 60, m % 60)).collect();
    let all: Vec<_> = all.iter().map(String::as_str).filter(|tick| *tick != "20:17").collect();
    let told = check("job", &berlin("* * * * *"), day, &all).unwrap_err();
    assert!(
        told.contains("found 2026-06-01 20:17:00") && told.lines().count() == 3,
        "{told}"
    );
}

#[test]
fn what_differs_is_shown_with_its_reason() {
    let schedule = berlin("30 2,14 * * *");
    let told = check("nightly", &schedule, "2026-03-29", &["02:30", "14:30"]).unwrap_err();
    assert_eq!(
        told,
        "the ticks of `nightly` (cron \"30 2,14 * * *\" timezone Europe/Berlin) on 2026-03-29 are others\n\
         ! expected 02:30                found 2026-03-29 03:00:00 +02 Europe/Berlin: 02:30:00 does not exist, the clock goes from \
         02:00:00 to 03:00:00\n  expected 14:30                found 2026-03-29 14:30:00 +02 Europe/Berlin\n"
    );
    let told = check("nightly", &schedule, "2026-03-30", &["00:30Z"]).unwrap_err();
    assert!(told.contains("! expected none "), "{told}");
    let told = check("nightly", &schedule, "2026-03-30", &["00:30Z", "14:30", "15:00"]).unwrap_err();
    assert!(told.contains("found none"), "{told}");
    let told = check("minutely", &berlin("* * * * *"), "2026-03-30", &[]).unwrap_err();
    assert!(told.contains("… of 0 expected and 1440 found"), "{told}");
}

/// Whoever writes a date or an offset means it.
#[test]
fn a_tick_of_another_day_or_offset_is_another() {
    let schedule = berlin("30 2 * * *");
    let day = "2026-06-01";
    for right in [
        "2026-06-01T00:30Z",
        "2026-06-01T02:30+02:00",
        "2026-06-01 02:30+02:00",
        "2026-06-01 00:30Z",
    ] {
        assert_eq!(check("job", &schedule, day, &[right]), Ok(()), "{right}");
    }
    for wrong in [
        "1999-01-01T00:30Z",
        "1999-01-01 00:30Z",
        "1999-01-01T02:30",
        "1999-01-01 02:30",
        "2026-06-01T02:30+05:00",
        "2026-06-01 02:30+05:00",
        "1999-01-01 02:30+02:00",
        "02:30+05:00",
    ] {
        assert!(check("job", &schedule, day, &[wrong]).is_err(), "{wrong}");
    }
}

#[test]
fn what_cannot_be_read_is_told() {
    let schedule = berlin("0 2 * * *");
    for (day, tick, part) in [
        ("29.3.2026", "01:00Z", "write it as `2026-03-29`"),
        ("2026-02-30", "01:00Z", "write it as `2026-03-29`"),
        ("2026-03-29", "1 o'clock", "write `01:00Z`"),
        ("2026-03-29", "25:00", "write `01:00Z`"),
        ("2026-03-29", "", "write `01:00Z`"),
    ] {
        let told = check("job", &schedule, day, &[tick]).unwrap_err();
        assert!(told.contains(part), "{day} {tick}: {told}");
    }
}
