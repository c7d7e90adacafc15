//! Tests of the public API.

mod apply_file;
mod arrow_inputs;
mod awaiting;
mod beside_each_other;
mod csr_arrays;
mod edge_model;
mod edge_properties;
mod errors;
mod facade;
mod filters;
mod id_orders;
mod labeled;
mod live_queries;
mod matrix;
mod own_graph;
mod prefetch;
mod preparation;
mod round_trips;
mod sliding_window;
mod stored_forms;
mod tables;
mod time_snapshots;
mod transactions;
mod versions;
