//! One result of a task is accepted, of the attempt under way: a late one is refused, what is done is not begun again, and no body is polled
//! after its end was accepted (fencing on the side of the store: Kleppmann, "How to do distributed locking", 2016).

use super::{Known, ended};
use crate::store::tasks::TaskStatus;
use crate::testing::simulation::invariants::{Invariant, Scene};
use crate::testing::simulation::seen::Seen;
use crate::testing::simulation::tasks::seen::TaskSeen;

/// What a server has done with a task.
#[derive(Default)]
struct Course {
    running: Option<u64>,
    /// The attempt whose end was accepted last.
    accepted: Option<u64>,
    ended: Option<TaskStatus>,
}

/// By task, of those that were stored since a server last forgot anything.
#[derive(Default)]
pub(super) struct DoneOnce(Known<Course>);

impl Invariant for DoneOnce {
    fn name(&self) -> &'static str {
        "a task is done once"
    }

    fn see(&mut self, seen: &Seen<'_>, scene: Scene) -> Result<(), String> {
        if scene.forgets {
            self.0.0.clear();
            return Ok(());
        }
        let Seen::Task(seen) = seen else { return Ok(()) };
        if let TaskSeen::Stored { id, again: false, .. } = seen
            && self.0.get(id).is_none()
        {
            self.0.insert(id, Course::default());
        }
        let course = match seen {
            TaskSeen::Stored { id, .. }
            | TaskSeen::Begun { id, .. }
            | TaskSeen::Finished { id, .. }
            | TaskSeen::Changed { id, .. }
            | TaskSeen::Lost { id, .. } => self.0.get(id),
            TaskSeen::Polled { attempt, .. } => self.0.get(&attempt.id),
            _ => None,
        };
        let Some(course) = course else { return Ok(()) };
        match seen {
            TaskSeen::Begun { id, fence, anew, .. } => {
                if *anew {
                    return Err(format!(
                        "a step that is asked for again begins another attempt, at {id} under {fence}"
                    ));
                }
                if let Some(status) = course.ended {
                    return Err(format!("{id} is {status}, and an attempt begins under {fence}"));
                }
                if course.running.is_some_and(|running| running != *fence) {
                    return Err(format!(
                        "an attempt at {id} begins under {fence} beside that of {:?}",
                        course.running
                    ));
                }
                course.running = Some(*fence);
            }
            TaskSeen::Finished {
                id,
                fence,
                taken: true,
                how,
                ..
            } => {
                if course.running == Some(*fence) {
                    course.running = None;
                    course.accepted = Some(*fence);
                } else if course.accepted != Some(*fence) {
                    return Err(format!(
                        "the late result {how:?} of {id} under {fence} is accepted, while {:?} runs and after that of {:?}",
                        course.running, course.accepted
                    ));
                }
            }
            TaskSeen::Lost { .. } => course.running = None,
            TaskSeen::Polled { attempt, .. } if course.accepted == Some(attempt.fence) => {
                return Err(format!("polled after its end was accepted: {attempt:?}"));
            }
            _ => {}
        }
        if let Some((_, status)) = ended(seen) {
            course.ended = Some(status);
        }
        Ok(())
    }
}
