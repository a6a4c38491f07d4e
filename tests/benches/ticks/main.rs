//! A thousand jobs each second on one leader: how late their bodies start, what it costs, and the same for the bare floor.
//!
//! `cargo bench -p leader-tests --bench ticks` takes about a minute and a half and stops by itself. With options it runs one case beside its floor:
//! `-- [--store redis|embedded] [--jobs 1000] [--seconds 20]`.

mod floor;
mod meter;
mod ours;
mod scripts;

use leader_tests::RedisServer;
use meter::Load;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Redis,
    Embedded,
}

struct Options {
    store: Option<Store>,
    load: Load,
    chosen: bool,
}

fn options() -> Options {
    let mut options = Options {
        store: None,
        load: Load {
            jobs: 1000,
            seconds: 20,
        },
        chosen: false,
    };
    // Cargo itself adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let number = || {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{word} needs a number, not `{value}`"))
        };
        options.chosen = true;
        match (word.as_str(), value.as_str()) {
            ("--store", "redis") => options.store = Some(Store::Redis),
            ("--store", "embedded") => options.store = Some(Store::Embedded),
            ("--jobs", _) => options.load.jobs = number(),
            ("--seconds", _) => options.load.seconds = number() as u64,
            _ => panic!("unknown: `{word} {value}`; write --store redis|embedded, --jobs N, --seconds N"),
        }
    }
    options
}

fn main() {
    let options = options();
    meter::count_claims();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime.block_on(RedisServer::start());
    let load = options.load;
    if options.chosen {
        case(&runtime, &server, options.store.unwrap_or(Store::Redis), load);
        return;
    }
    case(&runtime, &server, Store::Redis, load);
    let short = Load { seconds: 10, ..load };
    println!("\n{short}, embedded store");
    ours::run(&runtime, None, short).print("leader-core, embedded", None);
    // An outlook.
    case(&runtime, &server, Store::Redis, Load { jobs: 10_000, ..short });
}

/// One case between two runs of its floor, because the machine's speed drifts.
fn case(runtime: &tokio::runtime::Runtime, server: &RedisServer, store: Store, load: Load) {
    let server = (store == Store::Redis).then_some(server);
    println!(
        "\n{load}, {}",
        if server.is_some() {
            "local Redis"
        } else {
            "embedded store"
        }
    );
    let half = Load {
        seconds: (load.seconds / 4).max(3),
        ..load
    };
    floor::timers(half).print("floor: bare timers", None);
    let mut floor = server.map(|server| floor::claims(server, half));
    let figures = ours::run(runtime, server, load);
    if let (Some(floor), Some(server)) = (&mut floor, server) {
        floor.add(floor::claims(server, half));
        floor.print("floor: timers and a bare claim", None);
    }
    figures.print("leader-core", floor.as_ref());
    if let Some(server) = server {
        scripts::measure(runtime, server);
    }
}
