//! What a task's arguments may be, and where their values come from.

use std::any::type_name;

use super::record::TaskHandler;
use super::task::Task;
use crate::job::extract::{Needs, State, States, need_state, state};
use crate::job::output::JobError;

/// An argument of a task after its payload: [`Task`], [`State<T>`] or `Option<State<T>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a task",
    label = "not something that a task can be given",
    note = "the payload comes first; the other arguments are `Task`, `State<T>` (a value given to `bootstrap(..).state(value)`) and \
            `Option<State<T>>`"
)]
pub trait ExtractTask: Sized + sealed::Sealed {
    #[doc(hidden)]
    fn extract(given: &TaskGiven<'_>) -> Self;
    #[doc(hidden)]
    fn need(_needs: &mut Needs) {}
}

mod sealed {
    use crate::job::extract::State;

    #[diagnostic::do_not_recommend]
    impl<T: Clone + Send + Sync + 'static> Sealed for State<T> {}
    pub trait Sealed {}
    impl Sealed for super::Task {}
    impl<T: Clone + Send + Sync + 'static> Sealed for Option<State<T>> {}
}

/// What an attempt offers to its body's arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct TaskGiven<'a> {
    pub(crate) task: &'a Task,
    pub(crate) states: &'a States,
    /// What the task carries, as JSON.
    pub(crate) payload: &'a str,
}

impl ExtractTask for Task {
    fn extract(given: &TaskGiven<'_>) -> Self {
        given.task.clone()
    }
}

impl<T: Clone + Send + Sync + 'static> ExtractTask for State<T> {
    fn extract(given: &TaskGiven<'_>) -> Self {
        state(given.states)
    }

    fn need(needs: &mut Needs) {
        need_state::<T>(needs);
    }
}

impl<T: Clone + Send + Sync + 'static> ExtractTask for Option<State<T>> {
    fn extract(given: &TaskGiven<'_>) -> Self {
        given.states.get::<T>().map(State)
    }
}

/// The payload, as the task's body takes it.
pub(crate) fn payload<H: TaskHandler>(given: &TaskGiven<'_>) -> Result<H::Payload, JobError> {
    serde_json::from_str(given.payload).map_err(|error| {
        let text = format!("the payload of the task is no `{}`: {error}", type_name::<H::Payload>());
        JobError::new(text)
    })
}
