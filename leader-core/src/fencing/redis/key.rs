//! A key of Redis and its guard.

use std::borrow::Cow;
use std::time::Duration;

use super::FencedScript;

/// The comparison, after a function `write` for what is to be done. Both stand on one line, so that the lines of an error in a script are
/// those of the script.
macro_rules! guarded {
    ($file:literal) => {
        concat!(
            "local FENCE = ARGV[1] local function write(KEYS, ARGV) ",
            include_str!($file),
            "\nend\n",
            include_str!("guard.lua")
        )
    };
}

const SET: &str = guarded!("set.lua");
const HSET: &str = guarded!("hset.lua");
const DEL: &str = guarded!("del.lua");
const RAISE: &str = concat!("local function write() end\n", include_str!("guard.lua"));

/// A key that is written only under a fence which is not lower than the last one. Cheap to make; makes [scripts](FencedScript).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedKey {
    key: String,
    guard: String,
    keep: Option<Duration>,
}

/// Why a key cannot be guarded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No other key can be made to share its slot.
    #[error(
        "`{key}` has a `}}` but no hash tag, so that no guard can be named that is sure to share its slot of a Cluster: put a part of \
         the key into braces, as in `{{report}}:7`"
    )]
    NoCompanion {
        /// The key.
        key: String,
    },
    /// The guard that was named need not be in the slot of the key.
    #[error(
        "the guard `{guard}` and the key `{key}` need not share a slot of a Cluster (`{guard_tag}` is not `{tag}`): give both the same \
         hash tag, as in `{{report}}:7` and `{{report}}:guard`"
    )]
    OtherSlot {
        /// The key.
        key: String,
        /// The part of it that decides.
        tag: String,
        /// The guard.
        guard: String,
        /// The part of it that decides.
        guard_tag: String,
    },
    /// The guard is the key itself.
    #[error("`{key}` cannot be its own guard: give the guard another name")]
    OwnGuard {
        /// The key.
        key: String,
    },
}

