//! How degrees are spread: for `anden info`, and in full for `anden query DB degrees`.

use anden::DegreeStatistics;
use serde_json::{Map, Value, json};

use crate::console::{Console, Table, count, real};
use crate::failure::Result;

/// The length of the longest bar of the plot.
const BAR_WIDTH: f64 = 40.0;

/// A summary as JSON: percentiles, and a histogram by powers of two.
pub fn degrees_json(degrees: &DegreeStatistics) -> Value {
    let percentiles: Map<String, Value> =
        degrees.percentiles.iter().map(|&(percent, degree)| (percent.to_string(), json!(degree))).collect();
    let bins: Vec<Value> =
        degrees.bins.iter().map(|bin| json!([bin.degrees.start(), bin.degrees.end(), bin.num_vertices])).collect();
    json!({ "max": degrees.max, "mean": degrees.mean, "percentiles": percentiles, "histogram": bins })
}

/// The same with the whole distribution: each degree that there is, and how many vertices have it.
pub fn distribution_json(degrees: &DegreeStatistics) -> Value {
    let mut object = degrees_json(degrees);
    object["counts"] = degrees.counts.iter().map(|&(degree, vertices)| json!([degree, vertices])).collect();
    object
}

/// A bar for each power of two; its length follows the logarithm of the count.
pub fn plot(console: &mut Console, name: &str, degrees: &DegreeStatistics) -> Result {
    let percentiles: Vec<String> =
        degrees.percentiles.iter().map(|(percent, degree)| format!("{percent} %: {}", count(*degree))).collect();
    let (max, mean) = (count(degrees.max), real(degrees.mean));
    console.line(format_args!("\n{name}: max {max}, mean {mean}, percentiles {}", percentiles.join(", ")))?;
    let length = |vertices: u64| (vertices as f64 + 1.0).ln();
    let longest = degrees.bins.iter().map(|bin| length(bin.num_vertices)).fold(1.0, f64::max);
    let mut table = Table::with_header(&["", "vertices", "(logarithmic)"]);
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
