//! A replica loses nothing, goes on after it was closed, and takes over.

use anden::{Database, KeyScheme, Options, Update};
use anden_examples::replica::{begin, follow, follow_to_the_end};

fn commit(db: &Database, number: u64) {
    let (person, friend) = (format!("p{}", number % 17), format!("p{}", number % 5));
    db.apply(&[
        Update::add_edge(person.as_str(), friend.as_str()),
        Update::set_vertex(person.as_str(), "seen", number as i64),
    ])
    .unwrap();
}

fn facts(db: &Database) -> (u64, usize, Vec<String>) {
    let view = db.view().unwrap();
    let seen = |v: u32| format!("{:?}", view.vertex_properties(v).unwrap());
    (view.num_edges(), view.num_vertices(), (0..view.vertex_bound() as u32).map(seen).collect())
}

#[test]
fn replica_takes_over_without_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let options = Options { keys: KeyScheme::String, ..Options::default() };
    let primary = Database::create(path("primary"), options).unwrap();
    primary.set_keep_wal(64 << 20).unwrap();
    (0..10).for_each(|number| commit(&primary, number));
    let reader = Database::open_read_only(path("primary")).unwrap();
    let mut replica = begin(&primary, &path("backup"), &path("replica")).unwrap();
    assert_eq!((replica.epoch(), facts(&replica)), (primary.epoch(), facts(&primary)));
    for number in 10..40 {
        commit(&primary, number);
        if number % 7 == 0 {
            primary.checkpoint(None).unwrap();
            follow(&reader, &replica).unwrap();
        }
        if number == 25 {
            replica.close().unwrap();
            replica = Database::open(path("replica")).unwrap();
        }
    }
    let expected = (primary.epoch(), facts(&primary));
    primary.close().unwrap();
    follow_to_the_end(&reader, &replica, |_| {}).unwrap();
    assert_eq!((replica.epoch(), facts(&replica)), expected);
    commit(&replica, 99);
    assert_eq!(replica.epoch(), expected.0 + 1);
}
