//! What a piece of work costs this thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The thread's own processor time, so that others on the machine do not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The answer of `work`, and the processor time it took.
///
/// Above `bound` it is measured twice more, and the least counts: a page fault or an interrupt is charged to whoever is running, but
/// not three times in a row to the same work.
pub fn metered<T>(bound: Duration, work: impl Fn() -> T) -> (T, Duration) {
    let once = || {
        let before = processor_time();
        let answer = work();
        (answer, processor_time().saturating_sub(before))
    };
    let (answer, mut least) = once();
    for _ in 0..2 {
        if least > bound {
            least = least.min(once().1);
        }
    }
    (answer, least)
}
