//! Who believed when.

use super::{Audit, Line};

/// How much later than the gate was opened an election may be told: the thread that does both waits for a processor in between where a machine has
/// too few. Whether two believe at once is judged by what was seen, whatever was told.
const NEAR: u64 = 250_000_000;

/// A time in which a process believed that it leads: from its election to its loss, or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Belief {
    pub(super) group: String,
    pub(super) life: String,
    pub(super) term: u64,
    pub(super) from: u64,
    /// `u64::MAX` while it goes on.
    pub(super) until: u64,
    judged: bool,
}

/// A time in which a process that asked all the while was told that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) group: String,
    pub(super) life: String,
    pub(super) from: u64,
    pub(super) until: u64,
    judged: bool,
}

impl Audit {
    pub(super) fn elected(&mut self, line: &Line) {
        self.counts.elected += 1;
        self.beliefs.push(Belief {
            group: line.group.clone(),
            life: line.life.clone(),
            term: line.term,
            from: line.at,
            until: u64::MAX,
            judged: false,
        });
        self.term_told(line);
    }

    pub(super) fn lose(&mut self, line: &Line) {
        let of = |belief: &&mut Belief| {
            belief.group == line.group
                && belief.life == line.life
                && belief.term == line.term
                && belief.until == u64::MAX
        };
        match self.beliefs.iter_mut().find(of) {
            Some(belief) => belief.until = line.until.max(belief.from),
            None => self.find(
                "belief ends once",
                line.at,
                format!("a loss without a belief: {line:?}"),
            ),
        }
    }

    pub(super) fn saw(&mut self, line: &Line) {
        self.seen.push(Seen {
            group: line.group.clone(),
            life: line.life.clone(),
            from: line.from,
            until: line.until,
            judged: false,
        });
    }

    /// Whether this process believed under this term at an instant.
    pub(super) fn believed(&self, life: &str, group: &str, term: u64, at: u64) -> bool {
        let of = |belief: &&Belief| belief.group == group && belief.life == life && belief.term == term;
        self.beliefs
            .iter()
            .filter(of)
            .any(|belief| (belief.from..belief.until).contains(&at))
    }

    pub(super) fn judge_beliefs(&mut self) {
        // A process that has ended believes nothing, whatever it could not tell any more.
        for belief in self.beliefs.iter_mut().filter(|belief| belief.until == u64::MAX) {
            if let Some(end) = self.ends.get(&belief.life) {
                belief.until = *end;
            }
        }
        self.beliefs.sort_by_key(|belief| belief.from);
        self.seen.sort_by_key(|seen| seen.from);
        self.widen();
        for group in self.groups.clone() {
            self.counts.checks += 3;
            self.judge_overlaps(group);
            self.judge_gates(group);
        }
        self.beliefs.iter_mut().for_each(|belief| belief.judged = true);
        self.seen.iter_mut().for_each(|seen| seen.judged = true);
    }

    /// A process tells of a belief by the clock of the turn in which it begins or ends it: the gate opens a little before, and closes a little
    /// later. What counts is what was seen; it must be near to what was told.
    fn widen(&mut self) {
        let mut found = Vec::new();
        for seen in self.seen.iter().filter(|seen| !seen.judged) {
            let begun = self.effective(&seen.life, seen.until);
            let told = |belief: &Belief| {
                belief.group == seen.group
                    && belief.life == seen.life
                    && self.effective(&seen.life, belief.from).saturating_sub(NEAR) <= seen.from
                    && begun < belief.until
            };
            // The nearest: one may end and another begin within a turn, or within a stop.
            let off =
                |belief: &Belief| belief.from.saturating_sub(seen.from) + (seen.until + 1).saturating_sub(belief.until);
            let candidates = self.beliefs.iter().enumerate().filter(|(_, belief)| told(belief));
            match candidates.min_by_key(|(_, belief)| off(belief)).map(|(at, _)| at) {
                Some(at) => {
                    let belief = &mut self.beliefs[at];
                    belief.from = belief.from.min(seen.from);
                    belief.until = belief.until.max(seen.until);
                }
                None => found.push((seen.until, format!("open without belief: {seen:?}"))),
            }
        }
        for (at, text) in found {
            self.find("the gate is open to believers only", at, text);
        }
        self.beliefs.sort_by_key(|belief| belief.from);
    }

    fn judge_overlaps(&mut self, group: &str) {
        let of_group: Vec<_> = self
            .beliefs
            .iter()
            .filter(|belief| belief.group == group)
            .cloned()
            .collect();
        for (at, one) in of_group.iter().enumerate() {
            let later = of_group[at + 1..].iter().take_while(|two| two.from < one.until);
            for two in later.filter(|two| !(one.judged && two.judged)) {
                let overlap = one.until.min(two.until) - two.from;
                self.counts.overlap += overlap;
                self.find(
                    "one believer",
                    two.from,
                    format!("two believe for {:.3} ms: {one:?} and {two:?}", ms(overlap)),
                );
            }
        }
    }

    /// No two processes may have seen that they lead at once.
    fn judge_gates(&mut self, group: &str) {
        let of_group: Vec<_> = self.seen.iter().filter(|seen| seen.group == group).cloned().collect();
        let mut last: Option<&Seen> = None;
        for seen in &of_group {
            if let Some(last) = last
                && last.life != seen.life
                && seen.from < last.until
                && !(seen.judged && last.judged)
            {
                let overlap = last.until.min(seen.until) - seen.from;
                self.find(
                    "one open gate",
                    seen.from,
                    format!("two gates open for {:.3} ms: {last:?} and {seen:?}", ms(overlap)),
                );
            }
            if last.is_none_or(|last| last.until < seen.until) {
                last = Some(seen);
            }
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