/// The part of a key that decides about its slot: what stands in the first braces, or all of it.
fn tag(key: &str) -> &str {
    let tagged = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    match tagged {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

impl FencedKey {
    /// A key with a guard of its own, in the same slot of a Cluster.
    ///
    /// # Errors
    /// [`KeyError::NoCompanion`] for a key with a `}` and no hash tag.
    pub fn new(key: impl Into<String>) -> Result<Self, KeyError> {
        let key = key.into();
        // Two forms that never meet: `a` and `{a}` are different keys.
        let guard = if tag(&key) != key {
            format!("leader-guard-of:{key}")
        } else if key.contains('}') || key.is_empty() {
            return Err(KeyError::NoCompanion { key });
        } else {
            format!("leader-guard:{{{key}}}")
        };
        Ok(Self { key, guard, keep: None })
    }

    /// A key with a guard of this name, for several keys that are written as a whole: the fence of one write counts for all.
    ///
    /// # Errors
    /// [`KeyError::OtherSlot`] when the two have not the same hash tag.
    pub fn guarded_by(key: impl Into<String>, guard: impl Into<String>) -> Result<Self, KeyError> {
        let (key, guard) = (key.into(), guard.into());
        if key == guard {
            return Err(KeyError::OwnGuard { key });
        }
        if tag(&key) != tag(&guard) {
            let (tag, guard_tag) = (tag(&key).to_owned(), tag(&guard).to_owned());
            return Err(KeyError::OtherSlot {
                key,
                tag,
                guard,
                guard_tag,
            });
        }
        Ok(Self { key, guard, keep: None })
    }

    /// Lets the guard end this long after its last write, at least 1 ms; without a guard no fence is taken that is older. See
    /// [how long a guard lives](mod@crate::fencing::redis#how-long-a-guard-lives). The same for all writers of a key.
    #[must_use]
    pub fn keep_guard(mut self, span: Duration) -> Self {
        self.keep = Some(span);
        self
    }

    /// The key of the data.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key of the guard.
    #[must_use]
    pub fn guard(&self) -> &str {
        &self.guard
    }

    /// `SET`: gives `OK`. As in Redis, the value has no TTL afterwards.
    #[must_use]
    pub fn set(&self, fence: u64, value: impl Into<Vec<u8>>) -> FencedScript {
        self.script(SET.into(), fence, None, [value.into()])
    }

    /// `SET` with a TTL, in whole milliseconds and at least one: gives `OK`.
    #[must_use]
    pub fn set_for(&self, fence: u64, value: impl Into<Vec<u8>>, ttl: Duration) -> FencedScript {
        let span = millis(ttl).to_string().into_bytes();
        let args = [value.into(), b"PX".to_vec(), span];
        self.script(SET.into(), fence, Some(ttl), args)
    }

    /// `HSET`: gives the number of fields that are new. Without any field it raises the guard and no more.
    #[must_use]
    pub fn hset<F, V>(&self, fence: u64, fields: impl IntoIterator<Item = (F, V)>) -> FencedScript
    where
        F: Into<Vec<u8>>,
        V: Into<Vec<u8>>,
    {
        let words = fields
            .into_iter()
            .flat_map(|(field, value)| [field.into(), value.into()]);
        self.script(HSET.into(), fence, None, words)
    }

    /// `DEL`: gives the number of keys that were there. The guard stays.
    #[must_use]
    pub fn del(&self, fence: u64) -> FencedScript {
        self.script(DEL.into(), fence, None, [])
    }

    /// Raises the guard and writes nothing: before a run reads what it will write anew, so that no older run changes it in between.
    #[must_use]
    pub fn raise(&self, fence: u64) -> FencedScript {
        self.script(RAISE.into(), fence, None, [])
    }

    /// A script of your own, which runs only if the fence is not lower. It finds the data's key in `KEYS[1]`, further keys
    /// ([`FencedScript::key`]) after it, the arguments ([`FencedScript::arg`]) in `ARGV`, and the fence as text in `FENCE`. It may return
    /// text, a number or a flat list of them; what it returns in
    /// [`redis.error_reply`](https://redis.io/docs/latest/develop/programmability/lua-api/) is an error of the command.
    ///
    /// It is a part of a larger script: no `#!` line, and values belong into the arguments, not into its text.
    #[must_use]
    pub fn eval(&self, fence: u64, lua: &str) -> FencedScript {
        let guard = include_str!("guard.lua");
        let source = format!("local FENCE = ARGV[1] local function write(KEYS, ARGV) {lua}\nend\n{guard}");
        self.script(source.into(), fence, None, [])
    }

    fn script(
        &self,
        source: Cow<'static, str>,
        fence: u64,
        ttl: Option<Duration>,
        args: impl IntoIterator<Item = Vec<u8>>,
    ) -> FencedScript {
        let keep = self.keep.map(millis);
        let text = |span: Option<u64>| span.map(|span| span.to_string()).unwrap_or_default();
        // Never shorter than the data.
        let life = keep.map(|keep| keep.max(ttl.map_or(0, millis)));
        let head = [fence.to_string(), text(keep), text(life)].map(String::into_bytes);
        FencedScript {
            source,
            keys: vec![self.guard.clone(), self.key.clone()],
            args: head.into_iter().chain(args).collect(),
            fence,
        }
    }
}

/// Whole milliseconds, at least one; at most what a Lua number can add a date to.
fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_shares_the_tag_of_its_key() {
        for (key, guard) in [
            ("prices", "leader-guard:{prices}"),
            ("shop:prices:7", "leader-guard:{shop:prices:7}"),
            ("{shop}:prices", "leader-guard-of:{shop}:prices"),
            ("a{b}c{d}", "leader-guard-of:a{b}c{d}"),
            ("{prices}", "leader-guard-of:{prices}"),
            // The tag begins at the first brace, whatever follows.
            ("{{b}}", "leader-guard-of:{{b}}"),
            ("open{ended", "leader-guard:{open{ended}"),
        ] {
            let fenced = FencedKey::new(key).unwrap();
            assert_eq!(fenced.guard(), guard);
            assert_eq!(tag(fenced.guard()), tag(key), "{key}");
        }
    }

    #[test]
    fn a_key_without_a_companion_is_refused() {
        for key in ["", "}", "a}b", "{}", "{}a", "a}{b"] {
            assert!(
                matches!(FencedKey::new(key), Err(KeyError::NoCompanion { .. })),
                "{key}"
            );
        }
        let text = FencedKey::new("a}b").unwrap_err().to_string();
        assert!(text.ends_with("as in `{report}:7`"), "{text}");
    }

    #[test]
    fn a_shared_guard_must_share_the_tag() {
        let shared = FencedKey::guarded_by("{report}:7", "{report}:guard").unwrap();
        assert_eq!((shared.key(), shared.guard()), ("{report}:7", "{report}:guard"));
        let text = FencedKey::guarded_by("report:7", "report:guard")
            .unwrap_err()
            .to_string();
        assert!(text.contains("`report:guard` is not `report:7`"), "{text}");
        assert!(matches!(
            FencedKey::guarded_by("{a}", "{a}"),
            Err(KeyError::OwnGuard { .. })
        ));
    }

    #[test]
    fn the_guard_outlives_the_data() {
        let args = |script: FencedScript| {
            let text = script.args.into_iter().map(|word| String::from_utf8(word).unwrap());
            text.collect::<Vec<_>>()
        };
        let key = FencedKey::new("prices").unwrap();
        assert_eq!(args(key.set(5, "x")), ["5", "", "", "x"]);
        let key = key.keep_guard(Duration::from_secs(60));
        assert_eq!(args(key.del(5)), ["5", "60000", "60000"]);
        let day = Duration::from_secs(86_400);
        let expected = ["5", "60000", "86400000", "x", "PX", "86400000"];
        assert_eq!(args(key.set_for(5, "x", day)), expected);
        assert_eq!(args(key.set_for(5, "x", Duration::ZERO))[5], "1");
        assert_eq!(args(key.keep_guard(Duration::MAX).del(5))[1], (1_u64 << 52).to_string());
    }
}
