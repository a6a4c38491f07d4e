//! Until when a run may be tried again.

use jiff::Timestamp;

use super::Rule;

impl Rule {
    /// Before when a further try of the tick's run has to begin: when the next tick is due. One that is `owed` runs while later ticks
    /// wait for it, and may go on until one falls due that does not. `None`: no tick follows.
    #[must_use]
    pub fn tries_end(&self, tick: Timestamp, owed: bool, now: Timestamp) -> Option<Timestamp> {
        let next = self.due(self.schedule.next(tick)?);
        if !owed || next > now {
            return Some(next);
        }
        self.first_due(now).map(|tick| self.due(tick))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::schedule::Schedule;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-02T{text}Z").parse().unwrap()
    }

    #[test]
    fn tries_end_with_the_next_tick() {
        let rule = Rule::new(Schedule::every("10m").unwrap());
        for (tick, owed, now, end) in [
            ("03:00:00", false, "03:00:01", "03:10:00"),
            ("03:00:00", false, "04:00:01", "03:10:00"),
            ("03:00:00", true, "03:00:01", "03:10:00"),
            // Those between wait for it.
            ("03:00:00", true, "04:00:01", "04:10:00"),
        ] {
            let found = rule.tries_end(at(tick), owed, at(now));
            assert_eq!(found, Some(at(end)), "{tick} {owed} {now}");
        }
        let last = Rule::new(Schedule::cron("0 0 3 2 3 * 2026").unwrap());
        assert_eq!(last.tries_end(at("03:00:00"), false, at("03:00:01")), None);
        assert_eq!(last.tries_end(at("03:00:00"), true, at("04:00:00")), None);
    }

    #[test]
    fn jitter_gives_the_time_until_the_next_is_due() {
        let rule = Rule {
            jitter: Duration::from_secs(300),
            ..Rule::new(Schedule::every("10m").unwrap())
        };
        let (tick, next) = (at("03:00:00"), at("03:10:00"));
        assert_eq!(rule.tries_end(tick, false, tick), Some(rule.due(next)));
    }
}
