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

/// Make a random graph
///
/// The same seed gives the same file at any number of threads. Ids are permuted at random.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_value_name = "KIND", subcommand_help_heading = "Kinds")]
pub struct GenerateArgs {
    #[command(subcommand)]
    pub shape: Shape,
}

/// What kind of graph.
#[derive(Debug, Subcommand)]
pub enum Shape {
    /// A recursive matrix, by default with the parameters of Graph500: few vertices have most edges
    Rmat {
        /// 2^S vertices
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=31), allow_negative_numbers = true)]
        scale: u32,
        /// Edges, in multiples of the vertices
        #[arg(long, value_name = "D", default_value_t = 16, allow_negative_numbers = true)]
        degree: u32,
        /// The share of the edges in the upper left quarter of the matrix
        #[arg(long, default_value_t = 0.57, value_parser = parse::fraction, allow_hyphen_values = true)]
        a: f64,
        /// The upper right quarter
        #[arg(long, default_value_t = 0.19, value_parser = parse::fraction, allow_hyphen_values = true)]
        b: f64,
        /// The lower left quarter
        #[arg(long, default_value_t = 0.19, value_parser = parse::fraction, allow_hyphen_values = true)]
        c: f64,
        #[command(flatten)]
        common: GenerateCommon,
    },
    /// Every edge as likely as any other
    Uniform {
        /// 2^S vertices
        #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=31), allow_negative_numbers = true)]
        scale: u32,
        /// Edges, in multiples of the vertices
        #[arg(long, value_name = "D", default_value_t = 16, allow_negative_numbers = true)]
        degree: u32,
        #[command(flatten)]
        common: GenerateCommon,
    },
    /// A grid, each vertex joined to those right of it and below it
    Grid {
        /// Columns
        #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
        width: u32,
        /// Rows
        #[arg(long, value_name = "H", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
        height: u32,
        #[command(flatten)]
        common: GenerateCommon,
    },
}

/// What every kind takes.
#[derive(Args, Clone, Debug)]
pub struct GenerateCommon {
    /// The seed of the random numbers
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
    /// A weight for each edge, drawn evenly from these whole numbers
    #[arg(long, value_name = "LO..HI", allow_hyphen_values = true, value_parser = parse::interval::<u32>)]
    pub weights: Option<RangeInclusive<u32>>,
    /// The file: .txt, .el, .wel (text), .sg or .wsg (GAP); `-` for standard output, as text
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
}
