//! `anden generate`.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::parse;

const EXAMPLES: &str = "\
Examples:
  anden generate rmat --scale 20 --degree 16 -o rmat20.sg
  anden generate uniform --scale 16 --degree 8 --weights 1..255 -o uniform.txt
  anden generate grid --width 1000 --height 1000 --seed 7 -o grid.txt";

/// Generate a random graph
///
/// Equal seeds give equal files at any number of threads. Vertex ids are permuted at random.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_value_name = "KIND", subcommand_help_heading = "Kinds")]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub shape: GeneratorShape,
}

/// Kinds of random graphs.
#[derive(Debug, Subcommand)]
pub enum GeneratorShape {
    /// Recursive matrix (R-MAT), by default with the parameters of Graph500: few vertices have most of the edges
    Rmat {
        /// Number of vertices, as a power of two: 2^S
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=31), allow_negative_numbers = true)]
        scale: u32,
        /// Number of edges per vertex
        #[arg(long, value_name = "D", default_value_t = 16, allow_negative_numbers = true)]
        degree: u32,
        /// Share of the edges in the upper left quarter of the matrix
        #[arg(long, default_value_t = 0.57, value_parser = parse::fraction, allow_hyphen_values = true)]
        a: f64,
        /// Share of the upper right quarter
        #[arg(long, default_value_t = 0.19, value_parser = parse::fraction, allow_hyphen_values = true)]
        b: f64,
        /// Share of the lower left quarter
        #[arg(long, default_value_t = 0.19, value_parser = parse::fraction, allow_hyphen_values = true)]
        c: f64,
        #[command(flatten)]
        common: GenerateCommon,
    },
    /// Uniform random graph: every edge is equally likely
    Uniform {
        /// Number of vertices, as a power of two: 2^S
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=31), allow_negative_numbers = true)]
        scale: u32,
        /// Number of edges per vertex
        #[arg(long, value_name = "D", default_value_t = 16, allow_negative_numbers = true)]
        degree: u32,
        #[command(flatten)]
        common: GenerateCommon,
    },
    /// Grid: each vertex is joined to its right and lower neighbors
    Grid {
        /// Number of columns
        #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
        width: u32,
        /// Number of rows
        #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
        height: u32,
        #[command(flatten)]
        common: GenerateCommon,
    },
}

/// Options of all kinds.
#[derive(Args, Clone, Debug)]
pub struct GenerateCommon {
    /// Seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// Give each edge a random integer weight in this range
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true, value_parser = parse::interval::<u32>)]
    pub weights: Option<RangeInclusive<u32>>,
    /// Output file: .txt, .el, .wel (text), .sg or .wsg (GAP); `-` for text on standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}
