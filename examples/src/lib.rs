//! Examples for the library `anden`.
//!
//! [`labelled_reach`](mod@labelled_reach) writes a custom algorithm. [`sliding_window`] ranks the last batches of a
//! stream. [`friends`] keeps rules while concurrent transactions change a graph. [`replica`](mod@replica) follows
//! another database and takes over. [`graphalytics`] runs and validates the benchmark of that name.

#![forbid(unsafe_code)]

pub mod friends;
pub mod graphalytics;
pub mod labelled_reach;
pub mod replica;
pub mod sliding_window;
