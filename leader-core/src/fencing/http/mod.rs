//! Fenced requests over HTTP: two headers, and a layer for the server that refuses what is older than it has seen.
//!
//! # The client
//!
//! ```
//! use leader_core::Tick;
//! use leader_core::fencing::http::RequestFence;
//!
//! fn headers(tick: &Tick) -> [(&'static str, String); 2] {
//!     // As in `request.header(name, value)` of any client, for each of them.
//!     RequestFence::from(tick).headers()
//! }
//! # let tick = Tick::for_test("2026-03-02T03:00:00Z".parse().unwrap());
//! # assert_eq!(headers(&tick), [("leader-group", "default".to_owned()), ("leader-fence", "1".to_owned())]);
//! ```
//!
//! Fences are compared within one group only, so a request names the group whose fence it carries. A service that hears from two fleets
//! with groups of one name needs two names: `RequestFence::new(GroupName::new("shop/cleanup")?, tick.fence())`.
//!
//! # The server
//!
//! The feature `tower` has `FenceLayer`, for axum and for whatever else takes layers of tower. It keeps the highest fence of each group
//! and resource (the path, or what you say), and answers for the service where a request carries a lower one:
//!
//! | answer | when |
//! |---|---|
//! | 412 Precondition Failed | the fence is lower than one that was seen |
//! | 428 Precondition Required | there is none, and the layer was told to ask for it |
//! | 400 Bad Request | the headers cannot be read, or one is without the other |
//! | 503 Service Unavailable | where the fences are kept cannot be asked now |
//!
//! Why 412 and not 409: the request carries a condition, and the condition does not hold; and some clients try a 409 again by
//! themselves, which is of no use here. The body is JSON, and says what was compared:
//! `{"error":"fenced","message":"…","group":"cleanup","resource":"/reports/7","fence":5,"held":9}`.
//!
//! A request that was let in has its [`RequestFence`] among its extensions.
//!
//! ```
//! # #[cfg(feature = "tower")] {
//! use leader_core::fencing::http::{FenceLayer, MemoryFences};
//!
//! // Around the routes that leaders write to: `Router::new().route("/reports/{id}", put(save)).layer(layer)`.
//! let layer = FenceLayer::new(MemoryFences::with_capacity(100_000)).require();
//! // The query names what is written here, not the path.
//! let by_query = FenceLayer::new(MemoryFences::with_capacity(1_000))
//!     .key(|request| request.uri.query().unwrap_or_default().to_owned());
//! # let _ = (layer, by_query);
//! # }
//! ```
//!
//! # Checked at arrival, not at commit
//!
//! The layer compares when a request comes in. What the handler does after that may take its time: a request with fence 5 is let in, one with
//! fence 9 is let in and done, and then the first one's handler writes, old over new. Nor does it know what a handler has read. So a
//! handler that writes to a database puts the fence into its statement ([`fencing::sql`](super::sql)): the request's extensions
//! have it. The layer alone is enough where handlers are short and a late one does no harm, and it keeps work away that is in vain. A
//! request that was let in has raised the fence, whatever becomes of it.
//!
//! # More than one server
//!
//! **`MemoryFences` knows what this process has seen, and nothing else.** A second instance of the server has a memory of its own and
//! lets an old run in that the first would refuse; and a restarted one has forgotten everything. With several, or with restarts that may
//! fall between two runs, keep the fences where all of them look, by the trait `Fences`:
//!
//! ```
//! # #[cfg(feature = "tower")] {
//! use leader_core::GroupName;
//! use leader_core::fencing::http::{FenceLayer, Fences, RaiseError};
//! use leader_core::fencing::sql;
//! # #[derive(Debug)]
//! # struct Pool;
//! # impl Pool {
//! #     async fn execute(&self, _: &str, _: &[&(dyn std::fmt::Debug + Sync)]) -> Result<u64, std::io::Error> { Ok(1) }
//! # }
//!
//! struct InDatabase(Pool);
//!
//! impl Fences for InDatabase {
//!     async fn raise(&self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
//!         // A group's name has no spaces.
//!         let name = format!("{group} {resource}");
//!         let rows = self.0.execute(sql::RAISE, &[&name, &sql::bigint(fence)?]).await;
//!         Ok(sql::raised(rows.map_err(RaiseError::unavailable)?, &name, fence)?)
//!     }
//! }
//!
//! let layer = FenceLayer::new(InDatabase(Pool)).require();
//! # let _ = layer;
//! # }
//! ```
//!
//! # Whom to believe
//!
//! The headers are as good as who sends them: one request with a number from the far future closes a resource to everybody after it. Put
//! the layer behind whatever tells your own services from others.

#[cfg(feature = "tower")]
mod layer;
#[cfg(feature = "tower")]
mod memory;

use crate::job::gate::Lead;
use crate::job::tick::Tick;
use crate::names::{GroupName, NameError};

#[cfg(feature = "tower")]
pub use layer::{FenceLayer, FenceService, Fences, RaiseError};
#[cfg(feature = "tower")]
pub use memory::MemoryFences;

/// The header with a run's fence, in decimal digits. It goes with [`GROUP_HEADER`].
pub const FENCE_HEADER: &str = "leader-fence";

/// The header with the group whose fence it is.
pub const GROUP_HEADER: &str = "leader-group";

/// The fence that a request carries, and the group that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFence {
    group: GroupName,
    fence: u64,
}

