//! How keys are spelled: the lease is the plain `leader:<group>`, everything else of a group shares its Cluster slot.

#[cfg(feature = "tasks")]
use crate::names::QueueName;
use crate::names::{GroupName, JobName, Namespace};
#[cfg(feature = "tasks")]
use crate::store::tasks::Shard;

/// The keys of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self {
            prefix: namespace.prefix(),
        }
    }

    pub(super) fn lease(&self, group: &GroupName) -> String {
        format!("{}leader:{group}", self.prefix)
    }

    /// Holder, term, TTL, birth mark and last renewal.
    pub(super) fn state(&self, group: &GroupName) -> String {
        self.part(group, "lease")
    }

    /// The counter that mints terms and fences.
    pub(super) fn fence(&self, group: &GroupName) -> String {
        self.part(group, "fence")
    }

    /// The last sign of life of each open run.
    pub(super) fn beats(&self, group: &GroupName) -> String {
        self.part(group, "beats")
    }

    /// The pauses in force and the open requests.
    pub(super) fn control(&self, group: &GroupName) -> String {
        self.part(group, "control")
    }

    /// The newest acts of control.
    pub(super) fn acts(&self, group: &GroupName) -> String {
        self.part(group, "acts")
    }

    /// The schedules made at run time, by name.
    pub(super) fn schedules(&self, group: &GroupName) -> String {
        self.part(group, "schedules")
    }

    /// What they carry.
    pub(super) fn payloads(&self, group: &GroupName) -> String {
        self.part(group, "payloads")
    }

    /// Who has had which jobs, and when.
    pub(super) fn coverage(&self, group: &GroupName) -> String {
        self.part(group, "coverage")
    }

    /// The keys of a group's jobs.
    pub(super) fn jobs(&self, group: &GroupName) -> JobKeys {
        JobKeys {
            job: self.part(group, "job:"),
            ran: self.part(group, "ran:"),
            passed: self.part(group, "passed:"),
        }
    }

    /// The signs of life of the instances, what they said of themselves, and the number of that state.
    pub(super) fn roster(&self) -> [String; 3] {
        let roster = format!("{}leader-roster", self.prefix);
        let (introductions, revision) = (format!("{{{roster}}}:introductions"), format!("{{{roster}}}:revision"));
        [roster, introductions, revision]
    }

    /// A part of what is kept of a shard's tasks.
    #[cfg(feature = "tasks")]
    pub(super) fn of_tasks(&self, shard: &Shard, part: &str) -> String {
        self.part(&shard.group(), part)
    }

    /// How many shards a queue has, and had.
    #[cfg(feature = "tasks")]
    pub(super) fn queue(&self, queue: &QueueName) -> String {
        format!("{{{}leader-queue:{queue}}}:generations", self.prefix)
    }

    /// Where releases and requests are told.
    pub(super) fn channel(&self) -> String {
        format!("{}leader-told", self.prefix)
    }

    fn part(&self, group: &GroupName, part: &str) -> String {
        format!("{{{}leader:{group}}}:{part}", self.prefix)
    }
}

/// How the keys of one group's jobs begin: spelled once for a batch, which may have thousands.
#[derive(Clone, Debug)]
pub(super) struct JobKeys {
    job: String,
    ran: String,
    passed: String,
}

impl JobKeys {
    /// A job's cursor, open runs and counts.
    pub(super) fn job(&self, job: &JobName) -> String {
        [&self.job, job.as_str()].concat()
    }

    /// A job's newest records of runs.
    pub(super) fn ran(&self, job: &JobName) -> String {
        [&self.ran, job.as_str()].concat()
    }

    /// A job's newest records of ticks that did not run.
    pub(super) fn passed(&self, job: &JobName) -> String {
        [&self.passed, job.as_str()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key of a group hashes to the slot of its lease (asynq#1086, screwdriver#3451).
    #[test]
    fn case_71_one_hash_tag_for_each_group() {
        let keys = Keys::new(&Namespace::new("shop").unwrap());
        let group = GroupName::new("cleanup").unwrap();
        let job = JobName::new("purge").unwrap();
        let (lease, jobs) = (keys.lease(&group), keys.jobs(&group));
        assert_eq!(lease, "shop:leader:cleanup");
        for key in [
            keys.state(&group),
            keys.fence(&group),
            keys.beats(&group),
            keys.control(&group),
            keys.acts(&group),
            keys.schedules(&group),
            keys.payloads(&group),
            keys.coverage(&group),
            jobs.job(&job),
            jobs.ran(&job),
            jobs.passed(&job),
        ] {
            assert!(key.starts_with(&format!("{{{lease}}}:")), "{key}");
        }
        let [roster, rest @ ..] = keys.roster();
        assert!(rest.iter().all(|key| key.starts_with(&format!("{{{roster}}}:"))));
        let plain = Keys::new(&Namespace::default());
        assert_eq!(plain.lease(&group), "leader:cleanup");
    }
}
