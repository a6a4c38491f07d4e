//! Validated names: of namespaces, groups, jobs, services and instances.

use std::borrow::Cow;
use std::fmt;

/// The longest name, in bytes.
pub const MAX_NAME: usize = 100;

/// The group that an annotated function belongs to when it names none.
pub const DEFAULT_GROUP: &str = "default";

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} name `{name}` is refused: {reason}; use 1 to {MAX_NAME} of the characters `A-Z a-z 0-9 _ . : / -`")]
#[non_exhaustive]
pub struct NameError {
    /// What the name was meant for: `group`, `job`, `namespace`, …
    pub kind: &'static str,
    /// The refused text, cut to a readable length.
    pub name: String,
    reason: String,
}

/// Checks a name at compile time: the macros put it into a `const`.
///
/// # Panics
/// When the name is not 1 to [`MAX_NAME`] of `[A-Za-z0-9_.:/-]`. In a `const` that is a compile error on the literal.
#[must_use]
pub const fn checked(name: &'static str) -> &'static str {
    assert!(!name.is_empty(), "a name may not be empty");
    assert!(name.len() <= MAX_NAME, "a name has at most 100 characters");
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        assert!(
            allowed(bytes[at]),
            "a name has only the characters `A-Z a-z 0-9 _ . : / -`"
        );
        at += 1;
    }
    name
}

/// Checks an earlier name of a job.
///
/// # Panics
/// When it is not legal, or is the job's own.
#[track_caller]
pub const fn checked_earlier(old: &'static str, name: &'static str) -> &'static str {
    let old = checked(old);
    let (left, right) = (old.as_bytes(), name.as_bytes());
    let mut same = left.len() == right.len();
    let mut at = 0;
    while same && at < left.len() {
        same = left[at] == right[at];
        at += 1;
    }
    assert!(
        !same,
        "`was` is the name that the job has: write the one that it had before, or take `was` out"
    );
    old
}

/// Checks the name of a queue at compile time.
///
/// # Panics
/// When it is not 1 to [`MAX_QUEUE`] of `[A-Za-z0-9_.:/-]`.
#[must_use]
#[track_caller]
pub const fn checked_queue(name: &'static str) -> &'static str {
    assert!(name.len() <= MAX_QUEUE, "a queue's name has at most 80 characters");
    checked(name)
}

const fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'/' | b'-')
}

fn check(kind: &'static str, name: &str) -> Result<(), NameError> {
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > MAX_NAME {
        format!("it has {} bytes", name.len())
    } else if let Some(odd) = name.chars().find(|c| !u8::try_from(*c).is_ok_and(allowed)) {
        format!("it contains {odd:?}")
    } else {
        return Ok(());
    };
    let name = name.chars().take(MAX_NAME).collect();
    Err(NameError { kind, name, reason })
}

