//! A good run passes, and each kind of violation is seen where it is planted.

use std::collections::BTreeMap;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

const JOBS: [JobSpec; 4] = [
    spec("beat", 0),
    JobSpec {
        beside: true,
        ..spec("beside", 0)
    },
    spec("tried", 2),
    JobSpec {
        unled: true,
        ..spec("anywhere", 1)
    },
];

const fn spec(name: &'static str, retries: u32) -> JobSpec {
    JobSpec {
        name,
        group: "g",
        period: 1_000,
        retries,
        beside: false,
        finishes: false,
        unled: false,
        owes_all: false,
        shows: &[],
    }
}

fn line(event: &str, life: &str, at: u64) -> Line {
    Line {
        event: event.to_owned(),
        life: life.to_owned(),
        at: at * MS,
        group: "g".to_owned(),
        ..Line::default()
    }
}

fn elected(life: &str, at: u64, term: u64) -> Line {
    Line {
        term,
        ..line("elected", life, at)
    }
}

fn lost(life: &str, at: u64, term: u64, until: u64) -> Line {
    Line {
        term,
        until: until * MS,
        ..line("lost", life, at)
    }
}

fn seen(life: &str, from: u64, until: u64) -> Line {
    Line {
        from: from * MS,
        until: until * MS,
        ..line("seen", life, until)
    }
}

/// The start and the end of a body.
fn body(life: &str, job: &str, at: u64, numbers: (u64, u64), tick: i64) -> [Line; 2] {
    let (term, fence) = numbers;
    let start = Line {
        job: job.to_owned(),
        term,
        fence,
        tick,
        attempt: 1,
        ..line("start", life, at)
    };
    let end = Line {
        event: "end".to_owned(),
        at: (at + 50) * MS,
        until: (at + 50) * MS,
        text: "ok".to_owned(),
        ..start.clone()
    };
    [start, end]
}

/// A hand-over as it should be, whose loser tells of it late.
fn good() -> Vec<Line> {
    let mut lines = vec![
        elected("a.1", 1_000, 10),
        seen("a.1", 1_001, 2_499),
        elected("b.1", 3_000, 20),
        seen("b.1", 3_001, 3_900),
        lost("a.1", 9_000, 10, 2_500),
    ];
    lines.extend(body("a.1", "beat", 1_100, (10, 11), 1_000));
    lines.extend(body("a.1", "beat", 2_100, (10, 12), 2_000));
    lines.extend(body("b.1", "beat", 3_100, (20, 21), 3_000));
    lines
}

fn audit() -> Audit {
    Audit::new(&JOBS, &[])
}

fn judged(mut audit: Audit, lines: Vec<Line>) -> Vec<Violation> {
    audit.slice(lines, Vec::new(), 8 * SECOND)
}

fn none(lines: Vec<Line>) {
    assert_eq!(judged(audit(), lines), []);
}

fn rules(found: &[Violation]) -> Vec<&'static str> {
    found.iter().map(|violation| violation.rule).collect()
}

#[track_caller]
fn finds(rule: &str, lines: Vec<Line>) {
    let found = judged(audit(), lines);
    assert!(rules(&found).contains(&rule), "{rule}: {found:?}");
}

#[test]
fn a_good_run_passes_in_any_order_and_in_slices() {
    none(good());
    let mut lines = good();
    lines.reverse();
    none(lines);
    let mut audit = audit();
    let (early, late) = good().into_iter().partition(|line| line.at < 2 * SECOND);
    assert_eq!(audit.slice(early, Vec::new(), 2 * SECOND), []);
    assert_eq!(audit.slice(late, Vec::new(), 8 * SECOND), []);
    assert_eq!((audit.counts().elected, audit.counts().starts), (2, 3));
}

#[test]
fn what_began_after_the_cut_is_judged_with_its_beginning() {
    let mut audit = audit();
    assert_eq!(audit.slice(good(), Vec::new(), 1_050 * MS), []);
    assert_eq!(audit.slice(Vec::new(), Vec::new(), 8 * SECOND), []);
    assert!(
        audit
            .bodies
            .iter()
            .all(|body| body.until < 4 * SECOND && body.result == "ok")
    );
}

