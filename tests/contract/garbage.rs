//! Keys and fields as somebody else may have written them: what cannot be read of one job stops no other, and no call of the group.

use std::fmt::Debug;

use jiff::SignedDuration;
use leader_core::__seam::{
    ActRequest, Acted, ClaimReply, Cover, Deed, Gap, MadeReply, MakeRequest, Making, Settled, TakenOver, UNLED, Want,
    Writer,
};
use leader_core::{Holder, Ran};

use crate::bench::{Bench, after, claim, end, holder, job};

/// What may stand where a number, a line or a name was. `\255` is no sign of any text.
pub(crate) const JUNK: [&str; 14] = [
    "garbage",
    "",
    "-5",
    "1e300",
    "nan",
    "inf",
    "99999999999999999999",
    "253402207200001",
    "9007199254740993",
    "|||||||||||",
    "a b\\nc",
    "\\0",
    "\\255\\254",
    "9...",
];

pub(crate) fn junk(word: &str) -> String {
    match word {
        "9..." => "9".repeat(400),
        other => other.to_owned(),
    }
}

struct Case {
    bench: Bench,
    a: Holder,
    term: u64,
    begun: jiff::Timestamp,
}

impl Case {
    async fn new() -> Self {
        let bench = Bench::redis().await;
        let a = holder("a");
        let term = bench.acquire(&a).await;
        let TakenOver::Yours { cursors, .. } = bench.take_over(&a, term, &["job", "beside"]).await else {
            panic!("not led")
        };
        assert!(matches!(make(&bench, "job.made").await, Ok(MadeReply::Done { .. })));
        let begun = cursors[1];
        Self { bench, a, term, begun }
    }

    fn key(&self, part: &str) -> String {
        format!("{{{}:leader:cleanup}}:{part}", self.bench.namespace)
    }

    /// Writes with a script: its words have escapes for what is no text.
    async fn write(&self, script: &str) {
        let server = self.bench.server.as_ref().unwrap();
        let script = script.replace('$', &self.key(""));
        let answer = server.command(&["EVAL", &script, "0"]).await;
        assert!(
            matches!(answer, redis::Value::Okay | redis::Value::Int(_)),
            "{answer:?}"
        );
    }

