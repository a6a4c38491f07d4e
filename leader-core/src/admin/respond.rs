//! Answers, and the headers that all of them have.

use ::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use ::http::{HeaderValue, Response, StatusCode};

use super::Body;

/// Nothing of an answer is to be run, framed or kept.
const HEADERS: [(::http::HeaderName, HeaderValue); 4] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

pub(super) fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().extend(HEADERS);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn text(status: StatusCode, text: String) -> Response<Body> {
    respond(status, "text/plain; charset=utf-8", text + "\n")
}

pub(super) fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let mut answer = text(status, why.to_owned());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        answer
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    answer
}
