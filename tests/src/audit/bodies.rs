//! Bodies: where they were started, and that none of a job ran beside another.

use std::collections::BTreeMap;

use super::{Audit, Belief, JobSpec, Line};

/// One body's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) life: String,
    pub(super) group: String,
    pub(super) job: String,
    pub(super) tick: i64,
    pub(super) attempt: u32,
    pub(super) fence: u64,
    pub(super) term: u64,
    /// When it was started.
    pub(super) from: u64,
    /// When it was last polled; `u64::MAX` while it goes on.
    pub(super) until: u64,
    /// What it returned; empty where it did not.
    pub(super) result: String,
    /// Its end was told, and not only that of its process.
    told: bool,
    judged: bool,
    /// Its last poll was compared with the end of its leadership.
    over: bool,
}

impl Audit {
    pub(super) fn started(&mut self, line: &Line) {
        self.counts.starts += 1;
        self.counts.again += u64::from(line.attempt > 1);
        let Some(spec) = self.spec(&line.job) else {
            self.find("only known jobs run", line.at, format!("{line:?}"));
            return;
        };
        self.bodies.push(Body {
            life: line.life.clone(),
            group: line.group.clone(),
            job: line.job.clone(),
            tick: line.tick,
            attempt: line.attempt,
            fence: line.fence,
            term: line.term,
            from: line.at,
            until: u64::MAX,
            result: String::new(),
            told: false,
            judged: false,
            over: false,
        });
        if line.tick % spec.period != 0 || line.group != spec.group {
            self.find("a body has a tick of its schedule", line.at, format!("{line:?}"));
        }
        self.fence_told(line, spec);
    }

    pub(super) fn body_ended(&mut self, line: &Line) {
        let of = |body: &&mut Body| body.life == line.life && body.job == line.job && body.fence == line.fence;
        if let Some(body) = self.bodies.iter_mut().find(of) {
            if body.told {
                let text = format!("{line:?} of {body:?}");
                self.find("a body ends once", line.at, text);
                return;
            }
            (body.until, body.told) = (line.until, true);
            line.text.clone_into(&mut body.result);
        }
    }

    /// Nobody is polled when the leadership is over that he was started in, unless he may finish.
    fn judge_polls(&mut self) {
        let (mut cuts, mut found) = (0, Vec::new());
        let mut bodies = std::mem::take(&mut self.bodies);
        for body in bodies
            .iter_mut()
            .filter(|body| body.told && !body.over && body.until > body.from)
        {
            let of =
                |belief: &&Belief| (&belief.group, &belief.life, belief.term) == (&body.group, &body.life, body.term);
            let kept = |spec: JobSpec| !spec.unled && !spec.finishes;
            // Who never believed is found by the start, and who believes on has nothing to fear.
            let end = self.beliefs.iter().filter(of).map(|belief| belief.until).max();
            let Some(end) = end.filter(|end| *end != u64::MAX && self.spec(&body.job).is_some_and(kept)) else {
                continue;
            };
            body.over = true;
            if body.until > end && self.effective(&body.life, body.until) <= end {
                cuts += 1;
            } else if body.until > end {
                found.push((body.until, format!("after {end}: {body:?}")));
            }
        }
        self.bodies = bodies;
        self.counts.cuts += cuts;
        for (at, text) in found {
            self.find("a body is polled in a belief", at, text);
        }
    }

    pub(super) fn judge_bodies(&mut self) {
        for body in self.bodies.iter_mut().filter(|body| body.until == u64::MAX) {
            if let Some(end) = self.ends.get(&body.life) {
                body.until = *end;
            }
        }
        let new: Vec<_> = self.bodies.iter().filter(|body| !body.judged).cloned().collect();
        for body in &new {
            self.judge_start(body);
        }
        self.counts.checks += 6 * self.jobs.len() as u64;
        self.judge_polls();
        self.judge_pairs();
        self.bodies.iter_mut().for_each(|body| body.judged = true);
    }

    /// A body is started by somebody who believes; where it needs no leader, under no term.
    fn judge_start(&mut self, body: &Body) {
        let Some(spec) = self.spec(&body.job) else { return };
        let allowed = if spec.unled {
            body.term == 0
        } else if self.believed(&body.life, &body.group, body.term, body.from) {
            true
        } else {
            let begun = self.effective(&body.life, body.from);
            let cut = self.believed(&body.life, &body.group, body.term, begun);
            self.counts.cuts += u64::from(cut);
            cut
        };
        if !allowed {
            self.find("a body is started in a belief", body.from, format!("{body:?}"));
        }
    }

    /// No two bodies of a job at once, but for those that are allowed to.
    fn judge_pairs(&mut self) {
        let mut of_jobs: BTreeMap<&str, Vec<&Body>> = BTreeMap::new();
        for body in &self.bodies {
            let alone = self.spec(&body.job).is_some_and(|spec| !spec.beside && !spec.finishes);
            if alone {
                of_jobs.entry(&body.job).or_default().push(body);
            }
        }
        let (mut cuts, mut found) = (0, Vec::new());
        for bodies in of_jobs.values_mut() {
            bodies.sort_by_key(|body| body.from);
            for (at, one) in bodies.iter().enumerate() {
                let later = bodies[at + 1..].iter().take_while(|two| two.from < one.until);
                for two in later.filter(|two| !(one.judged && two.judged)) {
                    // A last poll that began before a stop is told of after it.
                    let last = if one.until == u64::MAX {
                        u64::MAX
                    } else {
                        self.effective(&one.life, one.until)
                    };
                    let spec = self.spec(&one.job);
                    if spec.is_some_and(|spec| self.is_forgotten(spec, one.from, two.from)) {
                        continue;
                    }
                    if last <= two.from || self.effective(&two.life, two.from) < one.from {
                        cuts += 1;
                    } else {
                        found.push((two.from, format!("{one:?} and {two:?}")));
                    }
                }
            }
        }
        self.counts.cuts += cuts;
        for (at, text) in found {
            self.find("no two bodies of a job at once", at, text);
        }
    }
}
