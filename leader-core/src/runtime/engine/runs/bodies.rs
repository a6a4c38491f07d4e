//! What a run runs.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::Engine;
use crate::job::extract::Given;
use crate::job::gate::Lead;
use crate::job::record::{On, OnLoss};
use crate::job::scope::{self, Scope};
use crate::job::tick::{Inner, Origin, Tick};
use crate::runtime::companion::HandedOver;
use crate::runtime::guarded::{Control, Ending, Start};

impl Engine {
    pub(super) fn body_of(
        &self,
        job: usize,
        tick: Timestamp,
        origin: Origin,
        attempt: u32,
        lead: Lead,
        control: Arc<Control>,
    ) -> Start {
        let shared = Arc::clone(&self.shared);
        let spec = self.jobs.share(job);
        if let (On::Fleet, Some(companion)) = (spec.on, shared.config.companion.clone()) {
            // What this leader runs is the handing over; the body is some worker's.
            let run = HandedOver {
                job: spec.name.clone(),
                tick,
                origin,
            };
            return Box::new(move || {
                let handing_over = companion.hand_over(run);
                Box::pin(async move { Ending::from(handing_over.await) })
            });
        }
        Box::new(move || {
            let tick = Tick::new(Inner {
                job: spec.name.clone(),
                origin,
                scheduled_at: tick,
                started_at: shared.config.clock.wall(),
                attempt,
                lead: lead.clone(),
            });
            let given = Given {
                tick: Some(&tick),
                lead: &lead,
                states: &shared.config.states,
                payload: spec.made.as_ref().map(|made| &*made.payload),
            };
            let body = (spec.body.run)(&given);
            let scope = || Scope::new(Some(Arc::clone(&shared.gates)), Some(lead.clone()));
            let around = &shared.config.around;
            if around.is_empty() {
                let body = scope::within(scope(), body);
                return Box::pin(async move { Ending::from(body.await) });
            }
            // Whatever scope a middleware awaits it in, the body is in its own.
            let body = Box::pin(scope::within(scope(), body));
            let (on_loss, trusted) = (spec.on_loss, lead.clone());
            let is_over = move || control.is_over() || (on_loss == OnLoss::Cancel && !trusted.is_leading());
            let wrapped = scope::within(scope(), around.wrap(&tick, body, is_over));
            Box::pin(async move { wrapped.await.map_or_else(Ending::not_started, Ending::from) })
        })
    }
}
