//! Kernels on graphs of every shape, against their verifiers.

mod announcements;
mod communities;
mod cores;
mod directions;
mod lcc;
mod matrix;
mod negative_weights;
mod pagerank;
mod preparation;
mod queries;
mod refusals;
mod triangles;
mod ways;
