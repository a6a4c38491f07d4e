//! Which calendars a job has, and what is refused of them.

use jiff::Timestamp;
use jiff::civil::date;

use super::*;

fn christmas() -> Calendar {
    Calendar::new().days(date(2026, 12, 24), date(2026, 12, 26))
}

fn names(bootstrap: Bootstrap, job: &str) -> Vec<String> {
    let config = config(bootstrap);
    let job = config
        .jobs
        .iter()
        .find(|spec| spec.name.as_str() == job)
        .expect("a job");
    job.rule.blackouts.names().map(str::to_owned).collect()
}

#[test]
fn the_environment_wins_over_the_code_and_the_code_over_the_attribute() {
    let both = |vars| {
        let given = given(vars).calendar("holidays", christmas());
        given.calendar("freeze", christmas())
    };
    assert!(names(both(&[]), "scheduled").is_empty());
    let named = |vars, except: &'static [&'static str]| {
        let changed = both(vars).job("scheduled", |job| job.except(except.iter().copied()));
        names(changed, "scheduled")
    };
    assert_eq!(named(&[], &["freeze", "holidays"]), ["holidays", "freeze"]);
    assert_eq!(
        named(&[("LEADER_JOB_SCHEDULED_EXCEPT", "holidays")], &["freeze"]),
        ["holidays"]
    );
    assert!(named(&[("LEADER_JOB_SCHEDULED_EXCEPT", "none")], &["freeze"]).is_empty());
    // The later word counts, and the attribute's is one like any other.
    let last = both(&[])
        .job("scheduled", |job| job.except(["freeze"]))
        .job("scheduled", |job| job.except(["holidays"]));
    assert_eq!(names(last, "scheduled"), ["holidays"]);
    let record = Record::new("one", "default", "here").except(&["holidays"]);
    assert_eq!(
        calendars::of(&record, std::iter::empty(), Vars::fixed(&[])),
        ["holidays"]
    );
}

#[test]
fn days_are_those_of_the_jobs_zone() {
    let given = given(&[]).calendar("holidays", christmas());
    let given = given
        .job("zoned", |job| job.except(["holidays"]))
        .job("scheduled", |job| job.except(["holidays"]));
    let config = config(given);
    let begins = |job: &str| {
        let job = config
            .jobs
            .iter()
            .find(|spec| spec.name.as_str() == job)
            .expect("a job");
        let within = "2026-12-25T12:00:00Z".parse::<Timestamp>().unwrap();
        job.rule.blackouts.span_at(within).unwrap().0.to_string()
    };
    assert_eq!(begins("zoned"), "2026-12-23T23:00:00Z");
    assert_eq!(begins("scheduled"), "2026-12-24T00:00:00Z");
}

#[test]
fn what_cannot_be_is_told_all_at_once() {
    let given = given(&[])
        .calendar("holidays", Calendar::new().days(date(2026, 12, 26), date(2026, 12, 24)))
        .calendar("not fine", christmas())
        .job("scheduled", |job| job.except(["holiday"]))
        .job("standing", |job| job.except(["holidays"]));
    let told = faults(given).join("\n");
    for part in [
        "the calendar `holidays`: the days from 2026-12-26 to 2026-12-24 end before they begin",
        "`not fine`",
        "`scheduled` runs except on `holiday`, which nobody gave: give it with `.calendar(\"holiday\", ..)`; given are `holidays`, `not fine`",
        "`except` of `standing`",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
