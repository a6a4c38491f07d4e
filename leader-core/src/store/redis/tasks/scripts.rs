//! The scripts of tasks, with the digests that a server knows them by.

use std::sync::LazyLock;

/// A script that is called by its digest.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) text: &'static str,
    pub(super) digest: String,
}

/// A script behind what stands before all of them.
macro_rules! of_a_shard {
    ($name:ident, $file:literal) => {
        pub(super) static $name: LazyLock<Script> = LazyLock::new(|| {
            script(concat!(
                include_str!("../scripts/tasks/shard.lua"),
                include_str!(concat!("../scripts/tasks/", $file, ".lua"))
            ))
        });
    };
}

fn script(text: &'static str) -> Script {
    let digest = ::redis::Script::new(text).get_hash().to_owned();
    Script { text, digest }
}

of_a_shard!(ENQUEUE, "enqueue");
of_a_shard!(DISPATCH, "dispatch");
of_a_shard!(TAKE, "take");
of_a_shard!(BEAT, "beat");
of_a_shard!(FINISH, "finish");
of_a_shard!(CHANGE, "change");
of_a_shard!(TASK, "task");
of_a_shard!(LIST, "list");
of_a_shard!(FIGURES, "figures");

pub(super) static QUEUE: LazyLock<Script> = LazyLock::new(|| script(include_str!("../scripts/tasks/queue.lua")));
