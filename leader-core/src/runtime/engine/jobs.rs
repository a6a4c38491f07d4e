//! The jobs that an engine knows, by an index that everything else of the engine names them by: first those of the program.

use std::ops::Index;
use std::sync::Arc;

use crate::runtime::config::JobSpec;

/// The table of jobs.
pub(super) struct Jobs {
    specs: Vec<Arc<JobSpec>>,
}

impl Jobs {
    pub(super) fn new(fixed: &[Arc<JobSpec>]) -> Self {
        Self { specs: fixed.to_vec() }
    }

    /// A job to be kept: what it is may change in the table meanwhile.
    pub(super) fn share(&self, job: usize) -> Arc<JobSpec> {
        Arc::clone(&self.specs[job])
    }
}

impl Index<usize> for Jobs {
    type Output = JobSpec;

    fn index(&self, job: usize) -> &JobSpec {
        &self.specs[job]
    }
}
