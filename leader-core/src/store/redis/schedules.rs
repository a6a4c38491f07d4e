//! Reads the schedules that are kept of a job. What cannot be read of one is left out: it stops nothing else.

use super::answer::instant;
use crate::store::schedules::{EarlierSchedule, StoredSchedule};

/// A schedule and what is kept about it: `since|time zones|instance|version`.
pub(super) fn stored(text: &str, about: &str) -> StoredSchedule {
    let mut words = about.splitn(4, '|');
    let mut next = || words.next().unwrap_or_default();
    StoredSchedule {
        text: text.to_owned(),
        since: instant(next()).ok(),
        time_zones: next().to_owned(),
        by: next().to_owned(),
        version: next().to_owned(),
    }
}

/// The schedule in force and the earlier ones, out of the fields of a job's hash.
pub(super) fn of_job(fields: &[String]) -> (Option<StoredSchedule>, Vec<EarlierSchedule>) {
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        pairs.find(|pair| pair[0] == name).map(|pair| pair[1].as_str())
    };
    let about = field("schedule_about").unwrap_or_default();
    // One that was made at run time and has ended has none in force.
    let in_force = field("schedule").filter(|text| !text.is_empty());
    let in_force = in_force.map(|text| stored(text, about));
    let earlier = field("schedules").unwrap_or_default().lines();
    (in_force, earlier.filter_map(earlier_one).collect())
}

/// `until|since|time zones|instance|version|schedule`
fn earlier_one(line: &str) -> Option<EarlierSchedule> {
    let (until, rest) = line.split_once('|')?;
    let (at, _) = rest.match_indices('|').nth(3)?;
    let (about, text) = rest.split_at(at);
    Some(EarlierSchedule {
        schedule: stored(text.get(1..)?, about),
        until: instant(until).ok()?,
    })
}
