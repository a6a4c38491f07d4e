//! A campaign on a server that may have forgotten: `campaign.lua`, step for step.
//!
//! All times are a wall clock's, in milliseconds, as there: it may be set back, and the server may have been another process before.

use std::time::Duration;

use jiff::Timestamp;

use super::server::Process;
use super::{Data, Group, Lease, Time, lease};
use crate::clock::Moment;
use crate::election::Oddity;
use crate::mutants::{Mutant, planted};
use crate::names::Holder;
use crate::store::coverage::{Absence, AbsenceKind, KEPT_ABSENCES};
use crate::store::error::StoreError;
use crate::store::request::{Campaign, Campaigned, Verdict};

/// A server counts in whole milliseconds.
pub(super) const GRAIN: Duration = Duration::from_millis(1);
/// What an append-only file may have lost, in ms.
const UNSYNCED: i64 = 2_000;
/// From here on numbers are no longer told apart by scripts.
const ILLEGIBLE: u64 = 1 << 53;

/// What the state of a group says of its leads. Instants in ms of the server's clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    born: Option<i64>,
    quarantine: i64,
    /// Whether it was promised that nobody could lead before the birth.
    first: bool,
    /// The server's process at the birth.
    born_in: Option<u64>,
    holder: Option<Holder>,
    ttl: i64,
    seen: Option<i64>,
    released: Option<u64>,
    vacant: Option<i64>,
    foreign_since: Option<i64>,
    foreign_until: Option<i64>,
}

impl Marks {
    /// Who was last granted the lease.
    pub(super) fn holder(&self) -> Option<&Holder> {
        self.holder.as_ref()
    }

    pub(super) fn granted(&mut self, holder: &Holder) {
        self.holder = Some(holder.clone());
    }

    pub(super) fn renewed(&mut self, ttl: Duration, time: Time<'_>) {
        (self.seen, self.ttl) = (Some(millis(time)), span(ttl));
    }

    pub(super) fn released(&mut self, term: u64, time: Time<'_>) {
        (self.released, self.vacant) = (Some(term), Some(millis(time)));
    }

    fn gave_back(&self, term: u64) -> bool {
        self.released.is_some_and(|released| released == term)
    }
}

fn millis(time: Time<'_>) -> i64 {
    time.wall.as_millisecond()
}

/// A span as it is told to a server, which is never nothing.
pub(super) fn whole(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)).max(GRAIN)
}

fn span(span: Duration) -> i64 {
    i64::try_from(whole(span).as_millis()).unwrap_or(i64::MAX / 16)
}

fn as_span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or_default()
}

pub(super) fn campaign(
    data: &mut Data,
    request: &Campaign,
    process: &Process,
    time: Time<'_>,
) -> Result<Campaigned, StoreError> {
    let group = data.groups.entry(request.group.clone()).or_default();
    let asked = Asked {
        now: millis(time),
        ttl: span(request.ttl),
        longest: span(request.longest.max(request.ttl)),
        request,
        process,
        time,
    };
    let answer = asked.judge(group);
    if answer.is_err() {
        time.forgive();
    }
    answer
}

/// One question.
struct Asked<'a> {
    now: i64,
    ttl: i64,
    longest: i64,
    request: &'a Campaign,
    process: &'a Process,
    time: Time<'a>,
}

/// The lease that is there.
struct Held {
    holder: Option<Holder>,
    /// `None` where it has no end.
    left: Option<i64>,
}

