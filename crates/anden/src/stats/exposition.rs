//! The text format of Prometheus, version 0.0.4.
//!
//! The format is small, and the crates for it bring registries of metrics that live elsewhere
//! (docs/decisions/0055).

use std::fmt::{Display, Write};

use super::Histogram;

/// Text under construction. Metrics of one name follow each other.
#[derive(Debug)]
pub(crate) struct Exposition {
    text: String,
    /// Labels of every metric, as `name="value"` with commas.
    labels: String,
}

/// Labels of one metric beside those of all.
pub(crate) type MetricLabels<'a> = &'a [(&'a str, &'a str)];

impl Exposition {
    /// Empty text whose metrics will all have these labels. A name with other characters than letters, digits and
    /// underscores gets underscores, because a scraper would refuse the whole text.
    pub(crate) fn new(labels: MetricLabels<'_>) -> Self {
        let mut joined = String::new();
        add_labels(&mut joined, labels);
        Self { text: String::new(), labels: joined }
    }

    /// Adds a counter: a number that only grows until the handle is closed. `name` ends in `_total`.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.metric(name, &[], value);
    }

    /// Adds a number that goes up and down.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.gauges(name, help, [(&[][..], value)]);
    }

    /// Adds several numbers of one name, which differ in their labels.
    pub(crate) fn gauges<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (MetricLabels<'a>, V)>,
    ) {
        self.all_of(name, "gauge", help, values);
    }

    /// Adds several counters of one name, which differ in their labels.
    pub(crate) fn counters<'a, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (MetricLabels<'a>, V)>,
    ) {
        self.all_of(name, "counter", help, values);
    }

    /// Adds histograms of one name. `scale`: units of a histogram's values in a base unit.
    pub(crate) fn histograms<'a>(
        &mut self,
        name: &str,
        help: &str,
        scale: u64,
        histograms: impl IntoIterator<Item = (MetricLabels<'a>, &'a Histogram)>,
    ) {
        self.family(name, "histogram", help);
        for (labels, histogram) in histograms {
            let mut num_values = 0;
            let bounds = histogram.bounds.iter().map(|&bound| in_base_units(bound, scale));
            for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&histogram.counts) {
                num_values += count;
                let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
                self.metric(&format!("{name}_bucket"), &labels, num_values);
            }
            self.metric(&format!("{name}_sum"), labels, in_base_units(histogram.sum, scale));
            self.metric(&format!("{name}_count"), labels, num_values);
        }
    }

    /// The text, which ends with a line break.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn all_of<'a, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (MetricLabels<'a>, V)>,
    ) {
        self.family(name, kind, help);
        values.into_iter().for_each(|(labels, value)| self.metric(name, labels, value));
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn metric(&mut self, name: &str, labels: MetricLabels<'_>, value: impl Display) {
        let mut joined = self.labels.clone();
        add_labels(&mut joined, labels);
        let _ = match joined.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{joined}}} {value}"),
        };
    }
}

fn add_labels(joined: &mut String, labels: MetricLabels<'_>) {
    for (name, value) in labels {
        let is_plain =
            |(place, c): (usize, char)| c == '_' || c.is_ascii_alphabetic() || c.is_ascii_digit() && place > 0;
        let name: String = name.chars().enumerate().map(|at| if is_plain(at) { at.1 } else { '_' }).collect();
        let comma = if joined.is_empty() { "" } else { "," };
        let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let _ = write!(joined, "{comma}{name}=\"{value}\"");
    }
}

/// A number of `scale`ths as a decimal number, without an exponent and without loss.
pub(crate) fn in_base_units(value: u64, scale: u64) -> String {
    let digits = scale.ilog10() as usize;
    debug_assert_eq!(scale, 10_u64.pow(digits as u32), "a power of ten");
    let text = format!("{}.{:0digits$}", value / scale, value % scale);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;
    use crate::{Database, Options, Update};

    /// The metrics of a text by name and labels, as a strict reader of the format takes them.
    fn read(text: &str) -> BTreeMap<String, f64> {
        let (mut metrics, mut families, mut family) = (BTreeMap::new(), HashSet::new(), (String::new(), String::new()));
        assert!(text.ends_with('\n'));
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(help.ends_with('.') && families.insert(name.to_owned()), "{line}");
                let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap().to_owned();
                assert!(["counter", "gauge", "histogram"].contains(&&*kind) && name.starts_with("anden_"), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
                family = (name.to_owned(), kind);
                continue;
            }
            let (metric, value) = line.rsplit_once(' ').unwrap();
            let name = metric.split('{').next().unwrap();
            let ending = name.strip_prefix(&*family.0).unwrap();
            assert!(if family.1 == "histogram" {
                ["_bucket", "_sum", "_count"].contains(&ending)
            } else {
                ending.is_empty()
            });
            assert!(metrics.insert(metric.to_owned(), value.parse().unwrap()).is_none(), "{line} stands twice");
        }
        metrics
    }

    #[test]
    fn text_of_a_writer_is_well_formed() {
        let db = Database::in_memory(Options::default()).unwrap();
        for key in 0..3 {
            db.apply(&[Update::add_edge(key, key + 1)]).unwrap();
        }
        db.checkpoint(None).unwrap();
        let _view = db.view().unwrap();
        let metrics = read(&db.metrics().to_prometheus(&[("database", "a \"b\"")]));
        let get = |name: &str| metrics[&format!("{name}{{database=\"a \\\"b\\\"\"}}")];
        assert_eq!((get("anden_commits_total"), get("anden_snapshots"), get("anden_views_open")), (3.0, 2.0, 1.0));
        let metrics = read(&db.metrics().to_prometheus(&[]));
        assert_eq!(metrics["anden_commit_latency_seconds_count{durability=\"sync\"}"], 3.0);
        assert_eq!(metrics["anden_commit_latency_seconds_bucket{durability=\"sync\",le=\"+Inf\"}"], 3.0);
        assert_eq!(metrics["anden_commit_latency_seconds_bucket{durability=\"none\",le=\"+Inf\"}"], 0.0);
        assert_eq!((metrics["anden_commit_group_size_sum"], metrics["anden_commit_group_size_count"]), (3.0, 3.0));
        assert_eq!(metrics["anden_checkpoints_total{outcome=\"success\"}"], 1.0);
        assert_eq!((metrics["anden_poisoned"], metrics["anden_memtable_bytes"]), (0.0, 0.0));
    }

    #[test]
    fn a_reader_has_no_metrics_of_commits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        Database::create(&path, Options::default()).unwrap().close().unwrap();
        let metrics = read(&Database::open_read_only(&path).unwrap().metrics().to_prometheus(&[]));
        assert!(metrics.contains_key("anden_snapshots") && !metrics.contains_key("anden_commits_total"));
    }

    #[test]
    fn labels_are_escaped_and_named_as_the_format_wants() {
        let mut text = Exposition::new(&[("1 a-b", "x\\\ny")]);
        text.gauge("anden_x", "Some number.", 1.5);
        assert_eq!(
            text.into_text(),
            "# HELP anden_x Some number.\n# TYPE anden_x gauge\nanden_x{__a_b=\"x\\\\\\ny\"} 1.5\n"
        );
    }

    proptest! {
        #[test]
        fn base_units_keep_every_digit(value: u64) {
            let text = in_base_units(value, 1_000_000_000);
            let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
            let nanos: u64 = format!("{part:0<9}").parse().unwrap();
            prop_assert_eq!(u128::from(whole.parse::<u64>().unwrap()) * 1_000_000_000 + u128::from(nanos), value.into());
            prop_assert_eq!(in_base_units(value, 1), value.to_string());
        }
    }
}