#[test]
fn two_believers_are_seen_and_measured() {
    let mut lines = good();
    lines[4].until = 3_002 * MS;
    let mut audit = audit();
    let found = audit.slice(lines, Vec::new(), 8 * SECOND);
    assert_eq!(rules(&found), ["one believer"]);
    assert_eq!(audit.counts().overlap, 2 * MS);
    // Told in another slice than the belief before it.
    let mut audit = self::audit();
    audit.slice(vec![elected("a.1", 1_000, 10)], Vec::new(), 2 * SECOND);
    let found = audit.slice(vec![elected("b.1", 3_000, 20)], Vec::new(), 4 * SECOND);
    assert_eq!(rules(&found), ["one believer"]);
}

#[test]
fn a_killed_process_believes_no_longer() {
    let mut lines = good();
    lines.remove(4);
    finds("one believer", lines.clone());
    let mut audit = audit();
    audit.ended("a.1", 2_900 * MS);
    assert_eq!(judged(audit, lines), []);
}

#[test]
fn a_gate_that_is_open_too_long_is_seen() {
    let mut lines = good();
    // A turn of the loop that clears belief lies between what is told and what is seen, and no more.
    lines[1].until = 2_501 * MS;
    lines[3].from = 2_999 * MS;
    none(lines.clone());
    lines[1].until = 2_521 * MS;
    finds("the gate is open to believers only", lines.clone());
    lines[1].until = 2_499 * MS;
    // It may be told late, and not by more than a machine without a free processor explains.
    lines[3].from = 2_731 * MS;
    none(lines.clone());
    lines[3].from = 2_729 * MS;
    finds("the gate is open to believers only", lines);
    let mut lines = good();
    lines[1].until = 3_050 * MS;
    lines[4].until = 3_060 * MS;
    finds("one open gate", lines);
}

/// One that wakes up from a stop loses its belief and gets another at once: what it saw before the stop is of the first.
#[test]
fn what_was_seen_belongs_to_the_nearest_belief() {
    let lines = vec![
        elected("a.1", 1_000, 10),
        seen("a.1", 1_001, 2_000),
        lost("a.1", 4_001, 10, 2_700),
        elected("a.1", 4_003, 20),
        seen("a.1", 4_004, 4_500),
    ];
    let mut audit = audit();
    let (from, until) = (2_001 * MS, 4_000 * MS);
    audit.stood_still("a.1", Still { from, until });
    assert_eq!(judged(audit, lines), []);
}

#[test]
fn falling_and_doubled_numbers_are_seen() {
    let mut lines = good();
    lines[2].term = 9;
    finds("terms rise", lines);
    let mut lines = good();
    lines[2].term = 12;
    finds("no number is given twice", lines);
    let mut lines = good();
    lines[7].fence = 25;
    finds("terms rise above fences", lines);
    let mut lines = good();
    lines.extend(body("b.1", "beat", 3_500, (20, 15), 4_000));
    finds("fences rise", lines);
    // Of claims that need no leader, on both sides of a loss, either may be started first.
    for (job, term, excused) in [("anywhere", 0, true), ("beat", 20, false)] {
        let mut lines = good();
        lines.extend(body("b.1", job, 3_500, (term, 25), 4_000));
        lines.extend(body("a.1", job, 3_560, (term, 24), 5_000));
        finds("fences rise", lines.clone());
        let mut audit = audit();
        let (from, until) = (3_400 * MS, 3_401 * MS);
        audit.lost(Loss { from, until });
        let found = judged(audit, lines);
        assert_eq!(!rules(&found).contains(&"fences rise"), excused, "{job}");
    }
    // Claimed under an old term when the new one had begun.
    let mut lines = good();
    lines.extend(body("a.1", "beside", 3_500, (10, 26), 4_000));
    finds("terms rise above fences", lines);
}