impl Asked<'_> {
    fn judge(&self, group: &mut Group) -> Result<Campaigned, StoreError> {
        let (now, term) = (self.now, group.term);
        let held = group.held(self.time.moment).map(|lease| Held {
            holder: lease.holder.clone(),
            left: (lease.ends < Moment::MAX).then(|| left(lease, self.time.moment)),
        });
        let said = |verdict, oddity| Campaigned {
            verdict,
            holder: held.as_ref().and_then(|held| held.holder.clone()),
            oddity,
        };
        if held.as_ref().is_some_and(|held| held.holder.is_none()) {
            let remaining = None;
            return Ok(said(Verdict::Held { remaining, term }, Some(Oddity::WrongType)));
        }
        let was_born = group.marks.born.is_some();
        let (first, born_in) = self.mark_birth(&mut group.marks, held.is_some())?;
        let own = held.as_ref().is_some_and(|held| self.is_own(held.holder.as_ref()));
        if let Some(Held {
            holder: Some(holder),
            left,
        }) = held.as_ref().filter(|_| !own)
        {
            let (remaining, oddity) = self.respect(group, holder, *left, was_born)?;
            let remaining = remaining.map(as_span);
            return Ok(said(Verdict::Held { remaining, term }, oddity));
        }
        let marks = &mut group.marks;
        if marks.seen.is_some_and(|seen| seen > now) {
            // The clock was set back: the last renewal was no later than now.
            self.time.grow()?;
            marks.seen = Some(now);
        }
        let born = marks.born.unwrap_or(now);
        let known_from = if first || planted(Mutant::NoBirthMark) {
            born
        } else {
            born + marks.quarantine
        };
        let wait = self.wait(group, born_in, known_from, held.is_some());
        if wait > 0 {
            let remaining = as_span(wait);
            return Ok(said(Verdict::Quarantined { remaining, term }, None));
        }
        if term > self.request.known && !planted(Mutant::StaleCampaign) {
            return Ok(said(Verdict::Stale { term }, None));
        }
        let marks = &group.marks;
        let yields = i64::try_from(self.request.yields.as_millis()).unwrap_or(i64::MAX / 16);
        if !own && yields > 0 {
            let given_back = marks.vacant.filter(|_| marks.gave_back(term));
            let ended = given_back.unwrap_or(marks.seen.unwrap_or(0) + marks.ttl);
            let rest = known_from.max(ended).min(now) + yields - now;
            if rest > 0 {
                let remaining = as_span(rest);
                return Ok(said(Verdict::Yielded { remaining, term }, None));
            }
        }
        self.grant(group, held.is_some())
    }

    /// A group without a birth mark has lost its data or never had any: an old leader may still believe.
    fn mark_birth(&self, marks: &mut Marks, held: bool) -> Result<(bool, Option<u64>), StoreError> {
        let quarantine = marks.quarantine.max(self.longest);
        if marks.born.is_none_or(|born| born > self.now) {
            self.time.grow()?;
            // The promise that no leader can be is about this moment only.
            marks.first = self.request.first_start && marks.born.is_none() && !held;
            (marks.born, marks.born_in) = (Some(self.now), Some(self.process.id));
        } else if quarantine != marks.quarantine {
            self.time.grow()?;
        }
        marks.quarantine = quarantine;
        Ok((marks.first, marks.born_in))
    }

    fn is_own(&self, holder: Option<&Holder>) -> bool {
        let request = self.request;
        holder.is_some_and(|holder| {
            let same_id = holder.as_str().contains('#') && holder.instance() == request.holder.instance();
            *holder == request.holder || (request.only_one && same_id)
        })
    }

    /// Somebody else holds the lease: for how long, in ms, and what is odd about it.
    fn respect(
        &self,
        group: &mut Group,
        holder: &Holder,
        left: Option<i64>,
        was_born: bool,
    ) -> Result<(Option<i64>, Option<Oddity>), StoreError> {
        let term = group.term;
        let marks = &mut group.marks;
        if marks.holder.as_ref() != Some(holder) {
            if was_born && !is_of_a_process(holder) {
                self.note_foreign(marks, left, term)?;
            }
            let oddity = if left.is_none() {
                Oddity::Endless
            } else {
                Oddity::Foreign
            };
            return Ok((left, Some(oddity)));
        }
        let ttl = marks.ttl;
        if ttl > 0 && left.is_none_or(|left| left > ttl) && !planted(Mutant::LeaseNotCutBack) {
            // The server's clock was set back, or somebody took the end away. No trust lasts longer than the lease was granted for.
            self.time.frees();
            if let Some(lease) = &mut group.lease {
                lease.ends = self.time.moment + as_span(ttl) + GRAIN;
            }
            return Ok((Some(ttl), Some(Oddity::Clamped)));
        }
        Ok((left, None))
    }

    /// A holder of another implementation is seen: since when, and until when its lease goes as far as is known. Where it has taken the lease
    /// from a leader, nobody knows at which instant after that one's last renewal.
    fn note_foreign(&self, marks: &mut Marks, left: Option<i64>, term: u64) -> Result<(), StoreError> {
        self.time.grow()?;
        let last_seen = marks.seen.unwrap_or(self.now).min(self.now);
        let was_led = marks.seen.is_some() && !marks.gave_back(term) && last_seen + marks.ttl > self.now;
        marks
            .foreign_since
            .get_or_insert(if was_led { last_seen } else { self.now });
        marks.foreign_until = left.map(|left| self.now + left);
        Ok(())
    }

    /// For how long an old leader may believe, in ms.
    fn wait(&self, group: &Group, born_in: Option<u64>, known_from: i64, held: bool) -> i64 {
        let (marks, term, known) = (&group.marks, group.term, self.request.known);
        let released = marks.gave_back(term);
        let led = marks.seen.is_some() && !released && known <= group.fence.max(term);
        let (ttl, longest) = (marks.ttl.max(self.ttl), marks.ttl.max(marks.quarantine));
        let mut wait = known_from - self.now;
        wait = wait.max(self.after_restart(born_in, marks.seen, ttl, longest, led));
        // A lease that is gone before its end, and was not given back, was taken away: its leader may still believe. One that asks again,
        // and knows the term, believes no longer.
        let asks_again = self.is_own(marks.holder.as_ref()) && known >= term;
        if !held && !released && !asks_again {
            wait = wait.max(marks.seen.unwrap_or(0) + marks.ttl - self.now);
        }
        wait
    }

    /// How much longer an old leader may believe because the server was restarted, in ms.
    fn after_restart(&self, born_in: Option<u64>, seen: Option<i64>, ttl: i64, longest: i64, led: bool) -> i64 {
        // The last renewal that is remembered may have been followed by one just before the lease's end, and by others in the span that
        // is lost.
        let since_renewal = seen.unwrap_or(0) + ttl + UNSYNCED + ttl - self.now;
        if born_in == Some(self.process.id) || planted(Mutant::YoungServerIgnored) {
            return 0;
        }
        let Some(age) = self.process.age(self.time.exact) else {
            return since_renewal;
        };
        let since_start = longest - age;
        if self.process.appendonly && led {
            since_renewal.min(since_start)
        } else {
            since_start
        }
    }

    fn grant(&self, group: &mut Group, held: bool) -> Result<Campaigned, StoreError> {
        let request = self.request;
        let next = (group.fence + 1).max(request.known.saturating_add(1));
        if next >= ILLEGIBLE {
            return Err(StoreError::refused("ERR"));
        }
        self.time.grow()?;
        self.note_leads(group, held);
        let keeps = held && planted(Mutant::TermKept);
        let floor = if planted(Mutant::FloorsForgotten) {
            0
        } else {
            request.known
        };
        let minted = group.mint(floor, self.time.exact);
        let term = if keeps { group.term } else { minted };
        group.term = term;
        group.lease = Some(Lease {
            holder: Some(request.holder.clone()),
            ends: lease::ends(request.ttl, self.time),
        });
        let marks = &mut group.marks;
        marks.granted(&request.holder);
        marks.renewed(request.ttl, self.time);
        (marks.released, marks.vacant) = (None, None);
        group.asked = None;
        if group.drained.is_some() || !held {
            group.late_from = group.drained.take();
        }
        Ok(Campaigned {
            verdict: Verdict::Acquired { term },
            holder: Some(request.holder.clone()),
            oddity: None,
        })
    }

    /// When the last lead ended, and the spans in which another implementation has led since.
    fn note_leads(&self, group: &mut Group, held: bool) {
        let (now, term, marks) = (self.now, group.term, &mut group.marks);
        let ended = marks.seen.filter(|_| !held).map(|seen| {
            let given_back = marks.vacant.filter(|_| marks.gave_back(term));
            given_back.unwrap_or(seen + marks.ttl).min(now)
        });
        let coverage = &mut group.coverage;
        coverage.led_until = Some(at(ended.unwrap_or(now)));
        if let Some(since) = marks.foreign_since {
            let until = marks.foreign_until.unwrap_or(now).min(now);
            if until > since {
                coverage.foreign.push(Absence {
                    kind: AbsenceKind::ForeignLeader,
                    from: at(since),
                    until: Some(at(until)),
                });
                let excess = coverage.foreign.len().saturating_sub(KEPT_ABSENCES);
                coverage.foreign.drain(..excess);
            }
        }
        if !coverage.foreign.is_empty() {
            (marks.foreign_since, marks.foreign_until) = (None, None);
        }
    }
}

/// What is left of a lease, in ms.
fn left(lease: &Lease, now: Moment) -> i64 {
    let left = lease.ends.since(now + GRAIN).as_millis();
    i64::try_from(left).unwrap_or(i64::MAX / 16)
}

/// Whether a holder is spelled as ours are: `<instance>#<nonce>`.
fn is_of_a_process(holder: &Holder) -> bool {
    let nonce = holder.as_str().rsplit_once('#').map(|(_, nonce)| nonce);
    nonce.is_some_and(|nonce| nonce.len() == 16 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
