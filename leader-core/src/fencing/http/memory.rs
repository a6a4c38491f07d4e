//! The fences that one server has seen, in its memory.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Fences, RaiseError};
use crate::fencing::Fenced;
use crate::names::GroupName;

/// How many groups are known at once. Their names come from requests.
const MOST_GROUPS: usize = 1_024;

/// The highest fence of each resource, in the memory of this process: for a server that has one instance.
///
/// It has room for so many resources. When there is no more, the one with the lowest fence is forgotten, and from then on a resource of
/// that group that is not remembered takes no lower fence than the forgotten one: what is forgotten never lets an older run in. It may
/// refuse a run that did nothing wrong, though, one that has lasted for longer than the memory reaches.
#[derive(Debug)]
pub struct MemoryFences {
    capacity: usize,
    seen: Mutex<Seen>,
}

type Resource = Arc<(GroupName, String)>;

#[derive(Debug, Default)]
struct Seen {
    held: HashMap<Resource, u64>,
    /// The same by fence, the lowest first. Of different groups anyone may be forgotten: that one is the oldest, or nearly so.
    by_fence: BTreeSet<(u64, Resource)>,
    /// For each group the highest fence that was forgotten.
    forgotten: HashMap<GroupName, u64>,
}

impl MemoryFences {
    /// Room for so many resources, at least one. Each takes its name twice over at most, and some hundred bytes.
    #[must_use]
    pub fn with_capacity(resources: usize) -> Self {
        Self {
            capacity: resources.max(1),
            seen: Mutex::default(),
        }
    }

    fn take(&self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
        // Nothing below leaves a half-done state behind.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.take(group, resource, fence)?;
        while seen.held.len() > self.capacity {
            seen.forget_lowest();
        }
        Ok(())
    }
}

impl Seen {
    fn take(&mut self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
        let key = Arc::new((group.clone(), resource.to_owned()));
        let held = self.held.get(&key).copied();
        match held {
            Some(held) if fence < held => return Err(Fenced::by(resource, fence, Some(held)).into()),
            Some(held) => {
                self.by_fence.remove(&(held, Arc::clone(&key)));
            }
            None => self.is_new_enough(group, resource, fence)?,
        }
        self.held.insert(Arc::clone(&key), fence);
        self.by_fence.insert((fence, key));
        Ok(())
    }

    fn is_new_enough(&mut self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
        match self.forgotten.get(group).copied() {
            Some(lowest) if fence < lowest => Err(RaiseError::Forgotten {
                group: group.clone(),
                resource: resource.to_owned(),
                fence,
                lowest,
            }),
            Some(_) => Ok(()),
            None if self.forgotten.len() < MOST_GROUPS => {
                self.forgotten.insert(group.clone(), 0);
                Ok(())
            }
            None => Err(RaiseError::unavailable(format!(
                "fences of {MOST_GROUPS} groups are remembered, and `{group}` is one more: a server's memory is for few; see who sends \
                 so many, or keep fences in a database"
            ))),
        }
    }

    fn forget_lowest(&mut self) {
        let Some((fence, key)) = self.by_fence.pop_first() else {
            return;
        };
        self.held.remove(&key);
        let lowest = self.forgotten.entry(key.0.clone()).or_default();
        *lowest = fence.max(*lowest);
    }
}

impl Fences for MemoryFences {
    async fn raise(&self, group: &GroupName, resource: &str, fence: u64) -> Result<(), RaiseError> {
        self.take(group, resource, fence)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn group(name: &str) -> GroupName {
        GroupName::new(name.to_owned()).unwrap()
    }

    #[test]
    fn a_lower_fence_is_refused_for_its_own_resource_and_group_only() {
        let fences = MemoryFences::with_capacity(10);
        let take = |name, resource, fence| fences.take(&group(name), resource, fence);
        assert!(take("a", "/x", 5).is_ok() && take("a", "/x", 9).is_ok() && take("a", "/x", 9).is_ok());
        let error = take("a", "/x", 8).unwrap_err();
        assert!(matches!(error, RaiseError::Fenced(by) if by.held == Some(9)));
        assert!(take("a", "/y", 5).is_ok() && take("b", "/x", 5).is_ok());
    }

    #[test]
    fn what_is_forgotten_lets_nobody_older_in() {
        let fences = MemoryFences::with_capacity(2);
        let take = |resource, fence| fences.take(&group("a"), resource, fence);
        for (resource, fence) in [("/x", 5), ("/y", 7), ("/z", 9)] {
            take(resource, fence).unwrap();
        }
        // `/x` was forgotten at 5.
        let error = take("/x", 4).unwrap_err();
        assert!(matches!(&error, RaiseError::Forgotten { lowest: 5, .. }), "{error}");
        assert!(error.to_string().contains("room for more resources"));
        assert!(take("/x", 5).is_ok(), "the forgotten one itself may go on");
        assert!(
            fences.take(&group("b"), "/x", 1).is_ok(),
            "another group's number says nothing"
        );
    }

    /// Whatever is forgotten in whatever order, no resource ever takes less than it has taken.
    #[test]
    fn a_memory_of_any_size_never_goes_back() {
        for capacity in [1, 2, 7, 30] {
            let fences = MemoryFences::with_capacity(capacity);
            let mut highest = BTreeMap::new();
            let mut state = 7_u64;
            for _ in 0..20_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let (name, resource) = (
                    group(&format!("g{}", state >> 33 & 1)),
                    format!("/{}", (state >> 40) % 20),
                );
                let fence = (state >> 50) % 500;
                let held = highest.entry((name.clone(), resource.clone())).or_insert(0);
                let taken = fences.take(&name, &resource, fence).is_ok();
                assert!(!taken || fence >= *held, "{fence} after {held} at {resource}");
                if taken {
                    *held = fence;
                }
            }
            let seen = fences.seen.lock().unwrap();
            assert!(seen.held.len() <= capacity && seen.by_fence.len() == seen.held.len());
        }
    }

    #[test]
    fn groups_are_bounded_too() {
        let fences = MemoryFences::with_capacity(3);
        for number in 0..MOST_GROUPS {
            fences.take(&group(&format!("g{number}")), "/x", 5).unwrap();
        }
        let error = fences.take(&group("more"), "/x", 5).unwrap_err();
        assert!(matches!(&error, RaiseError::Unavailable(_)), "{error}");
        assert!(fences.take(&group("g0"), "/x", 5).is_ok());
    }
}