#[test]
fn a_body_without_belief_is_seen() {
    let mut lines = good();
    lines.extend(body("b.1", "beside", 2_700, (20, 22), 2_000));
    finds("a body is started in a belief", lines);
    // One that needs no leader has no term.
    let mut lines = good();
    lines.extend(body("b.1", "anywhere", 2_700, (0, 22), 2_000));
    none(lines.clone());
    lines[8].term = 20;
    lines.extend(body("b.1", "anywhere", 2_800, (20, 23), 3_000));
    finds("a body is started in a belief", lines);
}

/// A body that goes on when its leader believes no longer, whoever leads then.
#[test]
fn a_body_that_goes_on_after_its_leadership_is_seen() {
    let ends_at = |until: u64| {
        let mut lines = good();
        // The end of the second body.
        (lines[8].at, lines[8].until) = (2_600 * MS, until * MS);
        lines
    };
    none(ends_at(2_500));
    finds("a body is polled in a belief", ends_at(2_530));
    // Told in another slice than the loss.
    let mut audit = audit();
    let (first, late): (Vec<_>, Vec<_>) = ends_at(2_530).into_iter().partition(|line| line.event != "lost");
    audit.slice(first, Vec::new(), 2_999 * MS);
    assert_eq!(
        rules(&audit.slice(late, Vec::new(), 8 * SECOND)),
        ["a body is polled in a belief"]
    );
    // Who has stood still may have begun that poll before.
    let mut stopped = self::audit();
    let (from, until) = (2_450 * MS, 2_525 * MS);
    stopped.stood_still("a.1", Still { from, until });
    assert_eq!(judged(stopped, ends_at(2_530)), []);
    let mut lines = ends_at(2_500);
    lines.push(lines[8].clone());
    finds("a body ends once", lines);
}

#[test]
fn a_start_that_a_stop_cut_in_two_is_counted() {
    let mut lines = good();
    // It begins, and is polled no more.
    let begins = |at: u64, fence, tick| {
        let [start, end] = body("a.1", "beside", at, (10, fence), tick);
        [start, Line { until: at * MS, ..end }]
    };
    lines.extend(begins(4_005, 13, 2_000));
    finds("a body is started in a belief", lines.clone());
    let stopped = || {
        let mut audit = audit();
        let (from, until) = (2_400 * MS, 4_000 * MS);
        audit.stood_still("a.1", Still { from, until });
        audit
    };
    let mut audit = stopped();
    assert_eq!(audit.slice(lines.clone(), Vec::new(), 8 * SECOND), []);
    assert_eq!(audit.counts().cuts, 1);
    // Not each time.
    for more in 0..3 {
        let tick = 3_000 + 1_000 * i64::try_from(more).unwrap();
        lines.extend(begins(4_006 + more, 14 + more, tick));
    }
    let found = judged(stopped(), lines);
    assert_eq!(rules(&found), ["hardly any step is cut in two by a stop"]);
}

#[test]
fn a_tick_that_is_started_twice_is_seen_unless_the_store_lost_it() {
    let mut lines = good();
    lines.extend(body("b.1", "beat", 3_500, (20, 23), 2_000));
    finds("a tick is started once for each try", lines.clone());
    // Where there is a leader jobs start anew.
    let lost_at = |at| {
        let mut audit = audit();
        let (from, until) = (at * MS, (at + 1) * MS);
        audit.lost(Loss { from, until });
        audit
    };
    assert_eq!(
        rules(&judged(lost_at(3_300), lines)),
        ["a tick is started once for each try"]
    );
    let mut lines = good();
    lines.extend(body("b.1", "anywhere", 1_300, (0, 22), 1_000));
    lines.extend(body("a.1", "anywhere", 3_500, (0, 23), 1_000));
    finds("a tick is started once for each try", lines.clone());
    assert_eq!(
        rules(&judged(lost_at(3_600), lines.clone())),
        ["a tick is started once for each try"]
    );
    let mut audit = lost_at(3_300);
    assert_eq!(audit.slice(lines, Vec::new(), 8 * SECOND), []);
    assert_eq!((audit.counts().doubled, audit.counts().doubled_in_losses), (0, 1));
}

