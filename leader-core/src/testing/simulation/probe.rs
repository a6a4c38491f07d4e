//! Looks at each poll of a body, from inside its guard.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::seen::{Body, Seen};
use super::world::World;
use crate::job::around::Next;
use crate::job::output::JobError;
use crate::job::tick::Tick;

pub(super) struct Probed {
    world: Weak<World>,
    body: Body,
    tick: Tick,
    next: Next,
    polled: bool,
    returned: Option<bool>,
}

impl Probed {
    pub(super) fn new(world: &Weak<World>, body: Body, tick: Tick, next: Next) -> Self {
        Self {
            world: Weak::clone(world),
            body,
            tick,
            next,
            polled: false,
            returned: None,
        }
    }

    fn world(&self) -> Option<Arc<World>> {
        self.world.upgrade()
    }
}

impl Future for Probed {
    type Output = Result<(), JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let (first, trusted) = (!this.polled, this.tick.lead().is_leading());
        this.polled = true;
        if let Some(world) = this.world() {
            let body = &this.body;
            world.see(&Seen::Polled { body, first, trusted });
        }
        let polled = Pin::new(&mut this.next).poll(cx);
        if let Poll::Ready(result) = &polled {
            this.returned = Some(result.is_ok());
        }
        polled
    }
}

impl Drop for Probed {
    fn drop(&mut self) {
        let returned = self.returned;
        if let Some(world) = self.world().filter(|_| self.polled) {
            let body = &self.body;
            world.see(&Seen::Ended { body, returned });
        }
    }
}
