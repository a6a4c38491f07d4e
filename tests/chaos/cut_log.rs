//! A power loss: the server comes back without its last second and more.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use leader_core::{Namespace, Outcome, Ran};
use leader_tests::{RedisServer, eventually};

use crate::dose::{Chance, dose};
use crate::observer::Observer;
use crate::rig::{Fleet, Log, Member, PATIENCE, STEADY, ms, now, side_by_side, spread, timing, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_second_repeats_no_tick_on_its_own_instance() {
    let _turn = turn().await;
    let (namespaces, rounds) = dose().cut_logs;
    let chance = Chance::of("cut log");
    let mut server = RedisServer::options()
        .set("appendonly", "yes")
        .set("appendfsync", "everysec")
        .set("aof-load-truncated", "yes")
        .set("auto-aof-rewrite-percentage", "0")
        .start()
        .await;
    let (port, log) = (server.port(), Log::new());
    let members = side_by_side(namespaces, |index| {
        let fleet = Fleet::new(format!("cut-{index}"), STEADY, &log);
        let phase = chance.below(timing().renew());
        async move {
            tokio::time::sleep(phase).await;
            fleet.join("only", port, true).await
        }
    })
    .await;
    let fleets: Vec<_> = members
        .iter()
        .map(|member| member.instance.namespace().clone())
        .collect();
    let fleets: Vec<_> = fleets.iter().map(Namespace::as_str).collect();
    let (mut cut, mut again, mut kept) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        log.more_ticks(&fleets, 2).await;
        tokio::time::sleep(chance.below(ms(1_000))).await;
        let synced = fs::metadata(newest(&server)).unwrap().len();
        // Longer than a lease, or shorter: then the old one is found again, and goes on.
        log.more_ticks(&fleets, if round % 2 == 0 { 3 } else { 1 }).await;
        let term = |member: &Member| member.instance.watch(member.group).unwrap().current().term;
        let terms: Vec<_> = members.iter().map(term).collect();
        server.kill().await;
        let killed = now();
        let file = OpenOptions::new().write(true).open(newest(&server)).unwrap();
        let whole = file.metadata().unwrap().len();
        assert!(whole > synced, "nothing to cut");
        cut.push(whole - synced);
        file.set_len(synced).unwrap();
        server.restart(true).await;
        let observer = Observer::of(&server).await;
        for ((member, namespace), before) in members.iter().zip(&fleets).zip(terms) {
            let first = observer.look(namespace, member.group).await;
            eventually(PATIENCE, "a lease that was prolonged", || async {
                let look = observer.look(namespace, member.group).await;
                look.is_held_by(&member.id) && look.lasts_until() > first.lasts_until() + ms(50)
            })
            .await;
            // The server grants before the instance has heard of it, and the instance leads before its event is read.
            member.leads().await;
            if term(member) == before {
                kept += 1;
                continue;
            }
            let (_, at) = member.granted_after(killed).await;
            again.push(at.since(killed));
        }
    }
    log.more_ticks(&fleets, 2).await;
    println!("cut log: {cut:?} bytes cut off");
    println!(
        "cut log: led again after {}, or kept the lead {kept} times",
        spread(again.clone())
    );
    assert!(again.len() >= namespaces, "no lease was forgotten");
    for (member, namespace) in members.into_iter().zip(&fleets) {
        let ledger = member.instance.ledger("beat").await.unwrap();
        let kept = ledger.counts.get(&Outcome::Ran(Ran::Ok)).copied().unwrap_or(0);
        let ran = log.ticks(namespace);
        println!("cut log: {namespace} ran {ran} ticks, the server knows {kept}");
        assert!(kept < u64::try_from(ran).unwrap(), "nothing was forgotten");
        member.stop().await;
    }
    log.judge("cut log");
}

/// The file that the server writes to.
fn newest(server: &RedisServer) -> PathBuf {
    let files = fs::read_dir(server.directory().join("appendonlydir")).unwrap();
    let incremental = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".incr.aof"));
    incremental
        .max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap())
        .unwrap()
}