#[test]
fn tries_are_allowed_as_often_as_they_are_written() {
    let try_of = |at, attempt, fence| {
        let [mut start, mut end] = body("b.1", "tried", at, (20, fence), 3_000);
        (start.attempt, end.attempt) = (attempt, attempt);
        [start, end]
    };
    let mut lines = good();
    for (attempt, at) in [(1, 3_100), (2, 3_200), (3, 3_300)] {
        lines.extend(try_of(at, attempt, 21 + u64::from(attempt)));
    }
    none(lines.clone());
    let mut more = lines.clone();
    more.extend(try_of(3_400, 4, 30));
    finds("a tick is started once for each try", more);
    lines.extend(try_of(3_400, 2, 30));
    finds("a tick is started once for each try", lines);
}

#[test]
fn two_bodies_of_a_job_at_once_are_seen() {
    let mut lines = good();
    lines.extend(body("b.1", "beat", 3_120, (20, 23), 4_000));
    finds("no two bodies of a job at once", lines);
    let mut lines = good();
    lines.extend(body("b.1", "beside", 3_120, (20, 23), 4_000));
    lines.extend(body("b.1", "beside", 3_140, (20, 24), 5_000));
    none(lines);
    // Claims that the store has lost are made anew; of a job with a leader only after a quarantine.
    for (job, term, excused) in [("anywhere", 0, true), ("beat", 20, false)] {
        let mut lines = good();
        lines.extend(body("b.1", job, 3_220, (term, 23), 4_000));
        lines.extend(body("b.1", job, 3_240, (term, 24), 5_000));
        finds("no two bodies of a job at once", lines.clone());
        let mut audit = audit();
        let (from, until) = (3_230 * MS, 3_231 * MS);
        audit.lost(Loss { from, until });
        assert_eq!(judged(audit, lines).is_empty(), excused, "{job}");
    }
}

#[test]
fn what_a_register_should_not_do_is_seen() {
    let effect = |fence, taken| Effect {
        at: 1,
        key: "k".to_owned(),
        fence,
        life: "a.1".to_owned(),
        taken,
    };
    let judged = |effects| rules(&audit().slice(good(), effects, 8 * SECOND));
    assert_eq!(
        judged(vec![effect(5, true), effect(5, true), effect(4, false)]),
        [""; 0]
    );
    assert_eq!(
        judged(vec![effect(5, true), effect(4, true)]),
        ["effects never go back"]
    );
    assert_eq!(
        judged(vec![effect(5, true), effect(6, false)]),
        ["nobody is refused without reason"]
    );
}

#[test]
fn what_the_fleet_says_of_itself_is_heard() {
    let mut lines = good();
    lines.push(line("panic", "a.1", 1_500));
    finds("the fleet is well", lines);
}

/// The ledger of the good run.
fn ledger() -> JobState {
    let fields = [
        ("since", "500"),
        ("cursor", "4000"),
        ("n:ran.ok", "3"),
        ("n:missed.skipped", "1"),
    ];
    let ran = |tick: u32, fence: u32| format!("{tick}|{tick}|1|ran.ok|schedule|{fence}|10|a#1|9|9||1");
    JobState {
        at: 7 * SECOND,
        now: 7_000,
        fields: fields
            .iter()
            .map(|(field, value)| ((*field).to_owned(), (*value).to_owned()))
            .collect(),
        ran: vec![ran(3_000, 21), ran(2_000, 12), ran(1_000, 11)],
        passed: vec!["4000|4000|1|missed.skipped|schedule|0|10|a#1|9|9||0".to_owned()],
    }
}

