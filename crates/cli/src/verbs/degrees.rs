//! Degree distributions: short for `anden info`, complete for `anden query DB degrees`.

use anden::stats::DegreeStatistics;
use serde_json::{Map, Value, json};

use crate::console::{Console, ConsoleTable, count, real};
use crate::failure::Result;

/// Length of the longest bar in the plot.
const BAR_WIDTH: f64 = 40.0;

/// The summary as JSON: percentiles, and a histogram by powers of two.
pub fn degrees_json(degrees: &DegreeStatistics) -> Value {
    let percentiles: Map<String, Value> =
        degrees.percentiles.iter().map(|&(percent, degree)| (percent.to_string(), json!(degree))).collect();
    let bins: Vec<Value> =
        degrees.bins.iter().map(|bin| json!([bin.degrees.start(), bin.degrees.end(), bin.num_vertices])).collect();
    json!({ "max": degrees.max, "mean": degrees.mean, "percentiles": percentiles, "histogram": bins })
}

/// Like [`degrees_json`], with the exact distribution: each degree and its number of vertices.
pub fn distribution_json(degrees: &DegreeStatistics) -> Value {
    let mut object = degrees_json(degrees);
    object["counts"] = degrees.counts.iter().map(|&(degree, vertices)| json!([degree, vertices])).collect();
    object
}

/// Plots a bar for each power of two. Its length is logarithmic in the count.
pub fn plot(console: &mut Console, name: &str, degrees: &DegreeStatistics) -> Result {
    let percentiles: Vec<String> =
        degrees.percentiles.iter().map(|(percent, degree)| format!("{percent} %: {}", count(*degree))).collect();
    let (max, mean) = (count(degrees.max), real(degrees.mean));
    console.line(format_args!("{name}: max {max}, mean {mean}, percentiles {}", percentiles.join(", ")))?;
    // Logarithmic, because few vertices with high degrees would have no visible bar.
    // One more than the count, because the logarithm of one is zero, and one vertex deserves a bar.
    let length = |vertices: u64| (vertices as f64 + 1.0).ln();
    let longest = degrees.bins.iter().map(|bin| length(bin.num_vertices)).fold(1.0, f64::max);
    let mut table = ConsoleTable::with_header(&["", "vertices", "(logarithmic)"]);
    for bin in &degrees.bins {
        let (first, last) = (*bin.degrees.start(), *bin.degrees.end());
        let range = if first == last {
            format!("  {}", count(first))
        } else {
            format!("  {} to {}", count(first), count(last))
        };
        let bar = "#".repeat((length(bin.num_vertices) / longest * BAR_WIDTH).round() as usize);
        table.row([range, count(bin.num_vertices), bar]);
    }
    console.table(&table)
}
