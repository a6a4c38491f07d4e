//! The house rules that a compiler does not know: who may import whom, how large a room may grow, what belongs where.

mod record;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest source file, tests aside.
const LONGEST: usize = 400;

/// The rooms of `leader-core`, lowest first: a room imports from its own floor's neighbours named here, and from below.
const ROOMS: &[(&str, &[&str])] = &[
    // Faults planted for the suites: the constant `false` unless a feature says otherwise, so that the pure rooms stay pure.
    ("mutants", &[]),
    ("clock", &[]),
    ("names", &[]),
    ("timing", &[]),
    ("election", &["clock", "mutants", "names", "timing"]),
    ("schedule", &["clock", "mutants", "names", "timing"]),
    ("job", &["clock", "mutants", "names", "timing", "schedule"]),
    (
        "store",
        &["clock", "mutants", "names", "timing", "schedule", "election", "job"],
    ),
    ("event", &["clock", "names", "timing", "election", "job", "store"]),
    ("fencing", &["names", "job"]),
    ("telemetry", &["election", "event", "job", "schedule"]),
    (
        "metrics",
        &["clock", "names", "schedule", "election", "job", "store", "event"],
    ),
    (
        "runtime",
        &[
            "clock",
            "mutants",
            "names",
            "timing",
            "schedule",
            "election",
            "job",
            "store",
            "event",
            "telemetry",
            "metrics",
        ],
    ),
    // What works beside the engine: the runtime knows it by a trait only.
    (
        "tasks",
        &[
            "clock", "mutants", "names", "timing", "schedule", "job", "store", "event", "metrics", "runtime",
        ],
    ),
    (
        "instance",
        &[
            "clock", "names", "timing", "schedule", "job", "store", "event", "metrics", "runtime", "tasks",
        ],
    ),
    // What programs of other kinds ask over HTTP.
    ("admin", &["names", "instance"]),
    (
        "bootstrap",
        &[
            "clock", "names", "timing", "schedule", "job", "store", "event", "metrics", "runtime", "tasks", "instance",
        ],
    ),
    (
        "testing",
        &[
            "bootstrap",
            "clock",
            "election",
            "event",
            "instance",
            "job",
            "mutants",
            "names",
            "runtime",
            "schedule",
            "store",
            "tasks",
            "timing",
        ],
    ),
    ("private", &["names", "schedule", "job", "tasks"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a workspace")
        .to_owned()
}

/// Every Rust file below a folder, with its text.
fn sources(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable source");
                found.insert(path, text);
            }
        }
    }
    found
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The text before a file's own unit tests.
fn shipped(text: &str) -> &str {
    let Some(tests) = text.find("\nmod tests {") else {
        return text;
    };
    let attribute = text[..tests].rfind("\n#[cfg(");
    &text[..attribute.unwrap_or(tests)]
}

/// The first segment of a path below `src`.
fn room(path: &Path) -> String {
    let below = path
        .strip_prefix(root().join("leader-core/src"))
        .expect("a file of the core");
    let first = below
        .components()
        .next()
        .expect("a name")
        .as_os_str()
        .to_string_lossy()
        .into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The rooms that a text names as `crate::room`, comments aside.
fn named_rooms(text: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("crate::") {
            let name: String = line[at + 7..]
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                .collect();
            if ROOMS.iter().any(|(room, _)| *room == name) {
                rooms.push(name);
            }
        }
    }
    rooms
}

#[test]
fn imports_run_downward_only() {
    let mut wrong = Vec::new();
    for (path, text) in sources(&root().join("leader-core/src")) {
        let here = room(&path);
        if here == "lib" || is_test(&path) {
            continue;
        }
        let Some((_, below)) = ROOMS.iter().find(|(room, _)| *room == here) else {
            wrong.push(format!("{}: no room of this name in the map", path.display()));
            continue;
        };
        for there in named_rooms(shipped(&text)) {
            if there != here && !below.contains(&there.as_str()) {
                wrong.push(format!("{}: `{here}` may not import `{there}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_pure_cores_know_no_io_and_no_clock() {
    let mut wrong = Vec::new();
    for core in ["election", "schedule"] {
        // Their tests, too: how long something takes is measured from outside.
        for (path, text) in sources(&root().join("leader-core/src").join(core)) {
            for (number, line) in text.lines().enumerate() {
                let code = !line.trim_start().starts_with("//");
                let outside = [
                    "tokio::",
                    "redis::",
                    "tracing::",
                    "Instant::now",
                    "SystemTime::now",
                    "Timestamp::now",
                ];
                if code && outside.iter().any(|word| line.contains(word)) {
                    wrong.push(format!("{}:{}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_clock_reads_a_clock() {
    let mut wrong = Vec::new();
    for (path, text) in sources(&root().join("leader-core/src")) {
        if room(&path) == "clock" || is_test(&path) {
            continue;
        }
        for line in shipped(&text)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            if ["Instant::now", "SystemTime::now", "Timestamp::now", "clock_gettime"]
                .iter()
                .any(|word| line.contains(word))
            {
                wrong.push(format!("{}: {line}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_redis_store_knows_redis() {
    let allowed = |path: &Path| {
        path.starts_with(root().join("leader-core/src/store/redis"))
            // The one constructor that takes a client.
            || path.ends_with("bootstrap/source.rs")
    };
    let mut wrong = Vec::new();
    for (path, text) in sources(&root().join("leader-core/src")) {
        let code = |line: &&str| !line.trim_start().starts_with("//");
        let names_it = |line: &str| line.replace("store::redis::", "").contains("redis::");
        if !allowed(&path) && shipped(&text).lines().filter(code).any(names_it) {
            wrong.push(path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_room_grows_beyond_what_a_visitor_takes_in() {
    let mut wrong = Vec::new();
    for package in ["leader-core/src", "leader-macros/src", "examples"] {
        for (path, text) in sources(&root().join(package)) {
            let lines = shipped(&text).lines().count();
            if !is_test(&path) && lines > LONGEST {
                wrong.push(format!("{}: {lines} lines", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is() {
    let mut wrong = Vec::new();
    for package in ["leader-core/src", "leader-macros/src", "examples", "tests"] {
        for (path, text) in sources(&root().join(package)) {
            // The compiler's messages quote the UI cases line by line.
            let ui = path.components().any(|part| part.as_os_str() == "ui");
            if !ui && !text.starts_with("//!") && !text.starts_with("#![doc") {
                wrong.push(path.display().to_string());
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
