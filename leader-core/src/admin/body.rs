//! The body of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// The body of an answer: what any server on `http-body` takes.
#[derive(Debug, Default)]
pub struct Body(Option<Bytes>);

impl Body {
    pub(super) fn empty() -> Self {
        Self(None)
    }

    /// What it holds.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.map(Vec::from).unwrap_or_default()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self(Some(Bytes::from(text)).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
