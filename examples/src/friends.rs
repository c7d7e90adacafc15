//! Friendships that many ask for at once, and rules that hold all the same: nobody has more friends than the most that is
//! allowed, both sides know of each other, and a count beside the edges is right.
//!
//! Each request is a transaction that looks before it writes. Of two that meet, one is tried again and sees what the other
//! did; nothing is locked, and who only reads waits for nobody.

use anden::{Database, Error, OwnedValue, Result, Transaction};

/// Why two did not become friends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are already, as everybody is of themselves.
    Already,
    /// This one has as many friends as are allowed.
    Enough(String),
}

/// Makes two people friends, unless they are or one has enough; people come with their first friend.
///
/// # Errors
/// The database is open for reading only, or the disk fails.
pub fn befriend(db: &Database, first: &str, second: &str, most: i64) -> Result<Result<(), Refused>> {
    db.transact(|tx| {
        if first == second || tx.has_edge(first, second)? {
            return Ok(Err(Refused::Already));
        }
        for person in [first, second] {
            tx.insert_vertex(person)?;
            if num_friends(tx, person)? >= most {
                return Ok(Err(Refused::Enough(person.to_owned())));
            }
        }
        for (person, other) in [(first, second), (second, first)] {
            tx.add_edge(person, other)?;
            let count = num_friends(tx, person)? + 1;
            tx.set(person, "friends", count)?;
        }
        Ok(Ok(()))
    })
}

/// Removes a person; those who were friends count one less.
///
/// # Errors
/// As [`befriend`].
pub fn leave(db: &Database, person: &str) -> Result<()> {
    db.transact(|tx| {
        if !tx.has_vertex(person)? {
            return Ok(());
        }
        for friend in tx.neighbors(person)? {
            let count = num_friends(tx, &friend.to_string())? - 1;
            tx.set(friend, "friends", count)?;
        }
        tx.remove_vertex(person)
    })
}

/// Checks the rules on one view.
///
/// # Errors
/// [`Error::Corrupt`]: one does not hold.
pub fn check(db: &Database, most: i64) -> Result<usize> {
    let tx = db.begin()?;
    let people = tx.vertices()?;
    for person in &people {
        let (person, friends) = (person.to_string(), tx.neighbors(person.clone())?);
        let count = num_friends(&tx, &person)?;
        if count > most || count != friends.len() as i64 {
            let what = format!("{person} counts {count} friends, and has {}", friends.len());
            return Err(Error::Corrupt(what));
        }
        for friend in friends {
            if !tx.has_edge(friend.clone(), person.as_str())? {
                return Err(Error::Corrupt(format!("{friend} does not know of {person}")));
            }
        }
    }
    Ok(people.len())
}

/// The count beside the edges.
fn num_friends(tx: &Transaction<'_>, person: &str) -> Result<i64> {
    Ok(match tx.get(person, "friends")? {
        OwnedValue::I64(count) => count,
        _ => 0,
    })
}
