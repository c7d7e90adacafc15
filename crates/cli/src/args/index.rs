//! `anden index`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const INDEX_EXAMPLES: &str = "\
Examples:
  anden index social.anden create vertex email --unique
  anden index social.anden list
  anden index social.anden drop vertex email";

/// Create, drop and list indexes of properties
///
/// An index makes `query find` fast on every snapshot. Every change of the database updates it. Changes since the
/// newest snapshot become a snapshot before an index is created or dropped.
#[derive(Args, Debug)]
#[command(after_help = INDEX_EXAMPLES, subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
pub struct IndexArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    #[command(subcommand)]
    pub action: IndexAction,
}

/// Actions on indexes.
#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Create an index of the property NAME
    Create {
        /// The kind of element that has the property
        #[arg(value_enum)]
        of: IndexOf,
        /// Name of the property
        name: String,
        /// Allow each value only once; refused if two vertices share a value, and the error names both
        #[arg(long)]
        unique: bool,
    },
    /// Drop the index of the property NAME
    Drop {
        /// The kind of element that has the property
        #[arg(value_enum)]
        of: IndexOf,
        /// Name of the property
        name: String,
    },
    /// List the indexes
    List,
}

/// Elements that can have indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexOf {
    Vertex,
}

impl IndexOf {
    /// The name in the library.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vertex => "vertex",
        }
    }
}
