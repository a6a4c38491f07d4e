//! What a roster says, and what follows from it.

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn member(id: &str, version: &str, jobs: &[&str]) -> Member {
    let said = Introduction {
        version: version.to_owned(),
        groups: ["default".to_owned()].into(),
        jobs: [(
            "default".to_owned(),
            jobs.iter().map(|job| ((*job).to_owned(), String::new())).collect(),
        )]
        .into(),
        ..Introduction::default()
    };
    super::member(&Line {
        holder: holder(id),
        service: "shop".to_owned(),
        seen: Timestamp::UNIX_EPOCH,
        beat: "nonsense".to_owned(),
        introduction: text(&said),
    })
}

fn holder(id: &str) -> Holder {
    Holder::from_store(&format!("{id}#1"))
}

#[test]
fn a_vacancy_is_left_to_the_better_covered_unless_it_has_just_led() {
    let fleet = [
        member("a", "1", &["x"]),
        member("b", "1", &["x", "y"]),
        member("c", "2", &["x"]),
    ];
    let wait = |own: &str, last: Option<&str>| yields(&fleet, &holder(own), "default", last, TTL);
    assert_eq!(wait("a", None), TTL);
    assert_eq!(wait("b", None), Duration::ZERO);
    assert_eq!(wait("c", Some("b")), Duration::ZERO);
    let newer = wait("a", Some("b"));
    assert!(newer > Duration::ZERO && newer < TTL);
    // Nobody waits before the roster knows it, or in a group that is nobody else's.
    assert_eq!(wait("z", None), Duration::ZERO);
    assert_eq!(yields(&fleet, &holder("a"), "other", None, TTL), Duration::ZERO);
}

#[test]
fn one_that_leaves_or_is_wedged_is_not_waited_for() {
    let mut fleet = [member("a", "1", &[]), member("b", "1", &["x"])];
    assert_eq!(better_covered(&fleet, &holder("a"), "default").unwrap().instance, "b");
    for change in [
        |member: &mut Member| member.draining = true,
        |member: &mut Member| member.wedged = true,
    ] {
        let mut fleet = fleet.clone();
        change(&mut fleet[1]);
        assert_eq!(yields(&fleet, &holder("a"), "default", None, TTL), Duration::ZERO);
        assert!(better_covered(&fleet, &holder("a"), "default").is_none());
    }
    fleet[1].candidate_for.clear();
    assert_eq!(yields(&fleet, &holder("a"), "default", None, TTL), Duration::ZERO);
}

#[test]
fn a_group_prefers_one_of_those_that_fit_it_best() {
    let fleet = |ids: &[&str]| ids.iter().map(|id| member(id, "1", &["x"])).collect::<Vec<_>>();
    let choice = |members: &[Member]| preferred(members, "default").map(|member| member.instance.clone());
    let three = choice(&fleet(&["a", "b", "c"])).unwrap();
    // Whoever goes, the others' groups stay where they are.
    for gone in ["a", "b", "c"].into_iter().filter(|id| *id != three) {
        let rest: Vec<_> = ["a", "b", "c"].into_iter().filter(|id| *id != gone).collect();
        assert_eq!(choice(&fleet(&rest)).as_deref(), Some(three.as_str()));
    }
    let mut better = fleet(&["a", "b", "c"]);
    better.push(member("d", "1", &["x", "y"]));
    assert_eq!(choice(&better).as_deref(), Some("d"));
    better[3].wedged = true;
    assert_eq!(choice(&better), Some(three));
    assert_eq!(choice(&[]), None);
}

#[test]
fn members_of_another_time_zone_version_are_found() {
    let mut fleet = [member("a", "1", &[]), member("b", "1", &[]), member("c", "1", &[])];
    let own = holder("a");
    let others = |fleet: &[Member], ours: &str| {
        let others = of_other_time_zones(fleet, &own, ours);
        others.map(|member| member.instance.clone()).collect::<Vec<_>>()
    };
    // Older libraries say nothing of it.
    assert_eq!(others(&fleet, "2026f"), [""; 0]);
    fleet[0].time_zones = "1999a".to_owned();
    fleet[1].time_zones = "system 2026f".to_owned();
    fleet[2].time_zones = "2026e".to_owned();
    assert_eq!(others(&fleet, "2026f"), ["c"]);
    assert_eq!(others(&fleet, "system 2026e"), ["b"]);
    // A version that nobody knows may be any.
    assert_eq!(others(&fleet, "system"), ["b", "c"]);
    fleet[1].time_zones = "system".to_owned();
    assert_eq!(others(&fleet, "system"), ["c"]);
}