fn judged_ledger(state: &JobState) -> Vec<&'static str> {
    let mut audit = audit();
    assert_eq!(audit.slice(good(), Vec::new(), 8 * SECOND), []);
    audit.judge_ledger(JOBS[0], state);
    rules(&audit.findings())
}

#[test]
fn a_good_ledger_passes_and_is_counted() {
    let mut audit = audit();
    audit.slice(good(), Vec::new(), 8 * SECOND);
    audit.judge_ledger(JOBS[0], &ledger());
    assert_eq!(audit.findings(), []);
    let counts = audit.counts();
    let outcomes = BTreeMap::from([("missed.skipped".to_owned(), 1), ("ran.ok".to_owned(), 3)]);
    assert_eq!((counts.due, &counts.outcomes), (4, &outcomes));
}

#[test]
fn a_tick_without_an_outcome_is_seen() {
    let mut state = ledger();
    state.fields.insert("n:ran.ok".to_owned(), "2".to_owned());
    let counted = "counts and records tell the same";
    assert_eq!(judged_ledger(&state), [counted, "due = outcomes + pending"]);
    let mut state = ledger();
    state.passed.clear();
    assert_eq!(judged_ledger(&state), [counted, "a tick has an outcome"]);
}

#[test]
fn a_tick_that_was_decided_before_a_loss_has_no_outcome_after_it() {
    let decided = |job: &str, at| Line {
        job: job.to_owned(),
        tick: 3_000,
        ..line("decided", "b.1", at)
    };
    // Of two ticks before the loss the store was taught one again, and those who know of the other go on behind it.
    let judged = |spec: JobSpec, told: Option<u64>| {
        let mut audit = audit();
        let mut state = ledger();
        state.fields.insert("since".to_owned(), "2500".to_owned());
        state.fields.insert("n:ran.ok".to_owned(), "0".to_owned());
        state.ran.clear();
        audit.lost(Loss {
            from: 3_500 * MS,
            until: 3_501 * MS,
        });
        audit.slice(
            told.map(|at| decided(spec.name, at)).into_iter().collect(),
            Vec::new(),
            8 * SECOND,
        );
        audit.judge_ledger(spec, &state);
        // The second look finds nothing new.
        audit.judge_ledger(spec, &state);
        rules(&audit.findings())
    };
    let [beat, .., anywhere] = JOBS;
    let missing = ["due = outcomes + pending", "a tick has an outcome"];
    assert_eq!(judged(anywhere, Some(3_100)), [""; 0]);
    for (spec, told) in [(anywhere, None), (anywhere, Some(6_000)), (beat, Some(3_100))] {
        let mut found = judged(spec, told);
        found.sort_unstable_by_key(|rule| !rule.starts_with("due"));
        found.dedup();
        assert_eq!(found, missing, "{} {told:?}", spec.name);
    }
}

#[test]
fn a_tick_with_two_outcomes_is_seen() {
    let mut state = ledger();
    state
        .passed
        .push("3000|3000|1|overlap_skipped|schedule|0|10|a#1|9|9||0".to_owned());
    let found = judged_ledger(&state);
    assert_eq!(found, ["a tick has one outcome", "counts and records tell the same"]);
    let mut state = ledger();
    state.passed = vec!["4000|4000|2|missed.skipped|schedule|0|10|a#1|9|9||0".to_owned()];
    assert_eq!(judged_ledger(&state), ["a record counts its ticks"]);
}

