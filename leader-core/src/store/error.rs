//! Why an operation of the store failed, and what to do about it.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A failed operation of the store.
///
/// The text says what happened and, where there is something to do, what to do next; the cause is in
/// [`source`](Error::source) only. No failure is final for a running instance: it keeps trying whatever the kind.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    at: Option<Arc<str>>,
    /// Advice that only the place of the failure knows.
    advice: Option<Cow<'static, str>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What kind of failure it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No connection, or it broke. A command that was under way may have run.
    Unreachable,
    /// No answer within the bound. The command may have run, or may still run.
    TimedOut,
    /// The server answered no.
    #[non_exhaustive]
    Refused {
        /// The server's own word for it: `READONLY`, `OOM`, `NOAUTH`, …
        code: String,
    },
    /// An answer that makes no sense.
    Protocol,
    /// Settings that cannot work.
    Config,
}

impl StoreError {
    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }

    /// The server's own word for a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match &self.kind {
            StoreErrorKind::Refused { code } => Some(code),
            _ => None,
        }
    }

    /// Whether the failure may pass without anybody changing a setting: a broken link, a restart, a failover.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match &self.kind {
            StoreErrorKind::Unreachable | StoreErrorKind::TimedOut => true,
            StoreErrorKind::Refused { code } => matches!(
                code.as_str(),
                "BUSY" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "NOREPLICAS" | "READONLY" | "TRYAGAIN"
            ),
            StoreErrorKind::Protocol | StoreErrorKind::Config => false,
        }
    }

    /// Whether it is about what was asked, and no sign that the store is out of order: another question may be answered.
    pub(crate) fn is_of_the_question(&self) -> bool {
        // What is refused for want of a disk, memory or password is refused to everybody, signs of life included.
        let everybodys = |code: &str| matches!(code, "MISCONF" | "NOAUTH" | "OOM" | "WRONGPASS");
        !self.is_transient() && self.code().is_some_and(|code| !everybodys(code))
    }

    fn of(kind: StoreErrorKind) -> Self {
        Self {
            kind,
            at: None,
            advice: None,
            source: None,
        }
    }

    pub(crate) fn unreachable() -> Self {
        Self::of(StoreErrorKind::Unreachable)
    }

    pub(crate) fn timed_out() -> Self {
        Self::of(StoreErrorKind::TimedOut)
    }

    pub(crate) fn refused(code: impl Into<String>) -> Self {
        Self::of(StoreErrorKind::Refused { code: code.into() })
    }

    pub(crate) fn protocol() -> Self {
        Self::of(StoreErrorKind::Protocol)
    }

    pub(crate) fn config(advice: impl Into<Cow<'static, str>>) -> Self {
        Self::of(StoreErrorKind::Config).with_advice(advice)
    }

    pub(crate) fn with_advice(self, advice: impl Into<Cow<'static, str>>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..self
        }
    }

    /// Names the server that is meant: host and port, never a password.
    pub(crate) fn with_address(self, at: &Arc<str>) -> Self {
        Self {
            at: Some(Arc::clone(at)),
            ..self
        }
    }

    pub(crate) fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..self
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store")?;
        if let Some(at) = &self.at {
            write!(f, " at {at}")?;
        }
        let known = match &self.kind {
            StoreErrorKind::Unreachable => {
                f.write_str(" is unreachable")?;
                Some("check that it runs and that this host may connect to it")
            }
            StoreErrorKind::TimedOut => {
                f.write_str(" did not answer in time")?;
                Some("whether the command ran is not known")
            }
            StoreErrorKind::Refused { code } => {
                write!(f, " refused ({code})")?;
                advice_on(code)
            }
            StoreErrorKind::Protocol => {
                f.write_str(" gave an answer that makes no sense")?;
                Some("check that host and port are those of a Redis, and `rediss://` for TLS")
            }
            StoreErrorKind::Config => {
                f.write_str(" cannot be used as configured")?;
                None
            }
        };
        match self.advice.as_deref().or(known) {
            Some(advice) => write!(f, ": {advice}"),
            None => Ok(()),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// What to do about a refusal.
fn advice_on(code: &str) -> Option<&'static str> {
    Some(match code {
        "NOAUTH" => "it wants a password: put it into the store's URL, `redis://user:password@host`",
        "WRONGPASS" => "user or password is wrong: compare the store's URL with the server's `requirepass` or ACL",
        "NOPERM" => "the user lacks a permission: grant it in the server's ACL",
        "DENIED" => "it is in protected mode: set a password on the server",
        "READONLY" => "connected to a replica: give the primary's address, or wait for the failover to end",
        "MASTERDOWN" => "connected to a replica that has lost its primary: bring the primary back",
        "NOREPLICAS" => "too few replicas follow the primary (`min-replicas-to-write`): bring one back",
        "LOADING" => "it is loading its data and answers when that is done",
        "OOM" => "it has reached `maxmemory`: free memory or raise the limit, and keep `maxmemory-policy noeviction`",
        "MISCONF" => "it cannot save to its disk: see the server's log",
        "BUSY" => "a long script blocks it: end that with `SCRIPT KILL`",
        "CLUSTERDOWN" => "its cluster is not complete: see `CLUSTER INFO`",
        "MOVED" | "ASK" | "CROSSSLOT" => {
            "it is a node of a Redis Cluster: give the address of a server that stands alone"
        }
        "WRONGTYPE" => "another program uses the same keys: choose another namespace",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_to_do_next() {
        let at = Arc::from("127.0.0.1:6379");
        for (code, word) in [
            ("NOAUTH", "password"),
            ("READONLY", "connected to a replica"),
            ("OOM", "maxmemory"),
            ("NOPERM", "ACL"),
        ] {
            let text = StoreError::refused(code).with_address(&at).to_string();
            assert!(text.contains(word), "{text}");
            assert!(
                text.starts_with(&format!("the store at {at} refused ({code}): ")),
                "{text}"
            );
        }
        assert_eq!(StoreError::refused("ERR").to_string(), "the store refused (ERR)");
    }

    #[test]
    fn the_cause_is_in_the_source_only() {
        let error = StoreError::unreachable().with_source(std::io::Error::other("connection refused"));
        assert!(!error.to_string().contains("refused"), "{error}");
        assert_eq!(error.source().unwrap().to_string(), "connection refused");
    }

    #[test]
    fn what_passes_by_itself_is_transient() {
        assert!(StoreError::timed_out().is_transient());
        assert!(StoreError::refused("LOADING").is_transient());
        assert!(!StoreError::refused("NOAUTH").is_transient());
        assert!(!StoreError::config("x").is_transient());
    }

    /// Whoever is refused for what it has asked alone may go on with other questions; signs of life are stopped by the rest.
    #[test]
    fn what_is_refused_to_everybody_is_not_of_the_question() {
        for (error, expected) in [
            (StoreError::refused("WRONGTYPE"), true),
            (StoreError::refused("NOPERM"), true),
            (StoreError::refused("ERR"), true),
            (StoreError::refused("OOM"), false),
            (StoreError::refused("MISCONF"), false),
            (StoreError::refused("NOAUTH"), false),
            (StoreError::refused("WRONGPASS"), false),
            (StoreError::refused("LOADING"), false),
            (StoreError::refused("READONLY"), false),
            (StoreError::timed_out(), false),
            (StoreError::protocol(), false),
            (StoreError::config("x"), false),
        ] {
            assert_eq!(error.is_of_the_question(), expected, "{error}");
        }
    }

    #[test]
    fn each_code_has_advice_of_its_own() {
        let codes = [
            "NOAUTH",
            "WRONGPASS",
            "NOPERM",
            "DENIED",
            "READONLY",
            "MASTERDOWN",
            "NOREPLICAS",
            "LOADING",
            "OOM",
            "MISCONF",
            "BUSY",
            "CLUSTERDOWN",
            "MOVED",
            "WRONGTYPE",
        ];
        let advice: std::collections::BTreeSet<_> = codes.iter().map(|code| advice_on(code).unwrap()).collect();
        assert_eq!(advice.len(), codes.len());
        for code in ["ASK", "CROSSSLOT"] {
            assert_eq!(advice_on(code), advice_on("MOVED"));
        }
        assert_eq!(advice_on("ERR"), None);
        let error = StoreError::config("set a URL");
        assert!(error.to_string().contains("set a URL"), "{error}");
    }
}
