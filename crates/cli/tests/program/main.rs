//! The program as users run it: real processes, real files, exit statuses, and bytes on both streams.

#![forbid(unsafe_code)]

mod answers;
mod backups;
mod bad_days;
mod bad_input;
mod command_line;
mod edge_properties;
mod empty_ids;
mod graphalytics;
mod idle_input;
mod inputs;
mod labeled;
mod lists;
mod live;
mod loading;
mod many_parts;
mod moved;
mod outputs;
mod parts;
mod periods;
mod prepare;
mod properties;
mod questions;
mod refusals;
mod scene;
mod signals;
mod small_machines;
mod streams;
mod tail;
mod variants;
mod versions;
mod writers;
