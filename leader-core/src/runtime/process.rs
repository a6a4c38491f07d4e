//! What the tasks of an instance live in: the process as it is, or in a simulation one that can be stopped and killed.

use std::future::Future;

#[cfg(feature = "testing")]
pub(crate) use stoppable::Stoppable;

/// The process of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    #[cfg(feature = "testing")]
    simulated: Option<std::sync::Arc<Stoppable>>,
}

impl Process {
    /// A task of this process. In a real one there is nothing to do.
    #[cfg(not(feature = "testing"))]
    #[allow(clippy::unused_self, reason = "a simulated process has something to do")]
    pub(crate) fn hold<F: Future<Output = ()> + Send + 'static>(&self, task: F) -> F {
        task
    }

    /// A task of this process: polled only while that runs, and dropped when it is killed.
    #[cfg(feature = "testing")]
    pub(crate) fn hold<F: Future<Output = ()> + Send + 'static>(
        &self,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        let held = self.simulated.clone();
        async move {
            match held {
                None => task.await,
                Some(process) => stoppable::Held::new(process, Box::pin(task)).await,
            }
        }
    }
}

#[cfg(feature = "testing")]
impl From<std::sync::Arc<Stoppable>> for Process {
    fn from(process: std::sync::Arc<Stoppable>) -> Self {
        let simulated = Some(process);
        Self { simulated }
    }
}

#[cfg(feature = "testing")]
mod stoppable {
    use std::collections::BTreeMap;
    use std::fmt;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::{Context, Poll, Waker};

    const RUNS: u8 = 0;
    const STANDS: u8 = 1;
    const DEAD: u8 = 2;

    /// A simulated process.
    pub(crate) struct Stoppable {
        state: AtomicU8,
        /// Of every task that has been polled and has not ended, in the order of their first polls.
        wakers: Mutex<(u64, BTreeMap<u64, Waker>)>,
        /// Called after each poll of a task: what a debugger would see between two instructions.
        looks: Box<dyn Fn() + Send + Sync>,
    }

    impl fmt::Debug for Stoppable {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Stoppable")
                .field("state", &self.state)
                .finish_non_exhaustive()
        }
    }

    impl Stoppable {
        pub(crate) fn new(looks: impl Fn() + Send + Sync + 'static) -> Self {
            Self {
                state: AtomicU8::new(RUNS),
                wakers: Mutex::default(),
                looks: Box::new(looks),
            }
        }

        /// Polls no task any more until further notice, as after SIGSTOP.
        pub(crate) fn stop(&self) {
            let _ = self
                .state
                .compare_exchange(RUNS, STANDS, Ordering::SeqCst, Ordering::SeqCst);
        }

        /// Goes on, as after SIGCONT: every task looks what it has missed.
        pub(crate) fn go_on(&self) {
            if self
                .state
                .compare_exchange(STANDS, RUNS, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                self.wake();
            }
        }

        /// Drops every task, as `kill -9` does.
        pub(crate) fn kill(&self) {
            self.state.store(DEAD, Ordering::SeqCst);
            self.wake();
        }

        pub(crate) fn is_dead(&self) -> bool {
            self.state.load(Ordering::SeqCst) == DEAD
        }

        /// How many tasks there are.
        pub(crate) fn tasks(&self) -> usize {
            self.wakers.lock().unwrap_or_else(PoisonError::into_inner).1.len()
        }

        fn wake(&self) {
            let wakers: Vec<_> = {
                let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
                wakers.1.values().cloned().collect()
            };
            wakers.iter().for_each(Waker::wake_by_ref);
        }

        fn enter(&self, waker: &Waker) -> u64 {
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            wakers.0 += 1;
            let id = wakers.0;
            wakers.1.insert(id, waker.clone());
            id
        }

        fn leave(&self, id: u64) {
            let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            wakers.1.remove(&id);
        }
    }

    /// A task of such a process. It is spawned, so that it has one waker all its life.
    pub(super) struct Held {
        process: Arc<Stoppable>,
        task: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        id: Option<u64>,
    }

    impl Held {
        pub(super) fn new(process: Arc<Stoppable>, task: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
            Self {
                process,
                task: Some(task),
                id: None,
            }
        }
    }

    impl Future for Held {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let this = &mut *self;
            if this.id.is_none() {
                this.id = Some(this.process.enter(cx.waker()));
            }
            match this.process.state.load(Ordering::SeqCst) {
                RUNS => {}
                STANDS => return Poll::Pending,
                _ => {
                    this.task = None;
                    return Poll::Ready(());
                }
            }
            let polled = match &mut this.task {
                Some(task) => task.as_mut().poll(cx),
                None => Poll::Ready(()),
            };
            (this.process.looks)();
            polled
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            if let Some(id) = self.id {
                self.process.leave(id);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::super::Process;
        use super::*;
        use std::sync::atomic::AtomicUsize;
        use tokio::sync::mpsc;

        struct Dropped(Arc<AtomicUsize>);

        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }

        #[tokio::test]
        async fn a_process_that_stands_polls_nothing_and_a_dead_one_keeps_nothing() {
            let (looks, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let looked = Arc::clone(&looks);
            let stoppable = Arc::new(Stoppable::new(move || {
                looked.fetch_add(1, Ordering::SeqCst);
            }));
            let process = Process::from(Arc::clone(&stoppable));
            let (tell, mut told) = mpsc::unbounded_channel();
            let (answer, mut answers) = mpsc::unbounded_channel();
            let own = Dropped(Arc::clone(&dropped));
            let task = tokio::spawn(process.hold(async move {
                let _own = own;
                while let Some(number) = told.recv().await {
                    answer.send(number).unwrap();
                }
            }));
            tell.send(1).unwrap();
            assert_eq!(answers.recv().await, Some(1));
            assert_eq!(stoppable.tasks(), 1);
            stoppable.stop();
            let before = looks.load(Ordering::SeqCst);
            tell.send(2).unwrap();
            tokio::task::yield_now().await;
            assert!(answers.try_recv().is_err());
            assert_eq!(looks.load(Ordering::SeqCst), before);
            stoppable.go_on();
            assert_eq!(answers.recv().await, Some(2));
            stoppable.kill();
            task.await.unwrap();
            assert_eq!((dropped.load(Ordering::SeqCst), stoppable.tasks()), (1, 0));
            stoppable.go_on();
            assert!(stoppable.is_dead());
        }
    }
}
