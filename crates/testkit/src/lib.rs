//! What the tests of several crates share: small graphs of every shape, a view that gives their
//! lists in pieces, a random number generator with a seed that can be printed, checkers of histories of
//! transactions, and groups of processes with little memory.

#![forbid(unsafe_code)]

mod graphs;
pub mod history;
pub mod memory_group;
mod pieces;
mod random;

pub use graphs::{TestGraph, for_each_graph, graphs};
pub use pieces::{Dead, Pages, Pieces};
pub use random::Random;

/// How often what is random is tried: `usual` times in each run of the tests, and `ANDEN_TEST_SCALE` times as often where
/// that is set, as before a release.
pub fn scaled(usual: u64) -> u64 {
    let scale = std::env::var("ANDEN_TEST_SCALE").map_or(1, |text| text.parse().expect("ANDEN_TEST_SCALE is a number"));
    usual * scale
}
