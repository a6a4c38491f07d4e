//! As few faults as bring about the same: delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input",
//! 2002).

use super::Simulation;
use super::fault::Fault;
use super::report::Report;

/// The most runs that it may take.
const MOST: usize = 400;

impl Simulation {
    /// As few of the [`plan`](Self::plan)'s faults as `fails` is true of, as far as 400 calls find them: it is given some of them in their order,
    /// and simulates a fleet with a new state. All of them, when it is false of all.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::time::Duration;
    ///
    /// use leader_core::testing::{FaultKind, Faults, Simulation};
    /// use leader_core::{State, Tick, leader_only};
    ///
    /// #[derive(Clone, Default)]
    /// struct Unfinished(Arc<AtomicU32>);
    ///
    /// #[leader_only(every = "10m")]
    /// async fn works(_tick: Tick, State(unfinished): State<Unfinished>) {
    ///     unfinished.0.fetch_add(1, Ordering::SeqCst);
    ///     tokio::time::sleep(Duration::from_secs(60)).await;
    ///     unfinished.0.fetch_sub(1, Ordering::SeqCst);
    /// }
    ///
    /// let hours = Simulation::new()
    ///     .job::<works>()
    ///     .lasting(Duration::from_secs(4 * 3_600 + 300))
    ///     .faults(Faults::none().with(FaultKind::Crash, 6.0));
    /// let plan = hours.fewest(|plan| {
    ///     let unfinished = Unfinished::default();
    ///     hours.clone().state(unfinished.clone()).run_with(plan).assert_sound();
    ///     unfinished.0.load(Ordering::SeqCst) > 0
    /// });
    /// assert_eq!(plan.len(), 1, "one crash is enough: {plan:?}");
    /// ```
    ///
    /// # Panics
    /// As `fails` does.
    #[must_use]
    pub fn fewest(&self, mut fails: impl FnMut(&[Fault]) -> bool) -> Vec<Fault> {
        let plan = self.plan();
        if fails(&plan) { fewest(plan, fails) } else { plan }
    }
}

/// Takes faults out of a plan as long as it fails without them.
fn fewest(plan: Vec<Fault>, mut fails: impl FnMut(&[Fault]) -> bool) -> Vec<Fault> {
    let mut best = plan;
    let mut runs = 0;
    let mut attempt = |best: &mut Vec<Fault>, plan: Vec<Fault>| {
        if runs >= MOST || plan.len() == best.len() {
            return false;
        }
        runs += 1;
        let same = fails(&plan);
        if same {
            *best = plan;
        }
        same
    };
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        let mut fewer = false;
        while from < best.len() {
            let until = (from + size).min(best.len());
            let kept = best[..from].iter().chain(&best[until..]).cloned().collect();
            if attempt(&mut best, kept) {
                fewer = true;
            } else {
                from = until;
            }
        }
        size = match size {
            1 if fewer => 1,
            1 => 0,
            _ => size.div_ceil(2),
        };
    }
    best
}

/// As few of a report's faults as `run` shows the same kind of violation with; and the report of these.
pub(super) fn minimise(report: &Report, run: impl Fn(&[Fault]) -> Report) -> Report {
    let Some(first) = report.violations.first() else {
        return report.clone();
    };
    let (invariant, at) = (first.invariant, first.at);
    let mut best = report.clone();
    let mut fails = |plan: &[Fault]| {
        let tried = run(plan);
        let same = tried
            .violations
            .iter()
            .any(|violation| violation.invariant == invariant);
        if same {
            best = tried;
        }
        same
    };
    // What came later had no part in it, unless it is only seen at the end.
    let mut plan: Vec<_> = report.plan.iter().filter(|fault| fault.at <= at).cloned().collect();
    if plan.len() < report.plan.len() && !fails(&plan) {
        plan.clone_from(&report.plan);
    }
    fewest(plan, fails);
    best
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::fault::FaultKind;
    use super::super::judge::Violation;
    use super::*;

    fn fault(second: u64) -> Fault {
        Fault {
            at: Duration::from_secs(second),
            kind: FaultKind::Pause,
            instance: 0,
            lasts: Duration::ZERO,
            strength: 0,
        }
    }

    /// A fleet in which the faults of the seconds 13 and 71 together do harm, seen at once.
    fn run(plan: &[Fault]) -> Report {
        let has = |second| plan.contains(&fault(second));
        let violations = (has(13) && has(71)).then(|| Violation {
            at: Duration::from_secs(72),
            invariant: "something",
            what: String::new(),
        });
        Report {
            seed: 1,
            span: Duration::ZERO,
            faults: BTreeMap::new(),
            plan: plan.to_vec(),
            violations: violations.into_iter().collect(),
            ledgers: BTreeMap::new(),
            #[cfg(feature = "tasks")]
            tasks: BTreeMap::new(),
            #[cfg(feature = "tasks")]
            attempts: 0,
            elections: 0,
            runs: 0,
            dropped: 0,
            polls: 0,
            log: None,
        }
    }

    #[test]
    fn only_what_it_takes_is_left() {
        let plan: Vec<_> = (0..200).map(fault).collect();
        let least = minimise(&run(&plan), run);
        assert_eq!(least.plan, [fault(13), fault(71)]);
        assert!(!least.is_sound());
        // Nothing to look for.
        let sound = minimise(&run(&plan[20..]), run);
        assert_eq!(sound.plan.len(), 180);
    }
}
