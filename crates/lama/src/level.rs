//! Levels: what changed from one version to a later one.

mod compose;
mod reader;
mod writer;

pub(crate) use compose::compose_levels;
pub(crate) use reader::{Level, LevelFile};
pub(crate) use writer::LevelWriter;
