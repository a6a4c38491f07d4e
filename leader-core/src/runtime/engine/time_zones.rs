//! Whether the fleet agrees on the rules of time zones.

use std::collections::BTreeSet;

use super::Engine;
use crate::event::Event;
use crate::runtime::fleet;

/// The instances that were told of, each with its version.
pub(super) type Told = BTreeSet<(String, String)>;

impl Engine {
    /// Tells of members whose zones may have other rules, once of each, and only where a job of this instance has a zone.
    pub(super) fn compare_time_zones(&mut self) {
        let config = &self.shared.config;
        let zoned = |zone: &crate::schedule::Zone| !zone.is_utc();
        if !config
            .jobs
            .iter()
            .any(|job| job.rule.schedule.zone().is_some_and(zoned))
        {
            return;
        }
        let others = fleet::of_other_time_zones(&self.roster.members, &config.holder, &config.time_zones);
        let differ: Told = others
            .map(|member| (member.instance.clone(), member.time_zones.clone()))
            .collect();
        for (instance, theirs) in differ.difference(&self.roster.told_time_zones) {
            self.shared.tell(Event::TimeZonesDiffer {
                instance: instance.clone(),
                theirs: theirs.clone(),
                ours: config.time_zones.clone(),
            });
        }
        self.roster.told_time_zones = differ;
    }
}
