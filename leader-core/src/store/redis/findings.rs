//! Judges a server by what it says of itself.

use crate::store::finding::{Finding, FindingKind};

/// The oldest server whose scripts may write after they have read the time (`TIME` with effects replication), and that the suites
/// of the `redis` crate still run on.
const OLDEST: (u32, u32) = (6, 2);

/// Judges the text of the `INFO` command.
pub(super) fn judge(info: &str) -> Vec<Finding> {
    let field = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let mut findings = Vec::new();
    let mut find = |kind, text: String| findings.push(Finding { kind, text });
    if let Some(version) = field("redis_version") {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let known = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        if known < OLDEST {
            let (major, minor) = OLDEST;
            find(
                FindingKind::Version,
                format!("Redis {version} is too old to hold leases safely: use {major}.{minor} or newer, or Valkey"),
            );
        }
    } else {
        find(
            FindingKind::Unknown,
            "the server does not tell its version: it is not a Redis or Valkey that this library knows".to_owned(),
        );
    }
    if field("role").is_some_and(|role| role != "master") {
        let primary = field("master_host").zip(field("master_port"));
        let primary = primary.map_or_else(String::new, |(host, port)| format!(" ({host}:{port})"));
        find(
            FindingKind::Replica,
            format!("the server is a replica and takes no leases: give the address of its primary{primary}"),
        );
    }
    if field("cluster_enabled").is_some_and(|enabled| enabled == "1") {
        find(
            FindingKind::Cluster,
            "the server is part of a cluster, which this version does not support: give a server with `cluster-enabled no`".to_owned(),
        );
    }
    if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction")
        && field("maxmemory")
            .is_none_or(|limit| limit != "0" || policy.starts_with("allkeys") || policy.contains("ttl"))
    {
        find(
            FindingKind::Eviction,
            format!(
                "`maxmemory-policy {policy}` lets the server evict leases, which then end early and elect a second leader: \
                 set `maxmemory-policy noeviction`"
            ),
        );
    }
    if field("aof_enabled").is_some_and(|enabled| enabled == "0") {
        find(
            FindingKind::Persistence,
            "`appendonly` is off: after a crash the server forgets cursors and history since its last snapshot, \
             and ticks of that span may run again: set `appendonly yes`"
                .to_owned(),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(info: &str) -> Vec<FindingKind> {
        judge(info).into_iter().map(|finding| finding.kind).collect()
    }

    const GOOD: &str = "# Server\r\nredis_version:7.0.15\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";

    #[test]
    fn a_fit_server_has_no_findings() {
        assert_eq!(kinds(GOOD), []);
    }

    #[test]
    fn each_fault_is_one_finding_with_its_way_out() {
        for (from, to, kind, word) in [
            ("7.0.15", "6.0.9", FindingKind::Version, "6.2 or newer"),
            (
                "role:master",
                "role:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6380",
                FindingKind::Replica,
                "10.1.2.3:6380",
            ),
            (
                "role:master",
                "role:master\r\ncluster_enabled:1",
                FindingKind::Cluster,
                "cluster-enabled no",
            ),
            ("noeviction", "allkeys-lru", FindingKind::Eviction, "noeviction"),
            ("noeviction", "volatile-ttl", FindingKind::Eviction, "noeviction"),
            (
                "aof_enabled:1",
                "aof_enabled:0",
                FindingKind::Persistence,
                "appendonly yes",
            ),
            ("redis_version:7.0.15", "x:1", FindingKind::Unknown, "version"),
        ] {
            let found = judge(&GOOD.replace(from, to));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].kind, kind);
            assert!(found[0].text.contains(word), "{}", found[0].text);
        }
        assert!(FindingKind::Replica.is_fatal() && !FindingKind::Eviction.is_fatal());
    }

    #[test]
    fn an_unlimited_server_evicts_nothing() {
        assert_eq!(kinds(&GOOD.replace("noeviction", "volatile-lru")), []);
        let limited = GOOD
            .replace("noeviction", "volatile-lru")
            .replace("maxmemory:0", "maxmemory:1000000");
        assert_eq!(kinds(&limited), [FindingKind::Eviction]);
    }
}
