//! The roster: the steps of `enrol.lua`, `leave.lua` and `roster.lua`.

use super::{Data, Time};
use crate::clock::Moment;
use crate::names::Holder;
use crate::store::roster::{Enrolled, Entry, Line, Roster, Twin};

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Enrolment {
    since: Moment,
    ends: Moment,
    digest: u64,
    line: Line,
}

pub(super) fn enrol(data: &mut Data, entry: Entry, time: Time<'_>) -> Enrolled {
    for line in data.roster.values_mut().filter(|line| line.since > time.moment) {
        // The server's clock was set back: the line lives as long as it was to live, from now.
        time.grows();
        line.ends = time.moment + line.ends.since(line.since);
        (line.since, line.line.seen) = (time.moment, time.wall);
    }
    let before = data.roster.len();
    data.roster
        .retain(|holder, line| *holder == entry.holder || time.moment <= line.ends);
    let mut changed = data.roster.len() != before;
    if changed {
        time.frees();
    }
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
    let none = data.revision == 0 && stranger.is_none() && introduction.is_some();
    if changed || none {
        data.revise(time);
    }
    let Some(introduction) = introduction.filter(|_| stranger.is_none()) else {
        return stranger.unwrap_or(Enrolled::Introduce);
    };
    time.grows();
    let enrolment = Enrolment {
        since: time.moment,
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

pub(super) fn leave(data: &mut Data, holder: &Holder, time: Time<'_>) {
    time.frees();
    if data.roster.remove(holder).is_some() {
        data.revise(time);
    }
}

impl Data {
    /// Another number, also after everything was lost.
    fn revise(&mut self, time: Time<'_>) {
        let micros = u64::try_from(time.exact.as_microsecond()).unwrap_or(0);
        self.revision = (self.revision + 1).max(micros);
    }
}

pub(super) fn roster(data: &Data, time: Time<'_>) -> Roster {
    let living = data.roster.values().filter(|line| time.moment <= line.ends);
    Roster {
        revision: data.revision,
        lines: living.map(|line| line.line.clone()).collect(),
    }
}
