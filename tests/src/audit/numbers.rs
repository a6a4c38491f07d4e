//! Terms, fences and tries.

use std::collections::BTreeMap;

use super::{Audit, JobSpec, Line};

/// Which try, its fence, and when it was started.
type Try = (u32, u64, u64);

/// What was given to whom.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// By group and number: when, and to whom.
    given: BTreeMap<(String, u64), (u64, String)>,
    /// By group: the newest term that was told, and when.
    terms: BTreeMap<String, (u64, u64)>,
    /// By job: the fence of the latest start, and when that was.
    fences: BTreeMap<String, (u64, u64)>,
    /// By job and tick: the tries that were started, with their fences, and when.
    tries: BTreeMap<(String, i64), Vec<Try>>,
}

impl Numbers {
    pub(super) fn forget(&mut self, old: u64) {
        self.given.retain(|_, (at, _)| *at > old);
    }

    pub(super) fn forget_ticks(&mut self, old: i64) {
        self.tries.retain(|(_, tick), _| *tick > old);
    }
}

impl Audit {
    pub(super) fn term_told(&mut self, line: &Line) {
        let (group, term) = (line.group.clone(), line.term);
        let before = self.numbers.terms.insert(group.clone(), (term, line.at));
        if let Some((before, _)) = before
            && term <= before
        {
            self.find("terms rise", line.at, format!("{term} is not above {before}: {line:?}"));
        }
        self.give(&group, term, line);
        // Whatever was begun under an earlier term has a lower number than this one.
        let above = ((group.clone(), term + 1), (group.clone(), u64::MAX));
        let above = self.numbers.given.range(above.0..above.1);
        let begun: Vec<_> = above.map(|((_, number), (_, to))| (*number, to.clone())).collect();
        for (number, to) in begun {
            let of =
                |body: &super::Body| body.group == group && body.fence == number && body.term < term && body.term != 0;
            if self.bodies.iter().any(of) {
                self.find(
                    "terms rise above fences",
                    line.at,
                    format!("{number}, given to {to} under an earlier term, is above: {line:?}"),
                );
            }
        }
    }

    fn give(&mut self, group: &str, number: u64, line: &Line) {
        let to = format!("{} {} {}", line.life, line.event, line.job);
        let before = self.numbers.given.insert((group.to_owned(), number), (line.at, to));
        if let Some((_, to)) = before {
            self.find(
                "no number is given twice",
                line.at,
                format!("{number} was given to {to}: {line:?}"),
            );
        }
    }

    pub(super) fn fence_told(&mut self, line: &Line, spec: JobSpec) {
        self.give(&line.group, line.fence, line);
        if line.fence <= line.term {
            self.find("fences rise", line.at, format!("not above its own term: {line:?}"));
        }
        if let Some((newest, _)) = self.numbers.terms.get(&line.group).copied()
            && line.term != 0
            && line.term < newest
            && newest < line.fence
        {
            self.find(
                "terms rise above fences",
                line.at,
                format!("claimed after the term {newest} had begun: {line:?}"),
            );
        }
        let last = self.numbers.fences.get(&line.job).copied();
        if !spec.beside {
            match last {
                Some((fence, at)) if line.fence <= fence => {
                    // Claimed before the store forgot it, and started after another had claimed anew.
                    if self.is_forgotten(spec, line.at, at) {
                        self.counts.doubled_in_losses += 1;
                    } else if self.effective(&line.life, line.at) < at {
                        self.counts.cuts += 1;
                    } else {
                        self.find("fences rise", line.at, format!("not above {fence}: {line:?}"));
                    }
                }
                _ => {
                    self.numbers.fences.insert(line.job.clone(), (line.fence, line.at));
                }
            }
        }
        self.try_told(line, spec);
    }

    fn try_told(&mut self, line: &Line, spec: JobSpec) {
        let tries = self.numbers.tries.entry((line.job.clone(), line.tick)).or_default();
        let is_odd =
            |&&(attempt, fence, _): &&Try| attempt == line.attempt || (attempt < line.attempt) != (fence < line.fence);
        let odd: Vec<_> = tries.iter().filter(is_odd).copied().collect();
        tries.push((line.attempt, line.fence, line.at));
        let tries = tries.clone();
        let excess = line.attempt == 0 || line.attempt > spec.retries + 1;
        if odd.is_empty() && !excess {
            return;
        }
        if !excess && odd.iter().all(|(.., at)| self.is_forgotten(spec, *at, line.at)) {
            self.counts.doubled_in_losses += 1;
        } else {
            self.counts.doubled += 1;
            self.find(
                "a tick is started once for each try",
                line.at,
                format!("tries, fences and instants {tries:?}: {line:?}"),
            );
        }
    }
}
