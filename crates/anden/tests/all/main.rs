//! The library as its users meet it.

mod apply_file;
mod beside_each_other;
mod edge_model;
mod edge_properties;
mod facade;
mod filters;
mod labeled;
mod live_queries;
mod matrix;
mod prefetch;
mod round_trips;
mod sliding_window;
mod tables;
mod transactions;
mod versions;