/// Why the headers of a request are not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The fence is no number, or none that a fence can be.
    #[error(
        "`leader-fence: {value}` is no fence: send the number of `tick.fence()` in decimal digits, from 1 to {}",
        i64::MAX
    )]
    Fence {
        /// What was sent.
        value: String,
    },
    /// The group's name is none.
    #[error("`leader-group`: {0}")]
    Group(#[from] NameError),
    /// Nobody knows whose fence it is.
    #[error(
        "`leader-fence: {fence}` is without `leader-group`: fences are compared within one group, so send its name along"
    )]
    NoGroup {
        /// The fence that was sent.
        fence: u64,
    },
    /// A group without a fence.
    #[error("`leader-group: {group}` is without `leader-fence`: send the number of `tick.fence()` along")]
    NoFence {
        /// The group that was sent.
        group: GroupName,
    },
    /// A header is there more than once.
    #[error("`{header}` is there more than once: send each header once")]
    Repeated {
        /// Its name.
        header: &'static str,
    },
}

impl RequestFence {
    /// The fence of a group's run.
    #[must_use]
    pub fn new(group: GroupName, fence: u64) -> Self {
        Self { group, fence }
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.group
    }

    /// The fence.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Names and values of the two headers.
    #[must_use]
    pub fn headers(&self) -> [(&'static str, String); 2] {
        [
            (GROUP_HEADER, self.group.to_string()),
            (FENCE_HEADER, self.fence.to_string()),
        ]
    }

    /// Reads the values of the two headers, as far as they are there.
    ///
    /// # Errors
    /// [`HeaderError`] when one is without the other, or cannot be read. Neither is no error, but `None`.
    pub fn parse(group: Option<&str>, fence: Option<&str>) -> Result<Option<Self>, HeaderError> {
        let group = group.map(|name| GroupName::new(name.trim().to_owned())).transpose()?;
        let fence = fence.map(|text| parse_fence(text.trim())).transpose()?;
        match (group, fence) {
            (None, None) => Ok(None),
            (Some(group), Some(fence)) => Ok(Some(Self { group, fence })),
            (None, Some(fence)) => Err(HeaderError::NoGroup { fence }),
            (Some(group), None) => Err(HeaderError::NoFence { group }),
        }
    }

    /// Reads the two headers of a request.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), and when one is there more than once.
    #[cfg(feature = "tower")]
    pub fn from_headers(headers: &::http::HeaderMap) -> Result<Option<Self>, HeaderError> {
        let value = |header| {
            let mut values = headers.get_all(header).iter();
            let first = values.next().map(|value| String::from_utf8_lossy(value.as_bytes()));
            match values.next() {
                None => Ok(first),
                Some(_) => Err(HeaderError::Repeated { header }),
            }
        };
        Self::parse(value(GROUP_HEADER)?.as_deref(), value(FENCE_HEADER)?.as_deref())
    }
}

impl From<&Tick> for RequestFence {
    fn from(tick: &Tick) -> Self {
        Self::new(tick.group().clone(), tick.fence())
    }
}

impl From<&Lead> for RequestFence {
    fn from(lead: &Lead) -> Self {
        Self::new(lead.group().clone(), lead.fence())
    }
}

fn parse_fence(text: &str) -> Result<u64, HeaderError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fence = digits.then(|| text.parse::<i64>().ok()).flatten();
    match fence.and_then(|fence| u64::try_from(fence).ok()) {
        Some(fence) if fence > 0 => Ok(fence),
        _ => Err(HeaderError::Fence {
            value: text.chars().take(100).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read() {
        let sent = RequestFence::new(GroupName::new("shop/cleanup").unwrap(), 1_790_000_000_000_000);
        let [(_, group), (_, fence)] = sent.headers();
        assert_eq!(RequestFence::parse(Some(&group), Some(&fence)), Ok(Some(sent)));
        assert_eq!(RequestFence::parse(None, None), Ok(None));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        for bad in ["", "0", "-1", "+5", "5.0", "0x5", "9223372036854775808", "five"] {
            let error = RequestFence::parse(Some("cleanup"), Some(bad)).unwrap_err();
            assert_eq!(error, HeaderError::Fence { value: bad.to_owned() });
        }
        let text = |group, fence| RequestFence::parse(group, fence).unwrap_err().to_string();
        assert!(text(None, Some("5")).starts_with("`leader-fence: 5` is without `leader-group`"));
        assert!(text(Some("cleanup"), None).starts_with("`leader-group: cleanup` is without `leader-fence`"));
        assert!(text(Some("clean up"), Some("5")).contains("it contains ' '"));
        assert!(text(None, Some("five")).contains("send the number of `tick.fence()`"));
    }

    #[cfg(feature = "tower")]
    #[test]
    fn a_header_comes_once() {
        let mut headers = ::http::HeaderMap::new();
        headers.insert(GROUP_HEADER, "cleanup".parse().unwrap());
        headers.append(FENCE_HEADER, "5".parse().unwrap());
        let read = RequestFence::from_headers(&headers).unwrap().unwrap();
        assert_eq!((read.group().as_str(), read.fence()), ("cleanup", 5));
        headers.append(FENCE_HEADER, "9".parse().unwrap());
        let error = RequestFence::from_headers(&headers).unwrap_err();
        assert_eq!(error, HeaderError::Repeated { header: FENCE_HEADER });
    }
}
