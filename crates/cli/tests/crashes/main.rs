//! The program, ended at any moment: killed, without power, without room or memory, with a disk that
//! fails.
//!
//! What it answered is counted by the test, outside of it. Edges are added one after the other, so that what is found
//! afterwards shows how many commits there are, and that none is left out.

#![forbid(unsafe_code)]

mod budgets;
mod disk;
mod indexed;
mod kill;
mod power_cut;
mod pressure;
mod syscalls;
mod writer;
