//! Looks at each poll of a body, from inside its guard.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::seen::{Body, Seen, Who};
use super::world::World;
use crate::job::around::Next;
use crate::job::output::JobError;
use crate::job::record::OnLoss;
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
    /// The body of a tick, looked at.
    pub(super) fn of(world: &Weak<World>, who: Who, tick: Tick, next: Next) -> Self {
        let record = world.upgrade().and_then(|world| {
            let records = &world.setting.jobs;
            records
                .iter()
                .find(|record| record.name == tick.job().as_str())
                .copied()
        });
        let body = Body {
            who,
            job: record.map_or("?", |record| record.name),
            group: tick.lead().group().to_string(),
            tick: tick.scheduled_at(),
            origin: tick.origin(),
            attempt: tick.attempt(),
            fence: tick.fence(),
            term: tick.lead().term(),
            finishes: record.is_some_and(|record| record.on_loss == OnLoss::Finish),
            overlap: record.map(|record| record.overlap).unwrap_or_default(),
        };
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
