//! Stores of versions: written, damaged, crashed and read back.

mod beside_a_writer;
mod crash_every_call;
mod crash_every_change;
mod damage;
mod full_disk;
mod golden;
mod many_deltas;
mod model;
mod opening;
mod repair;
mod retention;
mod round_trip;
mod untrusted;
mod verify_counts;
mod versions;
