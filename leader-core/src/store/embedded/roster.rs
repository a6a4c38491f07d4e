//! The roster: the steps of `enrol.lua`, `leave.lua` and `roster.lua`.

use super::{Data, Time};
use crate::clock::Moment;
use crate::names::Holder;
use crate::store::roster::{Enrolled, Entry, Line, Roster, Twin};

/// One instance.
#[derive(Debug)]
pub(super) struct Enrolment {
    ends: Moment,
    digest: u64,
    line: Line,
}

pub(super) fn enrol(data: &mut Data, entry: Entry, time: Time) -> Enrolled {
    let before = data.roster.len();
    data.roster
        .retain(|holder, line| *holder == entry.holder || time.moment <= line.ends);
    let mut changed = data.roster.len() != before;
    let others = || data.roster.iter().filter(|(holder, _)| **holder != entry.holder);
    let stranger = others().find(|(_, line)| line.line.service != entry.service.as_str());
    let stranger = stranger.map(|(holder, other)| Enrolled::OtherService {
        service: other.line.service.clone(),
        instance: holder.instance().to_owned(),
    });
    let same_id = others().filter(|(holder, _)| holder.instance() == entry.holder.instance());
    let twin = same_id
        .max_by_key(|(_, line)| line.line.seen)
        .map(|(holder, line)| Twin {
            holder: holder.clone(),
            seen: line.line.seen,
        });
    let kept = data
        .roster
        .get(&entry.holder)
        .filter(|kept| kept.digest == entry.digest);
    let introduction = match (kept, entry.introduction) {
        (Some(kept), _) => Some(kept.line.introduction.clone()),
        (None, given) => given.inspect(|_| changed |= stranger.is_none()),
    };
    data.revision += u64::from(changed);
    let Some(introduction) = introduction.filter(|_| stranger.is_none()) else {
        return stranger.unwrap_or(Enrolled::Introduce);
    };
    let enrolment = Enrolment {
        ends: time.moment + entry.ttl,
        digest: entry.digest,
        line: Line {
            holder: entry.holder.clone(),
            service: entry.service.to_string(),
            seen: time.wall,
            beat: entry.beat,
            introduction,
        },
    };
    data.roster.insert(entry.holder, enrolment);
    let revision = data.revision;
    Enrolled::Yes {
        now: time.exact,
        revision,
        twin,
    }
}

pub(super) fn leave(data: &mut Data, holder: &Holder) {
    data.revision += u64::from(data.roster.remove(holder).is_some());
}

pub(super) fn roster(data: &Data, time: Time) -> Roster {
    let living = data.roster.values().filter(|line| time.moment <= line.ends);
    Roster {
        revision: data.revision,
        lines: living.map(|line| line.line.clone()).collect(),
    }
}
