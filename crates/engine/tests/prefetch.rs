//! What the advisor tells the system beside what it asks for.

use std::time::{Duration, Instant};

use anden_engine::{Advisor, Database, GraphOptions, KeyScheme, MergeScope, Missing, Prefetch, Side, Update};
use base::parallel::Pool;
use base::progress::Silent;
use graph::WillNeed;

/// Where nobody told the system otherwise, it read every list by itself, a page at a time, that was not announced: the
/// way back of betweenness took twice as long with the advisor as without.
#[test]
fn whoever_falls_silent_is_left_to_the_system() {
    let pool = Pool::new(1).unwrap();
    let database = Database::in_memory(GraphOptions { keys: KeyScheme::Dense, ..GraphOptions::default() }).unwrap();
    let updates: Vec<Update> = (0..500_u64).map(|v| Update::add_edge(v, (v + 1) % 500)).collect();
    database.apply(&updates, Missing::Lenient, &pool).unwrap();
    database.checkpoint(None).unwrap();
    database.merge(MergeScope::All, &pool, &Silent).unwrap();
    let advisor = Advisor::default();
    let view = advisor.attach(&database.view().unwrap(), Prefetch::Frontier);
    let vertices: Vec<u32> = (0..500).collect();
    let end = Instant::now() + Duration::from_secs(60);
    // On a busy machine, silence may be over before this thread looks.
    while !view.is_exact(Side::Out) {
        assert!(Instant::now() < end, "what is announced is read exactly");
        view.will_need_out(&vertices);
    }
    while view.is_exact(Side::Out) {
        assert!(Instant::now() < end, "nobody announced anything, and the system still reads nothing by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
}
