//! The start itself.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::unfinished::Unfinished;
use super::{Bootstrap, BootstrapError, announce, settings};
use crate::clock::Clock;
use crate::instance::Instance;
use crate::job::gate::Gate;
use crate::job::scope::{self, Gates};
use crate::metrics::Metered;
use crate::names::GroupName;
use crate::runtime::config::Config;
use crate::runtime::engine::Refused;
use crate::runtime::shared::Shared;
use crate::runtime::thread;

impl Bootstrap {
    async fn start(self) -> Result<Instance, BootstrapError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(BootstrapError::NoRuntime);
        }
        let require_store = self.require_store || self.vars.flag("LEADER_REQUIRE_STORE").unwrap_or(false);
        let events = self.events.clone();
        let wall_ahead = self.wall_ahead;
        let shown = self.within.gates.clone();
        #[cfg_attr(
            not(feature = "tasks"),
            allow(unused_mut, unused_variables, reason = "they are made elections")
        )]
        let (mut config, source, tasks) = settings::check(self)?;
        let bound = config.timing.operation();
        #[cfg(feature = "tasks")]
        super::tasks::open(tasks, &mut config, &source).await;
        let (store, clock) = source.open(&config.namespace, bound, config.keep.clone());
        let clock = wall_ahead.map_or(clock, Clock::ahead);
        let config = Config { clock, ..config };
        let gate = |group: &GroupName| Arc::new(Gate::new(group.clone(), config.clock.clone()));
        let gates = Arc::new(Gates::new(config.groups.iter().map(gate)));
        let (inbox, inputs) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(config, Arc::clone(&gates), store.address(), inbox, events));
        let (ready, first_answers) = oneshot::channel();
        // A cell of its own that is filled once.
        let _ = shown.set(Arc::clone(&gates));
        scope::register(&gates);
        let instance = Instance::new(Arc::clone(&shared));
        // Until the start has succeeded a dropped future, or an error, leaves nothing behind.
        let unfinished = Unfinished::new(&shared);
        let store = Metered::store(store, &shared.meter, &shared.config.clock);
        thread::start(&shared, store, inputs, ready).map_err(BootstrapError::Thread)?;
        let verdict = first_answers.await.unwrap_or(Ok(()));
        let health = match verdict {
            Ok(()) => "ok".to_owned(),
            Err(Refused::OtherService { service, instance }) => {
                return Err(BootstrapError::OtherService {
                    ours: shared.config.service.to_string(),
                    theirs: service,
                    instance,
                    namespace: shared.config.namespace.to_string(),
                });
            }
            Err(Refused::Unfit(findings)) => {
                return Err(BootstrapError::UnfitStore {
                    address: shared.store_address.clone(),
                    findings,
                });
            }
            Err(Refused::Unreachable(error)) if require_store => return Err(BootstrapError::Store(error)),
            Err(Refused::Unreachable(error)) => format!("not reachable, trying on ({error})"),
        };
        unfinished.finish();
        announce::announce(&shared, &health);
        Ok(instance)
    }
}

impl IntoFuture for Bootstrap {
    type Output = Result<Instance, BootstrapError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}
