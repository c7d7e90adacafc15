//! Histories of transactions, and whether they could have run one after the other.
//!
//! Objects hold lists to which transactions append values, no value twice to one object. Who reads an object sees the
//! whole list, so a read says which appends came before it and in which order: more than a register would tell (Kingsbury
//! and Alvaro, "Elle", VLDB 2020). Objects stand for what a database has: a list in a value of a vertex, or an adjacency
//! list to which edges are added.
//!
//! Two checkers look at a history, and share nothing but this description. One knows nothing of the order in which the
//! database committed: it infers who came before whom from what was read, and [looks for a cycle](find_cycle). The other
//! takes the order that the database claims, and [replays](fn@replay) the history on a model that runs one transaction at
//! a time.

mod cycles;
mod replay;

pub use cycles::find_cycle;
pub use replay::replay;

/// An object, by its number.
pub type Object = u32;

/// What a transaction appends: never the same twice to one object.
pub type Element = u64;

/// A step of a transaction, with what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// An element is appended.
    Append(Object, Element),
    /// The list was read: of an object whose elements have an order, in that order; otherwise as a set, ascending.
    Read(Object, Vec<Element>),
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was committed, and the database says where in its order: any numbers that ascend with it.
    Committed(u64, u64),
    /// Nothing of it happened.
    Aborted,
}

/// A transaction that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The client that ran it; one client runs one after the other.
    pub client: u32,
    /// When it began and when it was answered, on one clock for all clients that never stands still.
    pub begun: u64,
    /// See `begun`.
    pub ended: u64,
    /// Its steps in their order.
    pub actions: Vec<Action>,
    /// What became of it.
    pub outcome: Outcome,
}

impl Run {
    /// Where the database says that it was committed.
    pub fn position(&self) -> Option<(u64, u64)> {
        match self.outcome {
            Outcome::Committed(epoch, place) => Some((epoch, place)),
            Outcome::Aborted => None,
        }
    }

    fn appends(&self) -> impl Iterator<Item = (Object, Element)> + '_ {
        self.actions.iter().filter_map(|action| match action {
            Action::Append(object, element) => Some((*object, *element)),
            Action::Read(..) => None,
        })
    }
}

/// Transactions that ran beside each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All of them, in any order.
    pub runs: Vec<Run>,
    /// Objects from this one on are sets: who reads one sees no order.
    pub first_set: Object,
}

impl History {
    /// Whether who reads an object sees the order of its elements.
    fn is_list(&self, object: Object) -> bool {
        object < self.first_set
    }

    /// How many were committed.
    pub fn num_committed(&self) -> usize {
        self.runs.iter().filter(|run| run.position().is_some()).count()
    }
}

#[cfg(test)]
mod tests;