    /// What fails of the other job, and of the group.
    #[allow(clippy::too_many_lines, reason = "every call once")]
    async fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut check = |what: &str, fine: bool, told: &dyn Debug| {
            if !fine {
                failures.push(format!(
                    "{what}: {}",
                    format!("{told:?}").chars().take(200).collect::<String>()
                ));
            }
        };
        let Self { bench, a, term, begun } = self;
        let store = &bench.store;
        // Claims of a leader that took over before, then one that takes over now.
        for (round, numbers) in [(1, 10), (2, 20), (3, 30)] {
            if round > 1 {
                let request = leader_core::__seam::TakeOver {
                    group: bench.group.clone(),
                    holder: a.clone(),
                    term: *term,
                    jobs: vec![job("job"), job("beside")],
                    schedules: vec!["every 1s".into(), "every 1s".into()],
                    writer: Writer::default(),
                    elsewhere: Some(vec![job("job")]),
                    was: Vec::new(),
                    beside: Vec::new(),
                };
                let taken = store.take_over(request).await;
                check("take over", matches!(taken, Ok(TakenOver::Yours { .. })), &taken);
            }
            let ticks = [after(*begun, round), after(*begun, round)];
            let claims = vec![
                claim(
                    "job",
                    numbers,
                    ticks[0] - SignedDuration::from_secs(1),
                    ticks[0],
                    Want::Run,
                ),
                claim("job", numbers + 1, ticks[0], ticks[0], Want::Look),
                claim(
                    "beside",
                    numbers + 2,
                    ticks[1] - SignedDuration::from_secs(1),
                    ticks[1],
                    Want::Run,
                ),
            ];
            let claimed = store.claim(vec![bench.batch(a, *term, claims)]).await.remove(0);
            let replies = match &claimed {
                Ok(leader_core::__seam::Claimed::Yours(replies)) => replies.clone(),
                _ => Vec::new(),
            };
            let won = |at: usize| match replies.get(at) {
                Some(ClaimReply::Won { fence }) => Some(*fence),
                _ => None,
            };
            check("claim", won(2).is_some(), &claimed);
            let mut ends: Vec<_> = won(2).into_iter().map(|fence| end("beside", fence, Ran::Ok)).collect();
            ends.push(end("job", won(0).unwrap_or(5), Ran::Ok));
            let batch = leader_core::__seam::SettleBatch {
                group: bench.group.clone(),
                ends,
            };
            let settled = store.settle(vec![batch]).await.remove(0);
            let fine = settled
                .as_ref()
                .is_ok_and(|settled| settled.first() == Some(&Settled::Yes));
            check("settle", fine || won(2).is_none(), &settled);
        }
        let cover = Cover {
            group: bench.group.clone(),
            holder: a.clone(),
            term: *term,
            jobs: vec![job("beside")],
            elsewhere: Some(vec![job("job")]),
        };
        let covered = store.cover(cover).await;
        check("cover", matches!(covered, Ok(true)), &covered);
        for deed in [Deed::pause(Gap::Skip, None), Deed::Resume, Deed::Trigger] {
            let request = ActRequest {
                group: bench.group.clone(),
                job: Some(job("beside")),
                deed,
                by: "ann".to_owned(),
                reason: String::new(),
            };
            let acted = store.act(request).await;
            check("act", matches!(acted, Ok(Acted::Done { .. })), &acted);
        }
        let control = store.control(&bench.group).await;
        check("control", control.is_ok(), &control);
        let before = control.map(|control| control.number).unwrap_or_default();
        let made = make(bench, "beside.made").await;
        check("make", matches!(made, Ok(MadeReply::Done { .. })), &made);
        let control = store.control(&bench.group).await;
        let now = control.as_ref().map(|control| control.number).unwrap_or_default();
        check("number", now > before, &(before, now));
        let list = store.made(&bench.group, 0).await;
        let listed = list.as_ref().is_ok_and(|list| {
            let known = |entry: &&leader_core::__seam::MadeEntry| entry.name == "beside.made";
            list.entries
                .iter()
                .find(known)
                .is_some_and(|entry| entry.line.is_some() && entry.payload.is_some())
        });
        check("made", listed, &list);
        check("renew", bench_renews(bench, a, *term).await, &"");
        let ledger = store.ledger(&bench.group, &job("beside")).await;
        check("ledger", ledger.is_ok(), &ledger);
        // Its own calls answer too.
        let made = make(bench, "job.made").await;
        check("own make", made.is_ok(), &made);
        let request = MakeRequest {
            what: Making::End,
            ..request(bench, "job.made")
        };
        let ended = store.make(request).await;
        check("own end", ended.is_ok(), &ended);
        failures
    }
}

async fn bench_renews(bench: &Bench, a: &Holder, term: u64) -> bool {
    let renewal = leader_core::__seam::Renewal {
        group: bench.group.clone(),
        holder: a.clone(),
        term,
        ttl: crate::bench::LONG,
    };
    let told = bench.store.renew(vec![renewal], Vec::new()).await;
    matches!(told.renewed[0], Ok(leader_core::__seam::Renewed::Yes { .. }))
}

fn request(bench: &Bench, name: &str) -> MakeRequest {
    MakeRequest {
        group: bench.group.clone(),
        name: job(name),
        what: Making::Make {
            handler: job("handler"),
            schedule: "every 1s".into(),
            payload: "1".into(),
        },
        by: "ann".to_owned(),
        writer: Writer::default(),
    }
}

async fn make(bench: &Bench, name: &str) -> Result<MadeReply, leader_core::StoreError> {
    bench.store.make(request(bench, name)).await
}

