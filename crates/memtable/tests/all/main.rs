//! The memtable against models.

mod kernels;
mod model;
mod overlay;
mod versions;
