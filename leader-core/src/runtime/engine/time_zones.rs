//! Whether the fleet agrees on the rules of time zones.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use crate::event::Event;
use crate::runtime::fleet;

/// The versions that were told of.
pub(super) type Told = BTreeSet<String>;

impl Engine {
    /// Tells of members whose zones may have other rules, once of each version, and only where a job of this instance has a zone.
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
        let mut differ: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for member in others {
            let instances = differ.entry(member.time_zones.clone()).or_default();
            instances.push(member.instance.clone());
        }
        for (theirs, instances) in &differ {
            if !self.roster.told_time_zones.contains(theirs) {
                self.shared.tell(Event::TimeZonesDiffer {
                    instance: instances.first().cloned().unwrap_or_default(),
                    instances: instances.len(),
                    theirs: theirs.clone(),
                    ours: config.time_zones.clone(),
                });
            }
        }
        self.roster.told_time_zones = differ.into_keys().collect();
    }
}
