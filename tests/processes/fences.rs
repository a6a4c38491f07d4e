//! Judges what bodies did that were frozen in the middle of their work: their last polls, and the register they wrote to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use leader_tests::checker::Line;

/// A body's life, told when it is dropped.
#[derive(Clone, Debug, Deserialize)]
pub struct Written {
    pub instance: String,
    pub fence: u64,
    pub accepted: u64,
    pub refused: u64,
    pub failed: u64,
    /// When it was polled, the last few times.
    pub last_polls_ns: Vec<u64>,
}

/// A freeze of the register's leader.
#[derive(Clone, Debug)]
pub struct Stop {
    pub instance: String,
    /// The term that it led under.
    pub term: u64,
    /// When it was seen to stand still.
    pub still: u64,
    /// Just before it was let go.
    pub woken: u64,
}

/// How soon after a wake-up a step is the one that the freeze had cut in two.
const DIRECTLY: u64 = 100_000_000;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    pub violations: Vec<String>,
    /// Steps that a freeze cut in two, between the guard's look at the clock and the body's own: no look can close that gap, so
    /// one for each freeze is let through, and the fence has to stop what it does.
    pub straddles: usize,
}

/// Judges bodies and register: `history` has each change of the accepted (fence, writer), in order.
pub fn judge(lines: &[Line], written: &[Written], history: &[(u64, String)], stops: &[Stop]) -> Findings {
    let mut findings = Findings::default();
    rising(lines, history, &mut findings);
    completeness(lines, written, &mut findings);
    late_polls(lines, written, stops, &mut findings);
    findings
}

/// No write after one with a higher fence, and none by somebody who was never elected under its fence.
fn rising(lines: &[Line], history: &[(u64, String)], findings: &mut Findings) {
    for pair in history.windows(2) {
        if pair[1].0 <= pair[0].0 {
            findings
                .violations
                .push(format!("accepted after a fence as high: {pair:?}"));
        }
    }
    for (fence, writer) in history {
        let of = |line: &Line| line.is("elected", "register") && line.instance == *writer && line.fence == Some(*fence);
        if !lines.iter().any(of) {
            findings
                .violations
                .push(format!("{writer} wrote under {fence}, and never had it"));
        }
    }
}

/// Each body that told of its beginning has told of its end.
fn completeness(lines: &[Line], written: &[Written], findings: &mut Findings) {
    let mut open: BTreeMap<(&str, u64), i64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.is("writing", "register")) {
        *open
            .entry((&line.instance, line.fence.unwrap_or_default()))
            .or_default() += 1;
    }
    for body in written {
        *open.entry((&body.instance, body.fence)).or_default() -= 1;
    }
    let unpaired = open.into_iter().filter(|(_, count)| *count != 0);
    let texts = unpaired.map(|(body, _)| format!("{body:?} has not told of its beginning and its end"));
    findings.violations.extend(texts);
}

/// No poll at or after the end of trust.
fn late_polls(lines: &[Line], written: &[Written], stops: &[Stop], findings: &mut Findings) {
    let mut excused = BTreeSet::new();
    for body in written {
        let Some(until) = trust_end(lines, &body.instance, body.fence) else {
            findings.violations.push(format!("never told of its loss: {body:?}"));
            continue;
        };
        let (before, late): (Vec<u64>, Vec<u64>) = body.last_polls_ns.iter().partition(|at| **at < until);
        let cut = |stop: &&Stop| {
            stop.instance == body.instance
                && stop.term == body.fence
                && before.iter().all(|at| *at <= stop.still)
                && late.iter().all(|at| directly_after(*at, stop))
        };
        match (late.len(), stops.iter().find(cut)) {
            (0, _) => {}
            (1, Some(stop)) if excused.insert((&stop.instance, stop.woken)) => findings.straddles += 1,
            _ => findings
                .violations
                .push(format!("polled at or after {until}: {body:?}")),
        }
    }
}

fn directly_after(at: u64, stop: &Stop) -> bool {
    (stop.woken..stop.woken + DIRECTLY).contains(&at)
}

fn trust_end(lines: &[Line], instance: &str, term: u64) -> Option<u64> {
    let of = |line: &&Line| line.is("lost", "register") && line.instance == instance && line.fence == Some(term);
    lines.iter().find(of)?.until_ns
}

