//! Generators of graphs.

mod generators;