async fn try_all(scripts: Vec<String>) {
    let mut failed = Vec::new();
    for script in scripts {
        let case = Case::new().await;
        case.write(&script).await;
        for failure in case.failures().await {
            failed.push(format!("{}: {failure}", script.chars().take(120).collect::<String>()));
        }
    }
    assert!(failed.is_empty(), "{} failures:\n{}", failed.len(), failed.join("\n"));
}

/// One script for each of these values in each of these fields, `#` being the value.
fn each(fields: &[(&str, &str, &str)]) -> Vec<String> {
    let mut scripts = Vec::new();
    for (key, field, line) in fields {
        for word in JUNK {
            let line = line.replace('#', &junk(word));
            let field = field.replace('#', &junk(word));
            // Where it is a sign of life, it is one of this run.
            let open = match *key {
                "beats" => "redis.call('HSET', '$job:job', 'open', '1|schedule|5|2|1|3|z#1|1||') ",
                "job:job" if field.starts_with("n:overlap") => {
                    "redis.call('HSET', '$beats', '5', '9999999999999') \
                     redis.call('HSET', '$job:job', 'open', '1|schedule|5|2|1|3|z#1|1||') "
                }
                "control" => "redis.call('HSET', '$lease', 'controlled', '1') ",
                _ => "",
            };
            scripts.push(format!(
                "{open}return redis.call('HSET', '${key}', '{field}', '{line}')"
            ));
        }
    }
    scripts
}

#[tokio::test]
async fn a_job_whose_fields_are_of_no_use_stops_no_other() {
    let mut fields = Vec::new();
    for field in [
        "cursor",
        "open",
        "waiting",
        "schedule",
        "schedule_about",
        "schedules",
        "moved",
        "made",
        "retired",
        "since",
        "kept:ran",
        "kept:passed",
        "n:ran.ok",
        "n:overlap_skipped",
        "n:ran.lost",
    ] {
        fields.push(("job:job", field, "#"));
        fields.push(("job:job.made", field, "#"));
    }
    fields.push(("job:job", "open", "#|schedule|5|2|1|3|z#1|1||"));
    fields.push(("job:job", "open", "1|schedule|#|2|1|3|z#1|1||"));
    fields.push(("job:job", "open", "1|schedule|5|2|1|3|z#1|#|9|ran.error"));
    fields.push(("job:job", "open", "1|schedule|5|2|1|3|z#1|1|#|ran.error"));
    try_all(each(&fields)).await;
}

#[tokio::test]
async fn what_is_of_no_use_in_the_keys_of_a_group_stops_no_job_of_it() {
    try_all(each(&[
        ("coverage", "job", "#"),
        ("coverage", "job", ">#"),
        ("coverage", "job", "u|#|"),
        ("coverage", "job", "r|1|#"),
        ("coverage", "#", "u|1|"),
        ("coverage", "gone", "#"),
        ("schedules", "job.made", "#"),
        ("schedules", "job.made", "#|1|1|ann|1|handler|every 1s"),
        ("schedules", "job.made", "1|#|1|ann|1|handler|every 1s"),
        ("schedules", "job.made", "1|1|#|ann|1|handler|every 1s"),
        ("schedules", "#", "1|1|1|ann|1|handler|every 1s"),
        ("schedules", "~#", "1|1|1|ann|1|handler|every 1s"),
        ("payloads", "job.made", "#"),
        ("control", "p:job", "#"),
        ("control", "p:job", "1|skip|#||ann|"),
        ("control", "p:job", "1|skip|1|#|ann|"),
        ("control", "p:job", "1|owed|1|#|ann|"),
        ("control", "p:job", "#|owed|1||ann|"),
        ("control", "p:x#", "1|skip|1||ann|"),
        ("control", "e:5", "#"),
        ("control", "e:5", "job|1|skip|#|9|ann|"),
        ("control", "e:5", "job|1|skip|1|#|ann|"),
        ("control", "e:#", "job|1|skip|1|99999999999999|ann|"),
        ("control", "r:5", "#"),
        ("control", "r:5", "backfill|job|#|2||1|ann|"),
        ("control", "r:#", "backfill|job|1|2||1|ann|"),
        ("beats", "5", "#"),
        ("lease", "control", "#"),
        ("lease", "made", "#"),
        ("lease", "controlled", "#"),
        ("lease", "triggered", "#"),
        ("lease", "led_until", "#"),
        ("lease", "late_from", "#"),
        ("lease", "foreign", "#"),
        ("lease", "foreign", "f|1|#"),
    ]))
    .await;
}