#[test]
fn a_ledger_that_contradicts_a_body_is_seen() {
    let counted = |state: &mut JobState, outcome: &str, count: &str| {
        state.fields.insert(format!("n:{outcome}"), count.to_owned());
    };
    let mut state = ledger();
    state.ran[1] = state.ran[1].replace("ran.ok", "ran.error");
    counted(&mut state, "ran.ok", "2");
    counted(&mut state, "ran.error", "1");
    assert_eq!(judged_ledger(&state), ["the ledger has what the body told"]);
    let mut state = ledger();
    state.ran.remove(1);
    state
        .passed
        .push("2000|2000|1|missed.skipped|schedule|0|10|a#1|9|9||0".to_owned());
    counted(&mut state, "ran.ok", "2");
    counted(&mut state, "missed.skipped", "2");
    assert_eq!(judged_ledger(&state), ["the ledger has every body"]);
    // What was begun before the store forgot, and what was begun after this was read, is in another ledger.
    for (lost, at) in [(Some(2_500), 7_000), (None, 2_050)] {
        let mut audit = audit();
        if let Some(at) = lost {
            let (from, until) = (at * MS, (at + 1) * MS);
            audit.lost(Loss { from, until });
        }
        audit.slice(good(), Vec::new(), 8 * SECOND);
        state.at = at * MS;
        state.now = i64::try_from(at).unwrap();
        audit.judge_ledger(JOBS[0], &state);
        assert_eq!(rules(&audit.findings()), [""; 0]);
    }
}

/// A job that begins anew owes nothing of what was before: only a store that has forgotten is an excuse.
#[test]
fn a_job_that_begins_again_is_seen_unless_the_store_lost_it() {
    let judged = |second: JobState, lost: Option<u64>| {
        let mut audit = audit();
        let mut lines = good();
        lines.extend(body("b.1", "beat", 9_100, (20, 31), 9_000));
        audit.slice(lines, Vec::new(), 8 * SECOND);
        audit.judge_ledger(JOBS[0], &ledger());
        if let Some(at) = lost {
            let (from, until) = (at * MS, (at + 1) * MS);
            audit.lost(Loss { from, until });
        }
        audit.judge_ledger(JOBS[0], &second);
        rules(&audit.findings())
    };
    let mut anew = JobState {
        at: 9 * SECOND,
        now: 9_100,
        ..JobState::default()
    };
    assert_eq!(judged(anew.clone(), None), ["a job begins once"]);
    assert_eq!(judged(anew.clone(), Some(8_000)), [""; 0]);
    let fields = [("since", "8500"), ("cursor", "8500")];
    anew.fields
        .extend(fields.map(|(field, value)| (field.to_owned(), value.to_owned())));
    assert_eq!(judged(anew.clone(), None), ["a job begins once"]);
    assert_eq!(judged(anew.clone(), Some(8_000)), [""; 0]);
    // One that was lost before the first look is known again since.
    assert_eq!(judged(anew, Some(6_000)), ["a job begins once"]);
}

#[test]
fn a_count_that_no_record_has_is_seen() {
    let mut state = ledger();
    state.fields.insert("n:ran.ok".to_owned(), "2".to_owned());
    state.fields.insert("n:ran.error".to_owned(), "1".to_owned());
    assert_eq!(judged_ledger(&state), ["counts and records tell the same"]);
    // Of what was decided since the last look.
    let mut audit = audit();
    audit.slice(good(), Vec::new(), 8 * SECOND);
    audit.judge_ledger(JOBS[0], &ledger());
    let mut later = ledger();
    (later.at, later.now) = (9 * SECOND, 6_100);
    later.fields.insert("cursor".to_owned(), "6000".to_owned());
    later.fields.insert("n:missed.skipped".to_owned(), "3".to_owned());
    let passed = |outcome: &str| format!("5000|6000|2|{outcome}|schedule|0|10|a#1|9|9||0");
    later.passed.insert(0, passed("missed.skipped"));
    audit.judge_ledger(JOBS[0], &later);
    assert_eq!(audit.findings(), []);
    later.fields.insert("cursor".to_owned(), "8000".to_owned());
    later.fields.insert("n:missed.skipped".to_owned(), "5".to_owned());
    later
        .passed
        .insert(0, passed("paused").replace("5000|6000", "7000|8000"));
    audit.judge_ledger(JOBS[0], &later);
    assert_eq!(rules(&audit.findings()), ["counts and records tell the same"]);
}

