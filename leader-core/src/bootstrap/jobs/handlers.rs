//! Handlers: what the schedules that are made for them at run time get, and what has no meaning without one.

use super::super::wish::{By, JobSettings, Kind, Wish, Wishes};
use crate::schedule::Schedule;

impl Wishes<'_> {
    /// The rule that each schedule made for the handler gets in place of this one's ticks.
    pub(in super::super) fn pattern(&mut self, changes: &JobSettings) -> Option<Wish> {
        let (policies, tries) = self.policies(changes);
        let stand_in = Schedule::every("1d").ok()?;
        Some(Wish::Handler(policies(stand_in), tries))
    }

    /// A handler has no ticks of its own.
    pub(in super::super) fn refuse_own_schedule(
        &mut self,
        trigger: Option<((Kind, String), By)>,
        changes: &JobSettings,
    ) {
        const REASON: &str =
            "a handler has no schedule of its own, and runs for those that are made for it: it can only be `off`";
        if let Some(((kind, text), by)) = trigger {
            self.refuse(kind.word(), by, &text, REASON.to_owned());
        }
        for (setting, said) in [
            ("timezone", changes.timezone.is_some()),
            ("days", changes.days.is_some()),
        ] {
            if let Some(value) = self.var(setting) {
                self.refuse(setting, By::Environment, &value, REASON.to_owned());
            } else if said {
                self.refuse(setting, By::Code, "", REASON.to_owned());
            }
        }
    }
}
