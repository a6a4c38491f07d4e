//! Whether an instance is alive, and whether it is ready.

use std::fmt;

use super::Instance;

/// Whether an instance is ready, and why not. **It says nothing of leadership**: an instance that waits as a standby is as ready as its
/// leader, and a deployment that waited for leaders would wait for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What was looked at, in a fixed order.
    pub checks: Vec<HealthCheck>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthCheck {
    /// Its name: `store`, `fleet`, `runtime` or `draining`.
    pub name: &'static str,
    /// Why it is not as it should be; `None` when it is.
    pub fault: Option<String>,
}

impl Health {
    /// Whether nothing is amiss.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| check.fault.is_none())
    }
}

/// A line for each check, `[+]store ok` or `[-]store: <why>`, and what follows from them, as Kubernetes' own servers put it.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for HealthCheck { name, fault } in &self.checks {
            match fault {
                None => writeln!(f, "[+]{name} ok")?,
                Some(fault) => writeln!(f, "[-]{name}: {fault}")?,
            }
        }
        f.write_str(if self.is_ready() { "ready" } else { "not ready" })
    }
}

impl Instance {
    /// Whether the instance is ready: the store answers, the fleet has let it in, its runtime runs, and it is not leaving. A local look,
    /// never a question to the store.
    #[must_use]
    pub fn health(&self) -> Health {
        let standing = self.shared.standing();
        let stopped = self.shared.has_stopped();
        let faults = [
            ("store", standing.store),
            (
                "fleet",
                (!standing.enrolled).then(|| "the instance has not joined its fleet yet".to_owned()),
            ),
            (
                "runtime",
                standing
                    .wedged
                    .then(|| "the runtime of the bodies has run nothing for one TTL".to_owned()),
            ),
            (
                "draining",
                (standing.leaving || stopped).then(|| "the instance leaves its fleet, or has left it".to_owned()),
            ),
        ];
        let checks = faults.into_iter().map(|(name, fault)| HealthCheck { name, fault });
        Health {
            checks: checks.collect(),
        }
    }

    /// Whether the framework's thread works, or has ended because the instance was shut down. An instance without it never leads again, and
    /// its process should be started anew. The store plays no part in it: an outage must not restart a fleet.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.shared.is_alive()
    }
}