#[test]
fn a_body_of_a_tick_that_was_decided_long_ago_is_seen() {
    let mut audit = audit();
    audit.slice(good(), Vec::new(), 8 * SECOND);
    audit.judge_ledger(JOBS[0], &ledger());
    // The tick 4 was skipped.
    let lines = body("b.1", "beat", 8_500, (20, 41), 4_000).to_vec();
    audit.slice(lines, Vec::new(), 9 * SECOND);
    audit.judge_ledger(
        JOBS[0],
        &JobState {
            at: 9 * SECOND,
            now: 9_000,
            ..ledger()
        },
    );
    assert_eq!(rules(&audit.findings()), ["the ledger has every body"]);
}

#[test]
fn a_body_before_its_tick_is_seen() {
    // Read at the instant 7 s, which is the server's 4.1 s or later.
    let judged = |now| {
        let mut audit = audit();
        audit.slice(good(), Vec::new(), 8 * SECOND);
        audit.judge_ledger(JOBS[0], &JobState { now, ..ledger() });
        rules(&audit.findings())
    };
    assert_eq!(judged(6_900), [""; 0]);
    assert_eq!(judged(6_750), ["no body before its tick"; 3]);
}

#[test]
fn a_fleet_that_hardly_does_anything_is_seen() {
    let judged = |shows, change: fn(&mut Counts)| {
        let mut audit = Audit::new(&[JobSpec { shows, ..JOBS[2] }], &[]);
        audit.counts.starts = 100;
        audit.counts.again = 20;
        audit.counts.in_time = [60, 80];
        let outcomes = BTreeMap::from([("ran.ok".to_owned(), 30), ("ran.timed_out".to_owned(), 3)]);
        audit.counts.of_jobs.insert("tried", (100, outcomes));
        change(&mut audit.counts);
        audit.judge_shares();
        rules(&audit.findings())
    };
    assert_eq!(judged(&[("ran.ok", 30), ("ran.timed_out", 3)], |_| ()), [""; 0]);
    assert_eq!(judged(&[("ran.ok", 31)], |_| ()), ["each job does what it is for"]);
    assert_eq!(
        judged(&[("ran.timed_out", 4)], |_| ()),
        ["each job does what it is for"]
    );
    assert_eq!(
        judged(&[("ran.ok", 30)], |counts| counts.of_jobs.clear()),
        ["each job does what it is for"]
    );
    assert_eq!(judged(&[], |counts| counts.again = 4), ["what fails is tried again"]);
    assert_eq!(judged(&[], |counts| counts.unheard = 17), ["results are heard"]);
    assert_eq!(
        judged(&[], |counts| counts.in_time = [39, 80]),
        ["most bodies begin with their ticks"]
    );
}

#[test]
fn what_is_owed_may_not_be_missed() {
    let mut audit = audit();
    audit.slice(good(), Vec::new(), 8 * SECOND);
    let owed = JobSpec {
        owes_all: true,
        ..JOBS[0]
    };
    audit.judge_ledger(owed, &ledger());
    assert_eq!(rules(&audit.findings()), ["what is owed is not missed"]);
}

#[test]
fn what_is_undecided_at_the_end_is_told() {
    assert_eq!(ledger().settled(JOBS[0], 4_900), Ok(()));
    assert!(ledger().settled(JOBS[0], 5_000).is_err());
    let mut state = ledger();
    let open = "4000|schedule|22|10|3|9|a#1|1||".to_owned();
    state.fields.insert("open".to_owned(), open);
    assert!(state.settled(JOBS[0], 4_900).is_err());
    assert_eq!(state.settled(JOBS[0], 3_900), Ok(()));
}

#[test]
fn what_cannot_matter_any_more_is_forgotten() {
    let mut audit = audit();
    audit.slice(good(), Vec::new(), 8 * SECOND);
    audit.ended("b.1", 8 * SECOND);
    audit.slice(Vec::new(), Vec::new(), 500 * SECOND);
    assert!(audit.beliefs.is_empty() && audit.bodies.is_empty() && audit.seen.is_empty() && audit.ends.is_empty());
}