/// Names that go on under each other.
#[tokio::test]
async fn a_circle_of_names_stops_no_job() {
    let mut scripts = vec!["return redis.call('HSET', '$job:job', 'moved', 'job')".to_owned()];
    for names in [
        "'job', '>job'",
        "'job', '>x', 'x', '>job'",
        "'job', '>x', 'x', '>y', 'y', '>job'",
        "'x', '>y', 'y', '>z', 'z', '>x', 'job', '>x'",
    ] {
        scripts.push(format!("return redis.call('HSET', '$coverage', {names})"));
        // Where every one of the names has a hash that says so too.
        scripts.push(format!(
            "for _, name in ipairs({{'job', 'x', 'y'}}) do redis.call('HSET', '$job:' .. name, 'moved', name == 'job' and 'x' or name == 'x' and 'y' or 'job') end \
             return redis.call('HSET', '$coverage', {names})"
        ));
    }
    try_all(scripts).await;
}

/// One type of key where another was.
fn of_another_type(key: &str) -> [String; 2] {
    [
        format!("redis.call('DEL', '${key}') return redis.call('SET', '${key}', 'x')"),
        format!("redis.call('DEL', '${key}') return redis.call('SADD', '${key}', 'x')"),
    ]
}

#[tokio::test]
async fn keys_of_another_type_stop_no_job_but_their_own() {
    let keys = [
        "job:job",
        "ran:job",
        "passed:job",
        "job:job.made",
        "coverage",
        "acts",
        "beats",
    ];
    try_all(keys.into_iter().flat_map(of_another_type).collect()).await;
}

/// Who asks for what such a key has is told so, and nothing is half done.
#[tokio::test]
async fn keys_of_a_group_of_another_type_are_told_and_stop_no_job() {
    for (key, asked) in [
        ("schedules", &["make", "made", "own make", "own end", "number"][..]),
        ("payloads", &["make", "made", "own make", "own end", "number"]),
        ("control", &["act", "control", "number"]),
    ] {
        for script in of_another_type(key) {
            let case = Case::new().await;
            case.write(&script).await;
            let server = case.bench.server.as_ref().unwrap();
            let length = async || server.command(&["HLEN", &case.key("schedules")]).await;
            let before = (key == "payloads").then_some(length().await);
            for failure in case.failures().await {
                let (what, told) = failure.split_once(": ").unwrap();
                assert!(asked.contains(&what), "{key}: {failure}");
                assert!(what == "number" || told.contains("WRONGTYPE"), "{key}: {failure}");
            }
            if let Some(before) = before {
                assert_eq!(length().await, before, "{key}");
            }
        }
    }
}

/// From 2^53 on two numbers may be one to a script, and two runs would have the same fence.
#[tokio::test]
async fn no_fence_is_minted_where_numbers_are_no_longer_told_apart() {
    let case = Case::new().await;
    let server = case.bench.server.as_ref().unwrap();
    server.command(&["SET", &case.key("fence"), "9007199254740992"]).await;
    for (who, term) in [(case.a.clone(), case.term), (holder("b"), UNLED)] {
        let run = claim("job", 1, case.begun, after(case.begun, 1), Want::Run);
        let mut answers = case
            .bench
            .store
            .claim(vec![case.bench.batch(&who, term, vec![run])])
            .await;
        let error = answers.pop().unwrap().unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert!(
            format!("{error} {source:?}").contains("counter of terms and fences is corrupt"),
            "{error:?}"
        );
    }
}
