//! Judges the merged logs of a fleet: what must never be seen, whatever happened to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// One line of one process.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Line {
    /// What happened: `elected`, `lost`, `tick`; others are passed over.
    pub event: String,
    /// Who tells it.
    pub instance: String,
    /// When, on one clock that all instances share.
    pub mono_ns: u64,
    /// The group.
    pub group: Option<String>,
    /// Of `tick`: the job.
    pub job: Option<String>,
    /// Of `tick`: the planned instant.
    pub scheduled_at: Option<String>,
    /// Of `elected` and `lost`: the term.
    pub fence: Option<u64>,
    /// Of `tick`: the term that it runs under.
    pub term: Option<u64>,
    /// Of `lost`: when belief ended.
    pub until_ns: Option<u64>,
}

impl Line {
    /// Whether it tells of this event in this group.
    #[must_use]
    pub fn is(&self, event: &str, group: &str) -> bool {
        self.event == event && self.group.as_deref() == Some(group)
    }

    fn group(&self) -> &str {
        self.group.as_deref().unwrap_or_default()
    }

    fn job(&self) -> &str {
        self.job.as_deref().unwrap_or_default()
    }

    fn fence(&self) -> u64 {
        self.fence.unwrap_or_default()
    }
}

/// A time in which an instance believed that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// In which group.
    pub group: String,
    /// Who.
    pub instance: String,
    /// Under which term.
    pub term: u64,
    /// When it was elected.
    pub from: u64,
    /// `u64::MAX` while it goes on.
    pub until: u64,
}

/// When belief ended on instances that could not tell: by instance and group.
pub type Ends = BTreeMap<(String, String), u64>;

/// How far a body's own first look at the clock may lie behind the guard's look that let it start: the two are steps of a thread
/// that the system may hold up in between.
const PREEMPTION: u64 = 20_000_000;

/// The spans of all groups, in order of their beginnings.
#[must_use]
pub fn spans(lines: &[Line], ends: &Ends) -> Vec<Span> {
    let mut spans: Vec<_> = lines
        .iter()
        .filter(|line| line.event == "elected")
        .map(|elected| {
            let (group, instance, term) = (elected.group().to_owned(), elected.instance.clone(), elected.fence());
            let ours = |line: &&Line| line.is("lost", &group) && line.instance == instance && line.fence() == term;
            let told = lines.iter().find(ours).and_then(|lost| lost.until_ns);
            let cut = ends.get(&(instance.clone(), group.clone())).copied();
            Span {
                from: elected.mono_ns,
                until: told.or(cut).unwrap_or(u64::MAX),
                group,
                instance,
                term,
            }
        })
        .collect();
    spans.sort_by_key(|span| span.from);
    spans
}

/// Everything that must not be.
#[must_use]
pub fn violations(lines: &[Line], ends: &Ends) -> Vec<String> {
    let mut lines = lines.to_vec();
    lines.sort_by_key(|line| line.mono_ns);
    let spans = spans(&lines, ends);
    let mut found = doubled_ticks(&lines);
    found.extend(overlaps(&spans));
    found.extend(falls(&lines));
    found.extend(outside(&lines, &spans));
    found
}

/// A tick whose body was started twice.
fn doubled_ticks(lines: &[Line]) -> Vec<String> {
    let mut starts: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.event == "tick") {
        let key = (line.group(), line.job(), line.scheduled_at.clone());
        starts.entry(key).or_default().push(&line.instance);
    }
    let doubled = starts.into_iter().filter(|(_, by)| by.len() > 1);
    doubled
        .map(|(tick, by)| format!("{tick:?} was started by {by:?}"))
        .collect()
}

/// Two who believe at once.
fn overlaps(spans: &[Span]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, one) in spans.iter().enumerate() {
        for two in spans[at + 1..].iter().filter(|two| two.group == one.group) {
            if two.from < one.until {
                found.push(format!("two leaders at once: {one:?} and {two:?}"));
            }
        }
    }
    found
}

/// Numbers that do not rise: the terms of a group; the fences of a job, and the terms between them; a number given twice.
fn falls(lines: &[Line]) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut terms: BTreeMap<&str, u64> = BTreeMap::new();
    let mut fences: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in lines {
        let (group, number) = (line.group(), line.fence());
        let floor = match line.event.as_str() {
            "elected" => {
                let of_jobs = fences
                    .iter()
                    .filter(|((of, _), _)| *of == group)
                    .map(|(_, fence)| *fence);
                let floor = of_jobs.chain(terms.get(group).copied()).max().unwrap_or(0);
                terms.insert(group, number);
                floor
            }
            "tick" => {
                let term = line.term.unwrap_or_default();
                let own = fences.insert((group, line.job()), number).unwrap_or(0);
                // A body started under an older term would be found by its own term, or by the spans.
                own.max(term).max(terms.get(group).copied().unwrap_or(0))
            }
            _ => continue,
        };
        if number <= floor {
            found.push(format!("{number} is not above {floor}: {line:?}"));
        }
        if !seen.insert((group, number)) {
            found.push(format!("{number} was given twice: {line:?}"));
        }
    }
    found
}

