//! HTTP for probes, scrapes and people: a service of tower for whatever server the program has.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let instance = leader_core::bootstrap(leader_core::Embedded::new()).await?;
//! use leader_core::admin::Admin;
//!
//! // With axum, beside the program's own routes:
//! let app = axum::Router::<()>::new()
//!     .nest_service("/leader", Admin::new(&instance))
//!     .route("/", axum::routing::get(|| async { "hello" }));
//! # let _ = app;
//! # Ok(())
//! # }
//! ```
//!
//! | path | what it answers |
//! |---|---|
//! | `/metrics` | the numbers of this instance, as `OpenMetrics` or in Prometheus' text format, whichever is accepted |
//! | `/livez`, `/healthz` | 200 while the process is worth keeping: the store plays no part in it |
//! | `/readyz` | 200 while the instance is ready, 503 otherwise; `?verbose` says why. **Ready never means that it leads** |
//! | `/leaderz?group=g` | 200 where this instance leads the group (`default` unless given), 503 where it does not, 404 for a group that it does not know |
//!
//! Every path is answered below any prefix: [`Admin::at`] names the one that the server does not strip by itself.

mod body;
mod health;
mod respond;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::request::Parts;
use ::http::{Method, Request, Response, StatusCode};
use tower_service::Service;

pub use body::Body;
use respond::respond;

use crate::instance::Instance;

/// How long a scrape waits for what only the store knows.
const SCRAPE: Duration = Duration::from_millis(250);

/// The service of one instance. Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    instance: Instance,
    prefix: Arc<str>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("instance", self.instance.id())
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Admin {
    /// The service of an instance, whose paths begin at the root.
    #[must_use]
    pub fn new(instance: &Instance) -> Self {
        Self {
            instance: instance.clone(),
            prefix: Arc::from(""),
        }
    }

    /// The same below a prefix such as `/ops/leader`, for a server that hands on the whole path. A request whose path does not begin with it
    /// is taken as one whose prefix was stripped on its way, as by a proxy.
    #[must_use]
    pub fn at(self, prefix: &str) -> Self {
        let trimmed = prefix.trim_matches('/');
        let prefix = if trimmed.is_empty() {
            String::new()
        } else {
            format!("/{trimmed}")
        };
        Self {
            prefix: prefix.into(),
            ..self
        }
    }

    /// Answers a request whose body is not needed. Cancel safe.
    pub async fn answer(&self, request: &Parts) -> Response<Body> {
        let path = self.below(request.uri.path());
        if request.method != Method::GET && request.method != Method::HEAD {
            return respond::refused(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        }
        let query = request.uri.query().unwrap_or_default();
        let answer = match path {
            "/metrics" => {
                let metrics = self.instance.metrics();
                // What the store does not tell in time stays as it was.
                let _ = tokio::time::timeout(SCRAPE, metrics.refresh()).await;
                let accept = request.headers.get(::http::header::ACCEPT);
                let (kind, text) = metrics.negotiate(accept.and_then(|accept| accept.to_str().ok()));
                respond(StatusCode::OK, kind, text)
            }
            "/livez" | "/healthz" => health::live(&self.instance),
            "/readyz" => health::ready(&self.instance, query),
            "/leaderz" => health::leads(&self.instance, query),
            _ => respond::refused(
                StatusCode::NOT_FOUND,
                "there is no such page: take /metrics, /livez, /readyz or /leaderz?group=..",
            ),
        };
        if request.method == Method::HEAD {
            return answer.map(|_| Body::empty());
        }
        answer
    }

    /// The path below the prefix.
    fn below<'a>(&self, path: &'a str) -> &'a str {
        let rest = path.strip_prefix(&*self.prefix);
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .unwrap_or(path)
    }
}

impl<B: Send + 'static> Service<Request<B>> for Admin {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let admin = self.clone();
        let (parts, _) = request.into_parts();
        Box::pin(async move { Ok(admin.answer(&parts).await) })
    }
}
