//! The live graph against models.

mod kernels;
mod model;
mod overlay;
mod versions;