/// A body that was started by somebody who did not believe.
fn outside(lines: &[Line], spans: &[Span]) -> Vec<String> {
    let ticks = lines.iter().filter(|line| line.event == "tick");
    let outside = ticks.filter(|tick| {
        let within = |span: &Span| {
            span.group == tick.group()
                && span.instance == tick.instance
                && Some(span.term) == tick.term
                && (span.from..span.until.saturating_add(PREEMPTION)).contains(&tick.mono_ns)
        };
        !spans.iter().any(within)
    });
    outside
        .map(|tick| format!("started without the lead: {tick:?}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, instance: &str, mono_ns: u64, fence: u64) -> Line {
        Line {
            event: event.to_owned(),
            instance: instance.to_owned(),
            mono_ns,
            group: Some("default".to_owned()),
            fence: Some(fence),
            ..Line::default()
        }
    }

    fn elected(instance: &str, at: u64, term: u64) -> Line {
        line("elected", instance, at, term)
    }

    fn lost(instance: &str, at: u64, term: u64, until: u64) -> Line {
        Line {
            until_ns: Some(until),
            ..line("lost", instance, at, term)
        }
    }

    fn tick(instance: &str, at: u64, term: u64, fence: u64, planned: &str) -> Line {
        Line {
            job: Some("beat".to_owned()),
            term: Some(term),
            scheduled_at: Some(planned.to_owned()),
            ..line("tick", instance, at, fence)
        }
    }

    /// A handover as it should be, the old leader telling of its end late.
    fn good() -> Vec<Line> {
        vec![
            elected("a", 100, 10),
            tick("a", 110, 10, 11, "1"),
            tick("a", 120, 10, 12, "2"),
            elected("b", 300, 20),
            tick("b", 310, 20, 21, "3"),
            lost("a", 900, 10, 250),
        ]
    }

    fn found(lines: &[Line], what: &str) {
        let found = violations(lines, &Ends::new());
        assert!(found.iter().any(|text| text.contains(what)), "{what}: {found:?}");
    }

    #[test]
    fn a_good_log_passes_in_any_order() {
        let mut lines = good();
        assert_eq!(violations(&lines, &Ends::new()), Vec::<String>::new());
        lines.reverse();
        assert_eq!(violations(&lines, &Ends::new()), Vec::<String>::new());
    }

    #[test]
    fn overlapping_spans_are_seen() {
        let mut lines = good();
        lines[5].until_ns = Some(301);
        found(&lines, "two leaders");
    }

    #[test]
    fn an_open_span_overlaps_whatever_follows_unless_its_end_is_known() {
        let mut lines = good();
        lines.pop();
        found(&lines, "two leaders");
        let end = |at| Ends::from([(("a".to_owned(), "default".to_owned()), at)]);
        assert_eq!(violations(&lines, &end(299)), Vec::<String>::new());
        assert!(!violations(&lines, &end(301)).is_empty());
    }

    #[test]
    fn a_doubled_tick_is_seen_whoever_started_it() {
        let mut lines = good();
        lines.push(tick("b", 320, 20, 22, "2"));
        found(&lines, "was started by [\"a\", \"b\"]");
    }

    #[test]
    fn a_falling_fence_or_term_is_seen() {
        let mut lines = good();
        lines.push(tick("b", 320, 20, 20, "4"));
        found(&lines, "20 is not above 21");
        let mut lines = good();
        lines.push(elected("c", 2000, 15));
        lines.push(lost("b", 1000, 20, 1000));
        found(&lines, "15 is not above 21");
    }

    #[test]
    fn a_number_that_two_jobs_got_is_seen() {
        let mut lines = good();
        let mut other = tick("b", 320, 20, 21, "3");
        other.job = Some("flaky".to_owned());
        lines.push(other);
        found(&lines, "21 was given twice");
    }

    #[test]
    fn a_body_without_the_lead_is_seen() {
        let mut lines = good();
        lines.push(tick("a", 250 + PREEMPTION, 10, 13, "5"));
        found(&lines, "started without the lead");
    }
}
