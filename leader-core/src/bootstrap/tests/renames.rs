//! The names that jobs had before, and what is refused of them.

use super::*;

const OLDER: &str = "purge_all";

#[leader_only(group = "tokens", every = "1h", was = ["purge-tokens", OLDER])]
async fn purge_tokens() {}

#[test]
fn earlier_names_are_those_of_the_attribute() {
    let was = |name| job(config(given(&[])), name).was.clone();
    let names: Vec<_> = was("purge_tokens").iter().map(ToString::to_string).collect();
    assert_eq!(names, ["purge-tokens", "purge_all"]);
    assert!(was("scheduled").is_empty());
}

#[cfg(feature = "testing")]
#[test]
fn an_earlier_name_is_nobody_elses() {
    let bad = given(&[])
        .__as::<purge_tokens>("purge_all", &[])
        .__as::<purge_tokens>("sweep", &["purge-tokens", "old", "old"]);
    let told = faults(bad);
    assert_eq!(told.len(), 3, "{told:#?}");
    for part in [
        "`purge_tokens` says that it was `purge_all`, which is another job of this program",
        "`was = \"purge-tokens\"` is said of `purge_tokens` and of `sweep`",
        "`was = \"old\"` is said of `sweep` and of `sweep`",
    ] {
        assert!(told.iter().any(|told| told.starts_with(part)), "{part}: {told:#?}");
    }
}
