//! Rules that hold under concurrent requests: a limit on the friends of a person, symmetric friendships, and a correct
//! count of friends beside the edges.
//!
//! Each request is a transaction that reads before it writes. If two requests conflict, one is retried and sees the
//! other's changes. There are no locks, and a read-only transaction waits for no other.

use anden::{Database, Error, OwnedValue, Result, Transaction};

/// The reason why two people did not become friends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are friends already, or are one person.
    Already,
    /// This person has the maximum number of friends.
    Enough(String),
}

/// Makes two people friends, unless they are already or one has `most` friends. Creates missing people.
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

/// Removes a person, and lowers the counts of that person's friends.
///
/// # Errors
/// As for [`befriend`].
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

/// Checks the rules on one view. Returns the number of people.
///
/// # Errors
/// [`Error::Corrupt`] if a rule does not hold.
pub fn check(db: &Database, most: i64) -> Result<usize> {
    let tx = db.begin()?;
    let people = tx.vertices()?;
    for person in &people {
        let (person, friends) = (person.to_string(), tx.neighbors(person.clone())?);
        let count = num_friends(&tx, &person)?;
        if count > most || count != friends.len() as i64 {
            let what = format!("{person} counts {count} friends, and has {}", friends.len());
            return Err(Error::Corrupt(what.into()));
        }
        for friend in friends {
            if !tx.has_edge(friend.clone(), person.as_str())? {
                return Err(Error::Corrupt(format!("{friend} does not know of {person}").into()));
            }
        }
    }
    Ok(people.len())
}

/// The stored count of friends.
fn num_friends(tx: &Transaction<'_>, person: &str) -> Result<i64> {
    Ok(match tx.get(person, "friends")? {
        OwnedValue::I64(count) => count,
        _ => 0,
    })
}
