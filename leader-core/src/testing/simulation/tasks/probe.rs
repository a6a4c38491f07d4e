//! Looks at each poll of an attempt's body, from inside its guard.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Sight;
use super::seen::{Attempt, TaskSeen};
use crate::job::record::{BodyFuture, BodyResult};
use crate::tasks::extract::TaskGiven;
use crate::tasks::id::TaskId;
use crate::tasks::record::TaskHandler;
use crate::tasks::task::Task;
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::world::{World, lock};

/// The attempts whose bodies have begun and not ended, in the order in which they began.
#[derive(Default)]
pub(super) struct Under(Vec<(Attempt, Task)>);

impl Under {
    fn enter(&mut self, attempt: &Attempt, task: &Task) {
        self.0.push((attempt.clone(), task.clone()));
    }

    fn leave(&mut self, attempt: &Attempt) {
        self.0.retain(|(other, _)| other != attempt);
    }

    /// The other attempts at a task that are trusted.
    fn trusted(&self, id: &TaskId, besides: &Attempt) -> Vec<Attempt> {
        let others = self
            .0
            .iter()
            .filter(|(other, task)| other.id == *id && other != besides && task.is_trusted());
        others.map(|(other, _)| other.clone()).collect()
    }
}

/// The body of `H`, looked at.
pub(super) fn run<H: TaskHandler>(given: &TaskGiven<'_>) -> BodyFuture {
    let body = (H::RECORD.body.run)(given);
    let Some(sight) = given.states.get::<Sight>() else {
        return body;
    };
    let task = given.task.clone();
    let attempt = Attempt {
        who: sight.who,
        task: H::NAME,
        id: task.id().clone(),
        number: task.attempt(),
        fence: task.fence(),
        due: task.due_at(),
    };
    Box::pin(Probed {
        sight,
        task,
        attempt,
        body,
        polled: false,
        returned: None,
    })
}

struct Probed {
    sight: Sight,
    task: Task,
    attempt: Attempt,
    body: BodyFuture,
    polled: bool,
    returned: Option<bool>,
}

impl Probed {
    fn look(&mut self, world: &World) {
        let first = !std::mem::replace(&mut self.polled, true);
        if first {
            lock(&world.tasks.under).enter(&self.attempt, &self.task);
        }
        let lives = |other: &Attempt| {
            let living = world.living(other.who.instance);
            living.is_some_and(|(who, ..)| who == other.who)
        };
        let mut others = lock(&world.tasks.under).trusted(&self.attempt.id, &self.attempt);
        others.retain(lives);
        world.see(&Seen::Task(TaskSeen::Polled {
            attempt: &self.attempt,
            first,
            trusted: self.task.is_trusted(),
            others: &others,
        }));
    }
}

impl Future for Probed {
    type Output = BodyResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(world) = this.sight.world.upgrade() {
            this.look(&world);
        }
        let polled = this.body.as_mut().poll(cx);
        if let Poll::Ready(result) = &polled {
            this.returned = Some(matches!(result, Ok(Ok(()))));
        }
        polled
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        if let Some(world) = self.sight.world.upgrade().filter(|_| self.polled) {
            lock(&world.tasks.under).leave(&self.attempt);
            let (attempt, returned) = (&self.attempt, self.returned);
            world.see(&Seen::Task(TaskSeen::Ended { attempt, returned }));
        }
    }
}
