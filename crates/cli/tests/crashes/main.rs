//! The program, ended at any moment: killed, without power, disk space or memory, or with a failing disk.
//!
//! The test counts the answers outside the program. Edges are added in sequence, so the remaining database shows the
//! number of commits and any gap.

#![forbid(unsafe_code)]

mod budgets;
mod disk;
mod indexed;
mod kill;
mod power_cut;
mod pressure;
mod syscalls;
mod writer;
