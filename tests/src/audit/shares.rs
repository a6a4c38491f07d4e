//! A whole run: whether what should come about by itself did, whatever else happened.

use super::Audit;
use super::ledger::IN_TIME;

impl Audit {
    /// Judges a whole run: what each job brings about by itself was brought about, whatever else happened. Excuses that are each as good as
    /// the next one would hide a fleet that runs hardly anything, or never tries again.
    pub fn judge_shares(&mut self) {
        let counts = self.counts.clone();
        for spec in self.jobs.clone() {
            let (due, outcomes) = counts.of_jobs.get(spec.name).cloned().unwrap_or_default();
            for (outcome, least) in spec.shows {
                let had = outcomes.get(*outcome).copied().unwrap_or(0);
                self.check(
                    due > 0 && 100 * had >= least * due,
                    "each job does what it is for",
                    0,
                    || {
                        format!(
                            "`{}`: {outcome} {had} of {due}, at least {least} %: {outcomes:?}",
                            spec.name
                        )
                    },
                );
            }
        }
        if self.jobs.iter().any(|spec| spec.retries > 0) {
            let (again, starts) = (counts.again, counts.starts);
            self.check(20 * again >= starts, "what fails is tried again", 0, || {
                format!("{again} further tries of {starts}")
            });
        }
        let (unheard, starts) = (counts.unheard, counts.starts);
        self.check(6 * unheard <= starts, "results are heard", 0, || {
            format!("{unheard} of {starts} were not")
        });
        let [in_time, all] = counts.in_time;
        self.check(2 * in_time >= all, "most bodies begin with their ticks", 0, || {
            format!("{in_time} of {all} within {IN_TIME} ns")
        });
    }
}
