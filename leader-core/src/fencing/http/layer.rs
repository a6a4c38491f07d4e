//! A layer of tower that refuses requests with a lower fence than it has seen.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::header::CONTENT_TYPE;
use ::http::request::Parts;
use ::http::{HeaderValue, Request, Response, StatusCode};
use serde_json::json;
use tower_layer::Layer;
use tower_service::Service;

use super::{FENCE_HEADER, GROUP_HEADER, RequestFence};
use crate::fencing::{FenceTooHigh, Fenced};
use crate::names::GroupName;

/// Where a server keeps the highest fence of each resource.
///
/// [`MemoryFences`](super::MemoryFences) is the one that comes along; [several servers](mod@crate::fencing::http#more-than-one-server) need one that
/// they share.
pub trait Fences: Send + Sync + 'static {
    /// Takes a fence for a resource, unless a higher one was taken before; both in one step. An equal one is taken.
    ///
    /// Fences of different groups say nothing about each other: keep one number for each pair of group and resource. The future is dropped
    /// when the request is.
    fn raise(
        &self,
        group: &GroupName,
        resource: &str,
        fence: u64,
    ) -> impl Future<Output = Result<(), RaiseError>> + Send;
}

/// Why a fence was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RaiseError {
    /// A newer run has been here.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// What was taken for this resource was forgotten, and this fence is lower than some that were.
    #[error(
        "`{resource}` refuses fence {fence}: what was taken for it may have been forgotten, and fences below {lowest} are refused then; \
         if no newer run of `{group}` has written to it, the server needs room for more resources (`MemoryFences::with_capacity`)"
    )]
    Forgotten {
        /// The group.
        group: GroupName,
        /// The resource.
        resource: String,
        /// The fence that was refused.
        fence: u64,
        /// The lowest that is taken for a resource that is not remembered.
        lowest: u64,
    },
    /// It cannot be told now.
    #[error("the fences cannot be asked: {0}")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}

impl RaiseError {
    /// It cannot be told now, for this reason.
    pub fn unavailable(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<FenceTooHigh> for RaiseError {
    fn from(error: FenceTooHigh) -> Self {
        Self::unavailable(error)
    }
}

type Key = Arc<dyn Fn(&Parts) -> String + Send + Sync>;

/// A layer that lets a request in if its fence is not lower than one that was seen for its group and resource; see the
/// [page](mod@crate::fencing::http#the-server).
///
/// The response's body must be made from text, as `axum::body::Body` and `http_body_util::Full<Bytes>` can.
pub struct FenceLayer<F> {
    fences: Arc<F>,
    key: Key,
    is_required: bool,
}

impl<F: Fences> FenceLayer<F> {
    /// Compares by what is kept there. Requests without a fence are let in; the resource is the path.
    #[must_use]
    pub fn new(fences: F) -> Self {
        Self {
            fences: Arc::new(fences),
            key: Arc::new(|request| request.uri.path().to_owned()),
            is_required: false,
        }
    }

    /// Refuses requests without a fence: 428.
    #[must_use]
    pub fn require(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// What a request writes to, where the path does not say it. Two requests that write to one thing must get one key. The path is as
    /// it was sent, but for the part that a nested router has taken off: `/a` and `/a/` and `/%61` are three resources.
    #[must_use]
    pub fn key(mut self, key: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.key = Arc::new(key);
        self
    }
}

impl<F> Clone for FenceLayer<F> {
    fn clone(&self) -> Self {
        Self {
            fences: Arc::clone(&self.fences),
            key: Arc::clone(&self.key),
            is_required: self.is_required,
        }
    }
}

impl<F> fmt::Debug for FenceLayer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceLayer")
            .field("is_required", &self.is_required)
            .finish_non_exhaustive()
    }
}

impl<S, F> Layer<S> for FenceLayer<F> {
    type Service = FenceService<S, F>;

    fn layer(&self, inner: S) -> Self::Service {
        let layer = self.clone();
        FenceService { inner, layer }
    }
}

/// A service behind a [`FenceLayer`].
pub struct FenceService<S, F> {
    inner: S,
    layer: FenceLayer<F>,
}

impl<S: Clone, F> Clone for FenceService<S, F> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

impl<S, F> fmt::Debug for FenceService<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceService")
            .field("layer", &self.layer)
            .finish_non_exhaustive()
    }
}

impl<S, F, B, R> Service<Request<B>> for FenceService<S, F>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    F: Fences,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was found ready is the one to call.
        let next = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, next);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            match layer.admits(&mut parts).await {
                Ok(()) => inner.call(Request::from_parts(parts, body)).await,
                Err(refusal) => Ok(refusal.into_response()),
            }
        })
    }
}

impl<F: Fences> FenceLayer<F> {
    async fn admits(&self, request: &mut Parts) -> Result<(), Refusal> {
        let sent = RequestFence::from_headers(&request.headers);
        let Some(sent) = sent.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "headers", &error))? else {
            return if self.is_required {
                let message = format!(
                    "a request without a fence is not let in: send `{GROUP_HEADER}` and `{FENCE_HEADER}`, which \
                     `RequestFence::headers` gives"
                );
                Err(Refusal::new(StatusCode::PRECONDITION_REQUIRED, "no_fence", &message))
            } else {
                Ok(())
            };
        };
        let resource = (self.key)(request);
        match self.fences.raise(sent.group(), &resource, sent.fence()).await {
            Ok(()) => {
                request.extensions.insert(sent);
                Ok(())
            }
            Err(error) => Err(Refusal::of(&error, &sent, &resource)),
        }
    }
}

/// An answer in place of the service's.
struct Refusal {
    status: StatusCode,
    body: serde_json::Value,
}

impl Refusal {
    fn new(status: StatusCode, error: &str, message: &impl ToString) -> Self {
        let body = json!({ "error": error, "message": message.to_string() });
        Self { status, body }
    }

    fn of(error: &RaiseError, sent: &RequestFence, resource: &str) -> Self {
        let refused = StatusCode::PRECONDITION_FAILED;
        let mut refusal = match error {
            RaiseError::Fenced(fenced) => {
                let mut refusal = Self::new(refused, "fenced", fenced);
                refusal.body["held"] = json!(fenced.held);
                refusal
            }
            RaiseError::Forgotten { lowest, .. } => {
                let mut refusal = Self::new(refused, "forgotten", error);
                refusal.body["lowest"] = json!(lowest);
                refusal
            }
            RaiseError::Unavailable(source) => {
                // What a database says of itself is for the log, not for whoever asks.
                tracing::warn!(error = %source, "the fences cannot be asked: requests are refused");
                let message = "the server cannot tell now whether a newer run has been here: try again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &message)
            }
        };
        refusal.body["group"] = json!(sent.group().as_str());
        refusal.body["resource"] = json!(resource);
        refusal.body["fence"] = json!(sent.fence());
        refusal
    }

    fn into_response<R: From<String>>(self) -> Response<R> {
        let mut response = Response::new(R::from(self.body.to_string()));
        *response.status_mut() = self.status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
