//! How soon a group was led again, and other figures of a run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use leader_tests::audit::Line;

use crate::TTL;
use crate::nemesis::{Done, Ending};
use crate::plan::Fault;

/// How long groups were without a leader, in nanoseconds.
#[derive(Debug, Default)]
pub struct Vacancies {
    /// After SIGTERM and after SIGKILL; those while nothing else went wrong, and all.
    spans: BTreeMap<(bool, bool), Vec<u64>>,
}

impl Vacancies {
    /// Measures, for each group that an ended process led, from the end of its belief to the next one's first instant.
    pub fn measure(&mut self, endings: &[Ending], done: &[Done], lines: &[Line]) {
        for ending in endings {
            for group in &ending.groups {
                let began = if ending.killed {
                    Some(ending.at)
                } else {
                    let of = |line: &&Line| {
                        line.event == "lost"
                            && line.life == ending.life
                            && line.group == *group
                            && line.until >= ending.at
                    };
                    lines.iter().find(of).map(|line| line.until)
                };
                let Some(began) = began else { continue };
                let next = |line: &&Line| line.event == "elected" && line.group == *group && line.at > began;
                let Some(again) = lines.iter().filter(next).map(|line| line.at).min() else {
                    continue;
                };
                let took = again - began;
                if is_peace(done, ending, began, again) {
                    self.spans.entry((ending.killed, true)).or_default().push(took);
                }
                self.spans.entry((ending.killed, false)).or_default().push(took);
            }
        }
    }

    /// The median of each, while nothing else went wrong, and what is promised of it: a standby leads at once after a release, where a machine
    /// that does much else may take its time, and within a lease and half a second after a kill. A fleet that never gives a lease back keeps
    /// all else.
    pub fn medians(&self) -> Vec<(&'static str, Duration, Duration)> {
        let promised = [
            (false, "SIGTERM", TTL / 2),
            (true, "SIGKILL", TTL + Duration::from_millis(500)),
        ];
        let median = |killed| {
            let mut spans = self.spans.get(&(killed, true))?.clone();
            spans.sort_unstable();
            // One or two say little of a machine that does other things too.
            let middle = (spans.len() >= 3).then_some((spans.len() - 1) / 2)?;
            Some(Duration::from_nanos(spans[middle]))
        };
        let of = |(killed, signal, most)| Some((signal, median(killed)?, most));
        promised.into_iter().filter_map(of).collect()
    }

    /// In words, a line each.
    pub fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (killed, signal) in [(false, "SIGTERM"), (true, "SIGKILL")] {
            for (peace, which) in [(true, "while nothing else went wrong"), (false, "all")] {
                let spans = self.spans.entry((killed, peace)).or_default();
                lines.push(format!("takeover after {signal}, {which}: {}", percentiles(spans)));
            }
        }
        lines
    }
}

/// Whether nothing else went wrong meanwhile, nor had shortly before: a server that was restarted is in quarantine for a while.
fn is_peace(done: &[Done], ending: &Ending, from: u64, until: u64) -> bool {
    let ttl = u64::try_from(TTL.as_nanos()).unwrap_or(0);
    let second = 1_000_000_000;
    let is_own =
        |deed: &Done| matches!(deed.fault, Fault::Stop | Fault::Kill) && (deed.from..=deed.until).contains(&ending.at);
    let harms = |deed: &&Done| {
        let after = match deed.fault {
            Fault::Restart | Fault::RestartEmpty | Fault::FlushAll => 2 * ttl + 3 * second,
            _ => second,
        };
        !is_own(deed) && deed.from < until && from < deed.until + after
    };
    !done.iter().any(|deed| harms(&deed))
}

/// By nearest rank.
fn percentiles(spans: &mut [u64]) -> String {
    spans.sort_unstable();
    let Some(max) = spans.last() else {
        return "none".to_owned();
    };
    let rank = |percent: usize| spans[(spans.len() * percent).div_ceil(100).max(1) - 1];
    let millis = |nanos: u64| format!("{} ms", nanos / 1_000_000);
    let (p50, p99, max) = (millis(rank(50)), millis(rank(99)), millis(*max));
    format!("n = {}, p50 {p50}, p99 {p99}, max {max}", spans.len())
}

/// How often each fault was done.
pub fn faults(done: &BTreeMap<Fault, usize>) -> String {
    let mut text = format!("{} faults:", done.values().sum::<usize>());
    for (fault, count) in done {
        let _ = write!(text, " {fault:?} {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_takeovers_in_peace_are_looked_at() {
        let ms = |spans: &[u64]| spans.iter().map(|ms| ms * 1_000_000).collect::<Vec<_>>();
        let mut vacancies = Vacancies::default();
        assert!(vacancies.medians().is_empty());
        vacancies.spans.insert((false, true), ms(&[1_900, 12, 1_800, 1_750]));
        vacancies.spans.insert((false, false), ms(&[1]));
        vacancies.spans.insert((true, true), ms(&[3_000, 1_900, 1_700]));
        let [(_, released, at_once), (_, killed, lease)] = vacancies.medians()[..] else {
            panic!("both were measured");
        };
        assert!(released == Duration::from_millis(1_750) && released > at_once);
        assert!(killed == Duration::from_millis(1_900) && killed < lease);
    }
}
