//! Databases through their own interface: loaded, changed, crashed and compared with models.

mod acid;
mod answers;
mod appending;
mod background;
mod beside_a_writer;
mod bounded_pieces;
mod checkpoints;
mod conflicts;
mod crash_every_call;
mod edge_properties;
mod failed_batches;
mod histories;
mod hooked;
mod lama_model;
mod levelled_updates;
mod live;
mod live_batches;
mod live_model;
mod loading;
mod log_recovery;
mod log_refusals;
mod model;
mod prefetch;
mod transactions;
mod versions;
mod vertex_properties;
