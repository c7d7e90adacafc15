//! Histories of transactions, and two checkers of strict serializability.
//!
//! Objects hold lists. Transactions append elements, and no element twice to one object. A read returns the whole list,
//! so it shows which appends came before it and in which order. A register would show less (Kingsbury and Alvaro,
//! "Elle", VLDB 2020). An object stands for a list in a property value, or for an adjacency list to which edges are
//! added.
//!
//! The two checkers share only this description. [`find_cycle`] ignores the commit order of the database: it infers
//! precedence from the reads and looks for a cycle. [`replay`](fn@replay) takes the order that the database claims and
//! replays the history on a model that runs one transaction at a time.

mod cycles;
mod replay;

pub use cycles::find_cycle;
pub use replay::replay;

/// The number of an object.
pub type Object = u32;

/// An appended element, unique within its object.
pub type Element = u64;

/// A step of a transaction, with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Appends an element.
    Append(Object, Element),
    /// Reads the list: in its order if the object is a list, ascending if it is a set.
    Read(Object, Vec<Element>),
}

/// The outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed, with the position that the database reports. Positions ascend in commit order.
    Committed(u64, u64),
    /// Aborted, without any effect.
    Aborted,
}

/// A finished transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The client. A client runs one transaction at a time.
    pub client: u32,
    /// The start time, on one strictly ascending clock for all clients.
    pub begun: u64,
    /// The time of the answer, on the clock of `begun`.
    pub ended: u64,
    /// The steps in execution order.
    pub actions: Vec<Action>,
    /// The outcome.
    pub outcome: Outcome,
}

impl Run {
    /// The commit position that the database reports.
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

/// Concurrent transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All transactions, in any order.
    pub runs: Vec<Run>,
    /// Objects with this number or a larger one are sets: their reads show no order.
    pub first_set: Object,
}

impl History {
    /// Whether a read of the object shows the order of its elements.
    fn is_list(&self, object: Object) -> bool {
        object < self.first_set
    }

    /// The number of committed transactions.
    pub fn num_committed(&self) -> usize {
        self.runs.iter().filter(|run| run.position().is_some()).count()
    }
}

#[cfg(test)]
mod tests;
