//! Settings from code and environment, and what is refused.
//!
//! The test binary's own annotated functions are the program's: `scheduled` (group `tokens`, needs a `u64`) and `standing`.

use std::time::Duration;

use super::*;
use crate::Embedded;

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
    assert_eq!(changed.jobs[0].rule.schedule.to_string(), "cron \"*/7 * * * *\"");
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
        "`shceduled` is no job of this program; it has `scheduled`",
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
