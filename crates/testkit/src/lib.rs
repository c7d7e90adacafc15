//! What the tests of several crates share: small graphs of every shape, a view that gives their
//! lists in pieces, a random number generator with a seed that can be printed, and checkers of histories of
//! transactions.

#![forbid(unsafe_code)]

mod graphs;
pub mod history;
mod pieces;
mod random;

pub use graphs::{TestGraph, for_each_graph, graphs};
pub use pieces::{Dead, Pages, Pieces};
pub use random::Random;
