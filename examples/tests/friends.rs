//! The rules hold under concurrent requests.

use anden::{Database, KeyScheme, Options};
use anden_examples::friends::{Refused, befriend, check, leave};

fn database() -> Database {
    Database::in_memory(Options { keys: KeyScheme::String, ..Options::default() }).unwrap()
}

#[test]
fn forbidden_friendships_are_refused() {
    let db = database();
    assert_eq!(befriend(&db, "ann", "bob", 2).unwrap(), Ok(()));
    assert_eq!(befriend(&db, "bob", "ann", 2).unwrap(), Err(Refused::Already));
    assert_eq!(befriend(&db, "ann", "cid", 2).unwrap(), Ok(()));
    assert_eq!(befriend(&db, "dan", "ann", 2).unwrap(), Err(Refused::Enough("ann".into())));
    leave(&db, "bob").unwrap();
    assert_eq!(befriend(&db, "dan", "ann", 2).unwrap(), Ok(()));
    assert_eq!(check(&db, 2).unwrap(), 3);
}

#[test]
fn the_rules_hold_with_many_at_once() {
    let db = database();
    let people: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, people) = (&db, &people);
            scope.spawn(move || {
                for round in 0..60_usize {
                    let (first, second) = (round * 7 + thread, round * 3 + 1);
                    if round % 15 == thread {
                        leave(db, &people[first % 8]).unwrap();
                    }
                    if first % 8 != second % 8 {
                        let _ = befriend(db, &people[first % 8], &people[second % 8], 3).unwrap();
                    }
                    check(db, 3).unwrap();
                }
            });
        }
    });
    assert!(check(&db, 3).unwrap() > 2 && db.metrics().commits.commits > 20);
}
