//! Examples of what can be done with the library `anden`.
//!
//! [`labelled_reach`](mod@labelled_reach) writes an algorithm of one's own; [`sliding_window`] ranks what a stream's
//! last batches hold; [`friends`] keeps rules while many change a graph at once; [`graphalytics`] runs and validates the
//! benchmark of that name.

#![forbid(unsafe_code)]

pub mod friends;
pub mod graphalytics;
pub mod labelled_reach;
pub mod sliding_window;
