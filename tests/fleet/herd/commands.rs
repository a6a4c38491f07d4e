//! What a server was sent: by its own count, without what scripts called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use leader_tests::RedisServer;

/// What opens a connection, the harness's own included.
const OPENING: [&str; 6] = ["hello", "auth", "client|setinfo", "client|setname", "select", "command"];
/// What the harness asks.
pub const LEASE_END: &str = "pexpiretime";

/// What the store's scripts call, by their own text: no client of a settled fleet sends any of it by itself.
fn called() -> &'static BTreeSet<String> {
    static CALLED: OnceLock<BTreeSet<String>> = OnceLock::new();
    CALLED.get_or_init(|| {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../leader-core/src/store/redis/scripts");
        let mut called = BTreeSet::new();
        for script in std::fs::read_dir(scripts).expect("the scripts' folder") {
            let script = script.expect("readable").path();
            if script.is_dir() {
                // Those of tasks, of which these fleets have none.
                continue;
            }
            let text = std::fs::read_to_string(script).expect("a text");
            let names = text.split("call('").skip(1).filter_map(|rest| rest.split_once('\''));
            called.extend(names.map(|(name, _)| name.to_lowercase()));
        }
        assert!(called.contains("pttl") && called.contains("hset"), "{called:?}");
        called
    })
}

/// How often each command ran, from one count to another.
#[derive(Clone, Debug, Default)]
pub struct Commands(BTreeMap<String, u64>);

impl Commands {
    /// The count so far.
    pub async fn until_now(server: &RedisServer) -> Self {
        let told = server.tells("commandstats").await;
        // `cmdstat_eval:calls=12,usec=…`
        let line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split_once(',')?.0.parse().ok()?))
        };
        Self(told.lines().filter_map(line).collect())
    }

    /// What came after `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let more = |(name, count): (&String, &u64)| (name.clone(), count - earlier.of(name));
        Self(self.0.iter().map(more).filter(|(_, count)| *count > 0).collect())
    }

    /// How often a command ran, whoever called it.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// How many commands clients sent, but for those that open a connection and the harness's own.
    pub fn sent(&self) -> u64 {
        self.sent_by_name().map(|(_, count)| count).sum()
    }

    fn sent_by_name(&self) -> impl Iterator<Item = (&str, u64)> {
        let own = |name: &str| name == LEASE_END || OPENING.contains(&name) || called().contains(name);
        let all = self.0.iter().map(|(name, count)| (name.as_str(), *count));
        all.filter(move |(name, _)| !own(name))
    }

    /// Scripts that were sent.
    pub fn scripts(&self) -> u64 {
        self.of("eval") + self.of("evalsha") + self.of("fcall")
    }

    /// Leases of others that were looked at: the scripts ask for the rest of each of them, and of no other key.
    pub fn looks(&self) -> u64 {
        self.of("pttl")
    }

    /// Renewals of leases: each prolongs one.
    pub fn renewals(&self) -> u64 {
        self.of("pexpire")
    }

    /// Leases that were given back: each is told to everybody.
    pub fn releases(&self) -> u64 {
        self.of("publish")
    }

    /// Lines of the roster that were written: each reads the roster.
    pub fn enrolments(&self) -> u64 {
        self.of("hgetall")
    }
}

impl fmt::Display for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent: Vec<_> = self
            .sent_by_name()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        write!(f, "{}", sent.join(", "))
    }
}

/// Checks that this server counts the commands that a script calls under their own names, beside the script.
///
/// # Panics
/// When it does not: then nothing here means anything.
pub async fn check_the_count(server: &RedisServer) {
    let before = Commands::until_now(server).await;
    let script = "redis.call('GET', KEYS[1]); return redis.call('PTTL', KEYS[1])";
    server.command(&["EVAL", script, "1", "herd-check"]).await;
    server.command(&["ECHO", "one"]).await;
    let counted = Commands::until_now(server).await.since(&before);
    let numbers = ["eval", "get", "pttl", "echo"].map(|name| counted.of(name));
    assert_eq!((numbers, counted.sent()), ([1, 1, 1, 1], 2), "{counted:?}");
}