/// Puts the first look of bodies whose start a freeze cut in two back to before the freeze, where the guard's look was: one for
/// each freeze. Gives their number.
pub fn mend_cut_starts(lines: &mut [Line], stops: &[Stop]) -> usize {
    let mut mended = 0;
    for stop in stops {
        let ends: BTreeMap<_, _> = lines
            .iter()
            .filter(|line| line.event == "lost" && line.instance == stop.instance)
            .map(|line| (line.fence, line.until_ns))
            .collect();
        let cut = |line: &&mut Line| {
            let until = ends.get(&line.term).copied().flatten();
            line.event == "tick"
                && line.instance == stop.instance
                && directly_after(line.mono_ns, stop)
                && until.is_some_and(|until| until <= line.mono_ns && stop.still < until)
        };
        if let Some(tick) = lines.iter_mut().find(cut) {
            tick.mono_ns = stop.still;
            mended += 1;
        }
    }
    mended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, instance: &str, fence: u64) -> Line {
        Line {
            event: event.to_owned(),
            instance: instance.to_owned(),
            group: Some("register".to_owned()),
            fence: Some(fence),
            ..Line::default()
        }
    }

    fn lost(instance: &str, fence: u64, until: u64) -> Line {
        Line {
            until_ns: Some(until),
            ..line("lost", instance, fence)
        }
    }

    fn written(instance: &str, fence: u64, polls: &[u64]) -> Written {
        Written {
            instance: instance.to_owned(),
            fence,
            accepted: 9,
            refused: 0,
            failed: 0,
            last_polls_ns: polls.to_vec(),
        }
    }

    const WOKEN: u64 = 5_000_000_000;

    /// `a` was frozen at 180 under trust until 250 and woke late; `b` followed.
    struct Case {
        lines: Vec<Line>,
        written: Vec<Written>,
        history: Vec<(u64, String)>,
        stops: Vec<Stop>,
    }

    impl Case {
        fn good() -> Self {
            let lines = ["elected", "writing"].map(|event| [line(event, "a", 10), line(event, "b", 20)]);
            let mut lines = lines.concat();
            lines.extend([lost("a", 10, 250), lost("b", 20, 9_000_000_000)]);
            Self {
                lines,
                written: vec![
                    written("a", 10, &[150, 160, 170]),
                    written("b", 20, &[400, 8_000_000_000]),
                ],
                history: vec![(10, "a".to_owned()), (20, "b".to_owned())],
                stops: vec![Stop {
                    instance: "a".to_owned(),
                    term: 10,
                    still: 180,
                    woken: WOKEN,
                }],
            }
        }

        fn judge(&self) -> Findings {
            judge(&self.lines, &self.written, &self.history, &self.stops)
        }

        fn found(&self, what: &str) {
            let found = self.judge().violations;
            assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
        }
    }

    #[test]
    fn good_work_passes() {
        let findings = Case::good().judge();
        assert_eq!((findings.violations, findings.straddles), (vec![], 0));
    }

    #[test]
    fn a_late_write_is_seen() {
        let mut case = Case::good();
        case.history.push((10, "a".to_owned()));
        case.found("accepted after");
    }

    #[test]
    fn two_writers_under_one_fence_are_seen() {
        let mut case = Case::good();
        case.history.push((20, "a".to_owned()));
        let found = case.judge().violations;
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn one_poll_that_the_freeze_cut_is_counted() {
        let mut case = Case::good();
        case.written[0].last_polls_ns.push(WOKEN + 1_000);
        let findings = case.judge();
        assert_eq!((findings.violations, findings.straddles), (vec![], 1));
    }

    #[test]
    fn any_other_late_poll_is_seen() {
        for polls in [
            // A second one.
            &[170, WOKEN + 1_000, WOKEN + 2_000][..],
            // Not directly after the wake-up.
            &[170, WOKEN + DIRECTLY],
            // While it stood still.
            &[170, WOKEN - 1],
            // Not the first after the freeze began.
            &[181, WOKEN + 1_000],
            // The end of trust itself.
            &[250],
        ] {
            let mut case = Case::good();
            case.written[0].last_polls_ns = polls.to_vec();
            case.found("polled at or after");
        }
    }

    #[test]
    fn a_freeze_excuses_one_body_only() {
        let mut case = Case::good();
        case.lines.push(line("writing", "a", 10));
        case.written[0].last_polls_ns.push(WOKEN + 1_000);
        case.written.push(written("a", 10, &[WOKEN + 2_000]));
        case.found("polled at or after");
    }

    #[test]
    fn a_body_that_tells_of_no_end_is_seen() {
        let mut case = Case::good();
        case.written.pop();
        case.found("its beginning and its end");
    }

    #[test]
    fn a_start_that_the_freeze_cut_is_put_back() {
        let mut case = Case::good();
        let mut tick = line("tick", "a", 11);
        tick.term = Some(10);
        tick.mono_ns = WOKEN + 1_000;
        case.lines.extend([tick.clone(), tick]);
        assert_eq!(mend_cut_starts(&mut case.lines, &case.stops), 1);
        let ticks: Vec<_> = case.lines.iter().filter(|line| line.event == "tick").collect();
        assert_eq!((ticks[0].mono_ns, ticks[1].mono_ns), (180, WOKEN + 1_000));
    }
}