#[test]
fn a_sign_of_life_tells_the_offset_and_its_error() {
    let offset = Offset {
        by: SignedDuration::from_secs(-3600),
        error: Duration::from_millis(2),
    };
    let beat = |beat: &str| {
        let line = Line {
            holder: holder("a"),
            service: "shop".to_owned(),
            seen: Timestamp::UNIX_EPOCH,
            beat: beat.to_owned(),
            introduction: String::new(),
        };
        let member = super::member(&line);
        (member.clock_offset, member.clock_error)
    };
    let said = (Some(offset.by), Some(offset.error));
    assert_eq!(beat(&super::beat([].iter(), Some(offset))), said);
    assert_eq!(beat(&super::beat([].iter(), None)), (None, None));
    // One of an older version.
    let older = (Some(SignedDuration::from_micros(-5)), None);
    assert_eq!(beat(r#"{"leads":["x"],"offset_us":-5}"#), older);
}

#[test]
fn only_fresh_members_have_a_say_in_whose_clock_is_right() {
    let fleet: Vec<_> = [
        ("a", 0, Some(1)),
        ("b", 20, Some(2)),
        ("c", 25, None),
        ("d", 31, Some(4)),
    ]
    .into_iter()
    .map(|(id, seen, offset)| Member {
        last_seen: Timestamp::from_second(seen).unwrap(),
        clock_offset: offset.map(SignedDuration::from_secs),
        ..member(id, "1", &[])
    })
    .collect();
    let seconds = |own: &str| -> Vec<_> {
        let offsets = offsets(&fleet, &holder(own), "", TTL);
        offsets.into_iter().map(|offset| offset.as_secs()).collect()
    };
    assert_eq!(seconds("a"), [4]);
    assert_eq!(seconds("d"), [] as [i64; 0]);
    let slower: Vec<_> = fleet
        .iter()
        .cloned()
        .map(|member| Member { ttl: 4 * TTL, ..member })
        .collect();
    assert_eq!(offsets(&slower, &holder("z"), "", TTL).len(), 3);
    assert!(offsets(&[], &holder("z"), "", TTL).is_empty());
}

/// One that is started again and again leaves many lines, and has one clock.
#[test]
fn a_machine_has_one_voice() {
    let on = |machine: &str, seen: i64, offset: i64| Member {
        last_seen: Timestamp::from_second(seen).unwrap(),
        clock_offset: Some(SignedDuration::from_secs(offset)),
        machine: machine.to_owned(),
        ..member(&format!("i{seen}"), "1", &[])
    };
    let fleet = [
        on("bad", 10, 3600),
        on("bad", 12, 3601),
        on("bad", 11, 3602),
        on("good", 13, 0),
        on("ours", 14, 7),
        on("", 15, 1),
        on("", 16, 2),
    ];
    let seconds: Vec<_> = (offsets(&fleet, &holder("z"), "ours", TTL).into_iter())
        .map(|offset| offset.as_secs())
        .collect();
    assert_eq!(seconds, [1, 2, 3601, 0]);
}

#[test]
fn what_a_leader_lacks_is_named() {
    let fleet = [member("a", "1", &["x"]), member("b", "1", &["x", "y"])];
    let lacks = uncovered(&fleet, &holder("a"), "default");
    assert_eq!(lacks, [("y".to_owned(), "b".to_owned())].into());
    assert!(uncovered(&fleet, &holder("b"), "default").is_empty());
    // What needs no leader is run by whoever has it.
    let [a, mut b] = fleet;
    b.unled = [("default".to_owned(), ["y".to_owned()].into())].into();
    assert!(uncovered(&[a, b], &holder("a"), "default").is_empty());
}

#[test]
fn a_newer_versions_schedule_goes_before_while_one_lives() {
    for (stored, ours, other, newer) in [
        ("2.1", "2.0", ("2.1", "x"), true),
        ("2.1", "2.0", ("3", "x"), true),
        ("1.10", "1.9", ("1.10.0", "x"), true),
        ("1", "", ("1", "x"), true),
        // None of it lives, or none that has the job.
        ("2.1", "2.0", ("2.0", "x"), false),
        ("2.1", "2.0", ("2.0.9", "x"), false),
        ("2.1", "2.0", ("2.1", "y"), false),
        // Equal, older, or not to be compared: the leader's own.
        ("2.1", "2.1", ("2.1", "x"), false),
        ("2.1-rc.1", "2.1.0", ("3", "x"), false),
        ("2.0", "2.1", ("3", "x"), false),
        ("", "", ("3", "x"), false),
        ("latest", "1", ("3", "x"), false),
    ] {
        let fleet = [member("a", ours, &["x"]), member("b", other.0, &[other.1])];
        let found = newer_lives(&fleet, &holder("a"), ("default", "x"), stored, ours);
        assert_eq!(found, newer, "{stored} kept, {ours} leads, {other:?} lives");
    }
    // Before the roster shows the leader itself nobody can say that none lives.
    assert!(newer_lives(&[], &holder("a"), ("default", "x"), "2", "1"));
    assert!(!newer_lives(&[], &holder("a"), ("default", "x"), "1", "1"));
}