macro_rules! name {
    ($(#[$doc:meta])* $Name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(Cow<'static, str>);

        impl $Name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// [`NameError`] when it is not 1 to [`MAX_NAME`] of `[A-Za-z0-9_.:/-]`.
            pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, NameError> {
                let name = name.into();
                check($kind, &name)?;
                Ok(Self(name))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            #[allow(dead_code, reason = "not every kind of name is handed out as text")]
            pub(crate) fn to_text(&self) -> Cow<'static, str> {
                self.0.clone()
            }
        }

        impl AsRef<str> for $Name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name!(
    /// The name of an election group.
    GroupName,
    "group"
);
name!(
    /// The stable name of a job; its state in the store hangs on it.
    JobName,
    "job"
);
name!(
    /// The program that an instance runs. All instances of a namespace run one service.
    ServiceName,
    "service"
);
name!(
    /// The id of an instance: a label for people. What names a leader is the [holder](crate::Holder).
    InstanceId,
    "instance"
);

name!(
    /// The stable name of a task's handler; what waits in the store hangs on it.
    TaskName,
    "task"
);

/// The queue of tasks that name none.
pub const DEFAULT_QUEUE: &str = "default";

/// The longest name of a queue, in bytes: those of the elections of its parts are made of it.
pub const MAX_QUEUE: usize = 80;

/// The name of a queue of tasks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Cow<'static, str>);

impl QueueName {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// [`NameError`] when it is not 1 to [`MAX_QUEUE`] of `[A-Za-z0-9_.:/-]`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, NameError> {
        let name = name.into();
        check("queue", &name)?;
        if name.len() > MAX_QUEUE {
            let reason = format!("it has {} bytes, and a queue's has at most {MAX_QUEUE}", name.len());
            let kind = "queue";
            let name = name.into_owned();
            return Err(NameError { kind, name, reason });
        }
        Ok(Self(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// What separates fleets that share one store. Empty is legal and gives plain `leader:<group>` keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Cow<'static, str>);

impl Namespace {
    /// Checks and takes a namespace.
    ///
    /// # Errors
    /// [`NameError`] when it is neither empty nor 1 to [`MAX_NAME`] of `[A-Za-z0-9_.:/-]`, or when one of its parts between colons is
    /// `leader`.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Result<Self, NameError> {
        let name = name.into();
        if !name.is_empty() {
            check("namespace", &name)?;
        }
        // A key is read as `<namespace>:leader:<group>` in one way only: at its first part of that name.
        if name.split(':').any(|part| part == "leader") {
            let reason = "it has the part `leader`, by which keys tell a namespace from a group".to_owned();
            let kind = "namespace";
            let name = name.into_owned();
            return Err(NameError { kind, name, reason });
        }
        Ok(Self(name))
    }

    /// The namespace as text; empty for the plain one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every key of the namespace begins with: nothing, or the name and a colon.
    #[must_use]
    pub fn prefix(&self) -> String {
        if self.0.is_empty() {
            String::new()
        } else {
            format!("{}:", self.0)
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Who a lease names: an instance's id and the random nonce of its process, as `id#nonce`.
///
/// The nonce makes two processes with one given id two holders; holder and term together identify one leadership.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(std::sync::Arc<str>);

impl Holder {
    /// The holder of one process.
    #[must_use]
    pub fn new(instance: &InstanceId, nonce: u64) -> Self {
        Self(format!("{instance}#{nonce:016x}").into())
    }

    /// A holder as the store spells it, ours or foreign.
    #[must_use]
    pub fn from_store(text: &str) -> Self {
        Self(text.into())
    }

    /// The whole text, as the lease key holds it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The instance's id: the part before `#`.
    #[must_use]
    pub fn instance(&self) -> &str {
        self.0.rsplit_once('#').map_or(&*self.0, |(id, _)| id)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_early_with_the_reason() {
        for bad in ["", "a b", "a{b}", "ü", "a\n", &"x".repeat(101)] {
            let error = GroupName::new(bad.to_owned()).unwrap_err();
            assert!(error.to_string().contains("refused"), "{error}");
        }
        for good in ["a", "mail/urgent", "A-z_0.9:x", &"x".repeat(100)] {
            assert_eq!(GroupName::new(good.to_owned()).unwrap().as_str(), good);
        }
    }

    /// `x:leader` with the group `y` and `x` with the group `leader:y` would be one key.
    #[test]
    fn no_two_fleets_share_a_key() {
        for bad in ["leader", "x:leader", "leader:x", "x:leader:y"] {
            let error = Namespace::new(bad).unwrap_err();
            assert!(error.to_string().contains("`leader`"), "{error}");
        }
        for good in ["leaders", "x:leader-y", "x/leader"] {
            assert!(Namespace::new(good).is_ok());
        }
    }

    #[test]
    fn a_queue_leaves_room_for_the_elections_of_its_parts() {
        let longest = "q".repeat(MAX_QUEUE);
        let group = format!("dispatch:{longest}:{}", u32::MAX);
        assert!(QueueName::new(longest.clone()).is_ok() && GroupName::new(group).is_ok());
        let error = QueueName::new(longest + "q").unwrap_err().to_string();
        assert!(
            error.contains("it has 81 bytes, and a queue's has at most 80"),
            "{error}"
        );
        assert_eq!(checked_queue("mail/urgent"), "mail/urgent");
        assert!(std::panic::catch_unwind(|| checked_queue("")).is_err());
    }

    #[test]
    fn an_empty_namespace_has_no_prefix() {
        assert_eq!(Namespace::default().prefix(), "");
        assert_eq!(Namespace::new("shop").unwrap().prefix(), "shop:");
    }

    #[test]
    fn a_holder_tells_its_instance() {
        let id = InstanceId::new("web-1").unwrap();
        assert_eq!(Holder::new(&id, 7).instance(), "web-1");
        assert_eq!(Holder::from_store("foreign").instance(), "foreign");
    }
}
