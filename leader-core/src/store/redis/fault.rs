//! What an error of the `redis` crate means to us.

use std::error::Error;
use std::fmt;

use ::redis::{ErrorKind, RedisError};

use crate::store::error::{StoreError, StoreErrorKind};

/// Translates an error by its kind and, where the crate has no kind for it (`OOM`, `NOREPLICAS`, `MISCONF`), by its code.
pub(super) fn from_redis(error: RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let code = error.code().unwrap_or("ERR").to_owned();
            said(&code, Said::from(error))
        }
        // The handshake drops the server's own words.
        ErrorKind::AuthenticationFailed => StoreError::refused("WRONGPASS").with_source(Cause(error)),
        ErrorKind::InvalidClientConfig | ErrorKind::EmptySentinelList | ErrorKind::RESP3NotSupported => {
            StoreError::config("its URL or client settings are refused").with_source(Cause(error))
        }
        ErrorKind::Io | ErrorKind::Client => match tls_fault(&error) {
            Some(fault) => fault.with_source(Cause(error)),
            None if error.kind() == ErrorKind::Io => StoreError::unreachable().with_source(Cause(error)),
            None => StoreError::protocol().with_source(Cause(error)),
        },
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => StoreError::protocol().with_source(Cause(error)),
        _ => StoreError::unreachable().with_source(Cause(error)),
    }
}

/// An error that a script caught and handed on as text: the server's code, and its words.
pub(super) fn from_text(text: &str) -> StoreError {
    let text = text.trim_start_matches('-');
    let code = text
        .split_whitespace()
        .next()
        .filter(|word| word.chars().all(|c| c.is_ascii_uppercase()));
    said(code.unwrap_or("ERR"), Said(text.to_owned()))
}

/// What a script is refused for want of a right has no code of its own.
fn said(code: &str, words: Said) -> StoreError {
    let lacks_right = code == "ERR" && words.0.contains("The user executing the script can't");
    StoreError::refused(if lacks_right { "NOPERM" } else { code }).with_source(words)
}

/// Whether a connection that gave this error is of no further use: it is broken, in doubt, or leads to the wrong server.
pub(super) fn spoils(error: &StoreError) -> bool {
    match error.kind() {
        StoreErrorKind::Unreachable | StoreErrorKind::TimedOut | StoreErrorKind::Protocol => true,
        StoreErrorKind::Refused { code } => matches!(
            code.as_str(),
            "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "NOAUTH" | "NOREPLICAS" | "READONLY" | "WRONGPASS"
        ),
        StoreErrorKind::Config => false,
    }
}

/// A failed handshake tells more than a broken link.
#[cfg(feature = "tls")]
fn tls_fault(error: &RedisError) -> Option<StoreError> {
    use std::sync::Arc;
    // The crate hands its causes out as the `Arc` that holds them.
    let held = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    let cause: &(dyn Error + Send + Sync) = &**held;
    let fault = match cause.downcast_ref::<std::io::Error>() {
        Some(io) => io.get_ref()?.downcast_ref::<rustls::Error>()?,
        None => cause.downcast_ref::<rustls::Error>()?,
    };
    Some(match fault {
        rustls::Error::InvalidCertificate(_) => StoreError::config(
            "its certificate is not trusted: use a certificate of a known authority for this host name, \
             or give the authority's own with `redis::Client::build_with_tls`",
        ),
        _ => StoreError::protocol(),
    })
}

#[cfg(not(feature = "tls"))]
fn tls_fault(_: &RedisError) -> Option<StoreError> {
    None
}

/// A cause that is told once: `RedisError` has the text of its own source.
#[derive(Debug)]
struct Cause(RedisError);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source().and_then(Error::source)
    }
}

/// The server's own words.
#[derive(Debug)]
struct Said(String);

impl From<RedisError> for Said {
    fn from(error: RedisError) -> Self {
        let text = error.to_string();
        let words = error
            .into_server_errors()
            .and_then(|all| all.first().map(|(_, said)| said.clone()))
            .map(|said| match said.details() {
                Some(details) => format!("{} {details}", said.code()),
                None => said.code().to_owned(),
            });
        Self(words.unwrap_or(text))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server said: {}", self.0)
    }
}

impl Error for Said {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> StoreError {
        from_redis(::redis::make_extension_error(
            code.to_owned(),
            Some("because".to_owned()),
        ))
    }

    #[test]
    fn codes_without_a_kind_are_told_apart() {
        for code in ["OOM", "NOREPLICAS", "MISCONF", "NOAUTH"] {
            let error = refused(code);
            assert_eq!(error.code(), Some(code));
            let source = error.source().unwrap();
            assert_eq!(source.to_string(), format!("the server said: {code} because"));
            assert!(source.source().is_none());
        }
    }

    #[test]
    fn a_right_that_a_script_lacks_is_told_as_one() {
        for words in [
            "can't run this command or subcommand",
            "can't access at least one of the keys",
        ] {
            let text = format!("ERR The user executing the script {words} script: 68284d4c, on @user_script:432.");
            assert_eq!(from_text(&text).code(), Some("NOPERM"));
            let (code, words) = text.split_once(' ').unwrap();
            let error = ::redis::make_extension_error(code.to_owned(), Some(words.to_owned()));
            assert_eq!(from_redis(error).code(), Some("NOPERM"));
        }
        assert_eq!(from_text("ERR the user has no key").code(), Some("ERR"));
    }

    #[test]
    fn only_doubtful_connections_are_dropped() {
        for code in ["NOREPLICAS", "NOAUTH", "READONLY", "LOADING"] {
            assert!(spoils(&refused(code)), "{code}");
        }
        for code in ["OOM", "MISCONF", "ERR", "NOPERM", "WRONGTYPE"] {
            assert!(!spoils(&refused(code)), "{code}");
        }
        assert!(spoils(&StoreError::timed_out()));
    }

    #[test]
    fn a_cause_is_told_once() {
        let io = std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the link broke");
        let error = from_redis(io.into());
        assert_eq!(*error.kind(), StoreErrorKind::Unreachable);
        let source = error.source().unwrap();
        assert_eq!(source.to_string(), "the link broke");
        assert!(source.source().is_none());
    }
}
