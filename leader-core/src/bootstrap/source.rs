//! Where the store is.

use std::sync::Arc;
use std::time::Duration;

use super::fault::Fault;
use crate::clock::Clock;
use crate::names::Namespace;
use crate::store::Store;
use crate::store::embedded::Embedded;
use crate::store::ledger::Keep;
#[cfg(feature = "redis")]
use crate::store::redis::RedisStore;

/// Something that a store can be made of: a URL, a `redis::Client`, [`Embedded`](crate::Embedded), or [`env()`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the store of an instance",
    label = "not a store",
    note = "give a URL (`\"redis://127.0.0.1/\"`), a `redis::Client`, `leader_core::Embedded` or `leader_core::env()`",
    note = "pools, connection managers and open connections are not taken: leases need connections of their own, with their own time-outs"
)]
pub trait IntoStore: sealed::Sealed {
    #[doc(hidden)]
    fn into_source(self) -> Result<Source, Fault>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl Sealed for super::Embedded {}
    impl Sealed for super::Env {}
    #[cfg(feature = "redis")]
    impl Sealed for redis::Client {}
}

#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Source(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Embedded(Embedded),
    #[cfg(feature = "redis")]
    Redis(Box<redis::ConnectionInfo>),
    #[cfg(feature = "testing")]
    Given(Arc<dyn Store>, Clock),
}

impl Source {
    #[cfg_attr(
        not(feature = "redis"),
        allow(clippy::unnecessary_wraps, reason = "with the feature `redis` there is another kind")
    )]
    pub(super) fn embedded(&self) -> Option<&Embedded> {
        match &self.0 {
            Kind::Embedded(embedded) => Some(embedded),
            #[cfg(feature = "redis")]
            Kind::Redis(_) => None,
            #[cfg(feature = "testing")]
            Kind::Given(..) => None,
        }
    }

    /// The store, and the clock that its instances live by.
    #[cfg_attr(
        not(feature = "redis"),
        allow(unused_variables, reason = "the embedded store has no keys and never waits")
    )]
    pub(super) fn open(self, namespace: &Namespace, bound: Duration, keep: Keep) -> (Arc<dyn Store>, Clock) {
        match self.0 {
            Kind::Embedded(embedded) => {
                let clock = embedded.clock().clone();
                (Arc::new(embedded.in_namespace(namespace).keeping(keep)), clock)
            }
            #[cfg(feature = "redis")]
            Kind::Redis(info) => (
                Arc::new(RedisStore::new(&info, namespace, bound).keeping(keep)),
                Clock::system(),
            ),
            #[cfg(feature = "testing")]
            Kind::Given(store, clock) => (store, clock),
        }
    }
}

impl IntoStore for Embedded {
    fn into_source(self) -> Result<Source, Fault> {
        Ok(Source(Kind::Embedded(self)))
    }
}

impl IntoStore for &str {
    fn into_source(self) -> Result<Source, Fault> {
        from_url(self)
    }
}

impl IntoStore for String {
    fn into_source(self) -> Result<Source, Fault> {
        from_url(&self)
    }
}

#[cfg(feature = "redis")]
impl IntoStore for redis::Client {
    fn into_source(self) -> Result<Source, Fault> {
        Ok(Source(Kind::Redis(Box::new(self.get_connection_info().clone()))))
    }
}

#[cfg(feature = "redis")]
fn from_url(url: &str) -> Result<Source, Fault> {
    let info = crate::store::redis::parse(url).map_err(Fault::Store)?;
    Ok(Source(Kind::Redis(Box::new(info))))
}

#[cfg(not(feature = "redis"))]
fn from_url(_url: &str) -> Result<Source, Fault> {
    let advice = "a URL needs the feature `redis` of leader-core, which is off";
    Err(Fault::Store(crate::store::StoreError::config(advice)))
}

/// The store that the environment names: `LEADER_REDIS_URL`, or `LEADER_STORE=embedded` said aloud.
///
/// Neither is an error of the start, and so are both.
#[must_use]
pub fn env() -> Env {
    let var = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    Env {
        url: var("LEADER_REDIS_URL"),
        store: var("LEADER_STORE"),
    }
}

/// What [`env()`] found.
#[derive(Clone, Debug)]
pub struct Env {
    url: Option<String>,
    store: Option<String>,
}

impl IntoStore for Env {
    fn into_source(self) -> Result<Source, Fault> {
        match (self.url, self.store.as_deref()) {
            (Some(url), None) => from_url(&url),
            (None, Some("embedded")) => Embedded::new().into_source(),
            (Some(_), Some("embedded")) => Err(Fault::TwoStores),
            (None, None) => Err(Fault::NoStore),
            (_, Some(other)) => Err(Fault::Variable {
                variable: "LEADER_STORE".to_owned(),
                value: other.to_owned(),
                reason: "the only value is `embedded`; a Redis is named by LEADER_REDIS_URL".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: Option<&str>, store: Option<&str>) -> Result<Source, Fault> {
        let env = Env {
            url: url.map(str::to_owned),
            store: store.map(str::to_owned),
        };
        env.into_source()
    }

    #[test]
    fn the_environment_must_say_one_thing() {
        assert!(of(Some("redis://127.0.0.1/"), None).unwrap().embedded().is_none());
        assert!(of(None, Some("embedded")).unwrap().embedded().is_some());
        assert!(matches!(of(None, None), Err(Fault::NoStore)));
        assert!(matches!(
            of(Some("redis://127.0.0.1/"), Some("embedded")),
            Err(Fault::TwoStores)
        ));
        assert!(matches!(of(None, Some("memory")), Err(Fault::Variable { .. })));
        assert!(matches!(of(Some("nonsense"), None), Err(Fault::Store(_))));
    }
}
