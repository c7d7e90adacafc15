//! `anden index`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

const INDEX_EXAMPLES: &str = "\
Examples:
  anden index social.anden create vertex email --unique
  anden index social.anden list
  anden index social.anden drop vertex email";

/// Make, drop and list indexes of properties
///
/// An index makes `query find` fast, on every snapshot. It is kept up to date by all that changes the database. What was
/// committed since the newest snapshot becomes a snapshot before an index is made or dropped.
#[derive(Args, Debug)]
#[command(after_help = INDEX_EXAMPLES, subcommand_value_name = "ACTION", subcommand_help_heading = "Actions")]
pub struct IndexArgs {
    /// The database: a directory
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    #[command(subcommand)]
    pub action: IndexAction,
}

/// What becomes of indexes.
#[derive(Debug, Subcommand)]
pub enum IndexAction {
    /// Make an index of the property NAME
    Create {
        /// What has the property
        #[arg(value_enum)]
        of: IndexOf,
        /// The name of the property
        name: String,
        /// No two vertices have the same value; refused where two have, and they are named
        #[arg(long)]
        unique: bool,
    },
    /// Drop the index of the property NAME
    Drop {
        /// What has the property
        #[arg(value_enum)]
        of: IndexOf,
        /// The name of the property
        name: String,
    },
    /// List the indexes
    List,
}

/// What may have indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexOf {
    Vertex,
}

impl IndexOf {
    /// The name that the library has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vertex => "vertex",
        }
    }
}
