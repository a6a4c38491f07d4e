//! Whether the process lives, whether the instance is ready, and whether it leads.

use ::http::{Response, StatusCode};

use super::{Body, respond};
use crate::instance::Instance;
use crate::names::DEFAULT_GROUP;

pub(super) fn live(instance: &Instance) -> Response<Body> {
    if instance.is_alive() {
        respond::text(StatusCode::OK, "ok".to_owned())
    } else {
        let why = "the framework's thread has ended: this process never leads again, start it anew";
        respond::text(StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
    }
}

pub(super) fn ready(instance: &Instance, query: &str) -> Response<Body> {
    let health = instance.health();
    let status = status(health.is_ready());
    let verbose = pairs(query).any(|(name, value)| name == "verbose" && !matches!(value, "0" | "false"));
    let text = match (verbose, health.is_ready()) {
        (true, _) => health.to_string(),
        (false, true) => "ready".to_owned(),
        (false, false) => {
            let faults = health.checks.iter().filter(|check| check.fault.is_some());
            let names: Vec<_> = faults.map(|check| check.name).collect();
            format!("not ready: {} (?verbose says why)", names.join(", "))
        }
    };
    respond::text(status, text)
}

pub(super) fn leads(instance: &Instance, query: &str) -> Response<Body> {
    let asked = pairs(query).find(|(name, _)| *name == "group").map(|(_, value)| value);
    let group = decoded(asked.filter(|group| !group.is_empty()).unwrap_or(DEFAULT_GROUP));
    let Some(watch) = instance.watch(&group) else {
        let known: Vec<_> = instance
            .groups()
            .into_iter()
            .map(|status| status.group.to_string())
            .collect();
        let why = format!("this instance knows no group `{group}`; it knows {}", known.join(", "));
        return respond::text(StatusCode::NOT_FOUND, why);
    };
    let leads = instance.is_leader(&group);
    let text = match watch.current().leader {
        _ if leads => "leader".to_owned(),
        Some(leader) => format!("not leader: {leader} leads `{group}`, as last seen"),
        None => format!("not leader: nobody is known to lead `{group}`"),
    };
    respond::text(status(leads), text)
}

fn status(good: bool) -> StatusCode {
    if good {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// The names and values of a query, still encoded.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// A group's name, in which `:` and `/` may be written with percent signs. What is not so written is no group's name as it is.
fn decoded(text: &str) -> String {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'%' => match (digit(bytes.next()), digit(bytes.next())) {
                (Some(high), Some(low)) => plain.push(u8::try_from(high * 16 + low).unwrap_or(b'?')),
                _ => plain.push(b'%'),
            },
            byte => plain.push(byte),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
