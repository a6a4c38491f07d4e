//! The names of the environment variables, and which one was probably meant.

use crate::job::record::Record;

/// The variables that are not a job's.
const VARIABLES: &[&str] = &[
    "LEADER_CAMPAIGN",
    "LEADER_DRAIN",
    "LEADER_EXCLUSIVE_ID",
    "LEADER_FIRST_START",
    "LEADER_FOLLOW_STORE_CLOCK",
    "LEADER_INSTANCE_ID",
    "LEADER_JOBS",
    "LEADER_MAX_CONCURRENT_JOBS",
    "LEADER_MAX_CONCURRENT_TASKS",
    "LEADER_NAMESPACE",
    "LEADER_REDIS_URL",
    "LEADER_REQUIRE_STORE",
    "LEADER_SERVICE",
    "LEADER_SPREAD",
    "LEADER_STORE",
    "LEADER_TASKS",
    "LEADER_TIME_ZONES",
    "LEADER_TTL",
    "LEADER_VERSION",
];

/// What a job's variables end with.
const JOB_VARIABLES: &[&str] = &[
    "_CRON",
    "_EVERY",
    "_TIMEZONE",
    "_DAYS",
    "_GRACE",
    "_JITTER",
    "_RETRIES",
    "_BACKOFF",
    "_EXCEPT",
];

/// How the variables of a job begin.
pub(super) fn job_prefix(name: &str) -> String {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    format!("LEADER_JOB_{}", name.chars().map(upper).collect::<String>())
}

/// Whether a variable is a setting of this program.
pub(super) fn is_known(variable: &str, records: &[&Record]) -> bool {
    let mut jobs = JOB_VARIABLES.iter().filter_map(|end| variable.strip_suffix(end));
    VARIABLES.contains(&variable) || jobs.any(|job| records.iter().any(|record| job_prefix(record.name) == job))
}

/// The known name that a stranger's was probably meant to be: a few letters put in, taken out or changed.
pub(super) fn nearest(variable: &str, records: &[&Record]) -> Option<String> {
    let own = VARIABLES.iter().map(|name| (*name).to_owned());
    let of_job = |record: &&Record| {
        let prefix = job_prefix(record.name);
        JOB_VARIABLES.iter().map(move |end| format!("{prefix}{end}"))
    };
    let known = own.chain(records.iter().flat_map(of_job));
    let near = known.map(|name| (changes(variable, &name), name));
    let (count, name) = near.min()?;
    // `LEADER_` is in all of them.
    (count <= name.len().saturating_sub("LEADER_".len()).div_ceil(4)).then_some(name)
}

/// The distance of Levenshtein.
fn changes(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<_> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
