//! The jobs that an engine knows, by an index that everything else of the engine names them by: first those of the program, then those
//! made at run time.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use super::input::Group;
use crate::names::JobName;
use crate::runtime::config::JobSpec;

/// The table of jobs.
pub(super) struct Jobs {
    specs: Vec<Arc<JobSpec>>,
    /// How many are the program's.
    fixed: usize,
    /// Those made at run time; one whose schedule has ended is among them until nothing refers to it any more.
    made: BTreeMap<(Group, JobName), usize>,
    /// Indices that nothing refers to.
    free: Vec<usize>,
}

impl Jobs {
    pub(super) fn new(fixed: &[Arc<JobSpec>]) -> Self {
        Self {
            specs: fixed.to_vec(),
            fixed: fixed.len(),
            made: BTreeMap::new(),
            free: Vec::new(),
        }
    }

    /// A job to be kept: what it is may change in the table meanwhile.
    pub(super) fn share(&self, job: usize) -> Arc<JobSpec> {
        Arc::clone(&self.specs[job])
    }

    pub(super) fn is_made(&self, job: usize) -> bool {
        job >= self.fixed
    }

    /// The job of a name that was made at run time.
    pub(super) fn named(&self, group: Group, name: &JobName) -> Option<usize> {
        self.made.get(&(group, name.clone())).copied()
    }

    /// All of a group that were made at run time.
    pub(super) fn made_of(&self, group: Group) -> impl Iterator<Item = (&JobName, usize)> {
        let of_group = self.made.iter().filter(move |((other, _), _)| *other == group);
        of_group.map(|((_, name), job)| (name, *job))
    }

    /// Puts in a job that was made at run time, in the place of the one of its name, and gives its index.
    pub(super) fn put(&mut self, group: Group, spec: JobSpec) -> usize {
        let key = (group, spec.name.clone());
        let spec = Arc::new(spec);
        if let Some(job) = self.made.get(&key) {
            self.specs[*job] = spec;
            return *job;
        }
        let job = self.free.pop().unwrap_or(self.specs.len());
        if job == self.specs.len() {
            self.specs.push(spec);
        } else {
            self.specs[job] = spec;
        }
        self.made.insert(key, job);
        job
    }

    /// Nothing refers to the job any more: its index may become another's.
    pub(super) fn free(&mut self, group: Group, job: usize) {
        let key = (group, self.specs[job].name.clone());
        if self.made.remove(&key).is_some() {
            self.free.push(job);
        }
    }
}

impl Index<usize> for Jobs {
    type Output = JobSpec;

    fn index(&self, job: usize) -> &JobSpec {
        &self.specs[job]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::record::{Body, OnLoss, Overlap};
    use crate::names::GroupName;
    use crate::schedule::planner::Rule;
    use crate::schedule::{Backoff, Schedule};

    fn spec(name: &str) -> JobSpec {
        JobSpec {
            name: JobName::new(name.to_owned()).unwrap(),
            group: GroupName::new("group").unwrap(),
            rule: Rule::new(Schedule::every("1h").unwrap()),
            on: crate::job::record::On::Leader,
            was: Vec::new(),
            timeout: None,
            overlap: Overlap::Skip,
            on_loss: OnLoss::Cancel,
            retries: 0,
            backoff: Backoff::default(),
            body: Body {
                run: |_| Box::pin(std::future::pending()),
                needs: |_| {},
            },
            made: None,
            fleet: None,
        }
    }

    #[test]
    fn an_index_is_anothers_only_when_it_is_free() {
        let mut jobs = Jobs::new(&[Arc::new(spec("fixed"))]);
        let (a, b) = (jobs.put(0, spec("a")), jobs.put(0, spec("b")));
        assert_eq!((a, b), (1, 2));
        assert!(!jobs.is_made(0) && jobs.is_made(a));
        // One name in two groups is two jobs; made anew it keeps its index.
        assert_eq!((jobs.put(1, spec("a")), jobs.put(0, spec("a"))), (3, a));
        let of_the_first: Vec<_> = jobs.made_of(0).map(|(name, job)| (name.as_str(), job)).collect();
        assert_eq!(of_the_first, [("a", a), ("b", b)]);
        jobs.free(0, a);
        assert_eq!(jobs.named(0, &jobs[a].name), None);
        // Freed twice it is one free place.
        jobs.free(0, a);
        assert_eq!((jobs.put(0, spec("c")), jobs.put(0, spec("d"))), (a, 4));
        assert_eq!((jobs[a].name.as_str(), jobs[b].name.as_str()), ("c", "b"));
    }
}
