//! The counters and gauges of a database, as dicts.

use std::collections::HashMap;

use anden::stats::{CommitStats, Histogram, LiveStats, Metrics, Stats, WorkStats};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Database;
use crate::error::Result;

/// Nanoseconds in a second.
const NANOS: f64 = 1e9;

#[pymethods]
impl Database {
    /// The counters and gauges of this handle, as a dict of numbers, texts and dicts.
    ///
    /// Counters begin when the database is opened. It costs some microseconds and reads no file.
    ///
    /// Returns
    /// -------
    /// dict
    ///     ``commits`` with latencies and group sizes, ``memtable``, ``wal``, ``checkpoints``, ``merges``, ``background``,
    ///     ``views``, ``cache``, ``prefetch``, and numbers of the whole database. Times are in seconds. A histogram has
    ///     ``buckets``, from each upper bound to the number of values up to it, ``sum`` and ``count``.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> _ = db.append([1], [2])
    /// >>> db.metrics()["snapshots"]
    /// 2
    fn metrics<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let metrics = self.opened.run(py, |database| Ok(database.metrics()))?;
        Ok(metrics_dict(py, &metrics)?)
    }

    /// The metrics in the text format of Prometheus, version 0.0.4.
    ///
    /// Parameters
    /// ----------
    /// labels : dict of str to str, optional
    ///     Labels of every metric, for example the name of the database.
    ///
    /// Examples
    /// --------
    /// >>> import anden
    /// >>> db = anden.create(None)
    /// >>> "anden_snapshots{database=\"social\"} 1" in db.prometheus({"database": "social"})
    /// True
    #[pyo3(signature = (labels=None))]
    fn prometheus(&self, py: Python<'_>, labels: Option<HashMap<String, String>>) -> Result<String> {
        let mut labels: Vec<_> = labels.unwrap_or_default().into_iter().collect();
        // A dict of Rust has no order, and equal calls give equal texts.
        labels.sort_unstable();
        self.opened.run(py, move |database| {
            let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
            Ok(database.metrics().to_prometheus(&labels))
        })
    }

    /// Sizes on disk, and what `metrics` returns, as a dict of dicts.
    fn stats<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let stats = self.opened.run(py, |database| Ok(database.stats()))?;
        let dict = metrics_dict(py, &stats.metrics)?;
        dict.set_item("storage", storage(py, &stats)?)?;
        Ok(dict)
    }
}

fn metrics_dict<'py>(py: Python<'py>, metrics: &Metrics) -> PyResult<Bound<'py, PyDict>> {
    let (dict, live) = (PyDict::new(py), &metrics.live);
    dict.set_item("epoch", metrics.epoch)?;
    dict.set_item("snapshots", metrics.snapshots)?;
    dict.set_item("newest_snapshot", metrics.newest_snapshot)?;
    dict.set_item("snapshot_bytes", metrics.snapshot_bytes)?;
    dict.set_item("read_only", metrics.is_read_only)?;
    dict.set_item("write_error", metrics.write_error.as_deref())?;
    dict.set_item("commits", commits(py, &metrics.commits)?)?;
    dict.set_item("memtable", memtable(py, live)?)?;
    dict.set_item("wal", wal(py, live)?)?;
    dict.set_item("checkpoints", work(py, &live.checkpoints)?)?;
    dict.set_item("merges", work(py, &live.merges)?)?;
    dict.set_item("background", background(py, live)?)?;
    let views = PyDict::new(py);
    views.set_item("open", metrics.views.open)?;
    views.set_item("oldest_seconds", metrics.views.oldest_age.as_secs_f64())?;
    dict.set_item("views", views)?;
    let cache = PyDict::new(py);
    cache.set_item("bytes", metrics.cache.bytes)?;
    cache.set_item("entries", metrics.cache.entries)?;
    cache.set_item("limit_bytes", metrics.cache.limit_bytes)?;
    dict.set_item("cache", cache)?;
    let (prefetch, total) = (PyDict::new(py), metrics.prefetch.total());
    prefetch.set_item("requested", total.requested)?;
    prefetch.set_item("issued", total.issued)?;
    prefetch.set_item("bytes", total.bytes)?;
    dict.set_item("prefetch", prefetch)?;
    Ok(dict)
}

fn storage<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (dict, storage) = (PyDict::new(py), &stats.storage);
    dict.set_item("bytes", storage.bytes)?;
    dict.set_item("bytes_per_edge", storage.bytes_per_edge)?;
    dict.set_item("bases", storage.bases)?;
    dict.set_item("deltas", storage.deltas)?;
    dict.set_item("bytes_loaded", storage.bytes_loaded)?;
    dict.set_item("bytes_written", storage.bytes_written)?;
    let files = PyDict::new(py);
    for (name, bytes) in &storage.files {
        files.set_item(name, bytes)?;
    }
    dict.set_item("files", files)?;
    Ok(dict)
}

fn memtable<'py>(py: Python<'py>, live: &LiveStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", live.delta_bytes)?;
    dict.set_item("added", live.added)?;
    dict.set_item("removed", live.removed)?;
    Ok(dict)
}

fn wal<'py>(py: Python<'py>, live: &LiveStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes", live.log_bytes)?;
    dict.set_item("retained_bytes", live.retained_log_bytes)?;
    dict.set_item("groups", live.logged_commits)?;
    dict.set_item("written_bytes", live.log_written_bytes)?;
    dict.set_item("syncs", live.log_syncs)?;
    dict.set_item("sync_seconds", live.log_sync_time.as_secs_f64())?;
    dict.set_item("error", live.log_error.as_deref())?;
    Ok(dict)
}

fn background<'py>(py: Python<'py>, live: &LiveStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("checkpoints", live.automatic_checkpoints)?;
    dict.set_item("merges", live.automatic_merges)?;
    dict.set_item("write_rate", live.background_write_rate)?;
    dict.set_item("written_bytes", live.background_bytes)?;
    dict.set_item("pauses", live.background_pauses)?;
    dict.set_item("error", live.background_error.as_deref())?;
    Ok(dict)
}

/// The counters of checkpoints or merges.
fn work<'py>(py: Python<'py>, stats: &WorkStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("succeeded", stats.succeeded)?;
    dict.set_item("failed", stats.failed)?;
    dict.set_item("bytes", stats.bytes)?;
    dict.set_item("seconds", stats.time.as_secs_f64())?;
    let running = match &stats.running {
        None => None,
        Some(progress) => {
            let running = PyDict::new(py);
            running.set_item("seconds", progress.age.as_secs_f64())?;
            running.set_item("bytes", progress.bytes)?;
            running.set_item("share", progress.share())?;
            Some(running)
        }
    };
    dict.set_item("running", running)?;
    Ok(dict)
}

fn commits<'py>(py: Python<'py>, commits: &CommitStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("commits", commits.commits)?;
    dict.set_item("conflicts", commits.conflicts)?;
    dict.set_item("invalid", commits.invalid)?;
    dict.set_item("failures", commits.failures)?;
    dict.set_item("retries", commits.retries)?;
    dict.set_item("admitted_alone", commits.admitted_alone)?;
    dict.set_item("groups", commits.groups)?;
    dict.set_item("largest_group", commits.largest_group)?;
    dict.set_item("group_sizes", histogram(py, &commits.group_sizes, 1.0)?)?;
    dict.set_item("latency_ns_p50", commits.latency_ns_p50)?;
    dict.set_item("latency_ns_p99", commits.latency_ns_p99)?;
    dict.set_item("latency_ns_p999", commits.latency_ns_p999)?;
    let latencies = PyDict::new(py);
    for (durability, times) in [
        ("sync", &commits.latency_ns.sync),
        ("batched", &commits.latency_ns.batched),
        ("none", &commits.latency_ns.none),
    ] {
        latencies.set_item(durability, histogram(py, times, NANOS)?)?;
    }
    dict.set_item("latency_seconds", latencies)?;
    Ok(dict)
}

/// A histogram whose values are divided by `scale`.
fn histogram<'py>(py: Python<'py>, histogram: &Histogram, scale: f64) -> PyResult<Bound<'py, PyDict>> {
    let (dict, buckets) = (PyDict::new(py), PyDict::new(py));
    let bounds = histogram.bounds.iter().map(|&bound| bound as f64 / scale);
    let mut num_values = 0;
    for (bound, count) in bounds.chain([f64::INFINITY]).zip(&histogram.counts) {
        num_values += count;
        buckets.set_item(bound, num_values)?;
    }
    dict.set_item("buckets", buckets)?;
    dict.set_item("sum", histogram.sum as f64 / scale)?;
    dict.set_item("count", num_values)?;
    Ok(dict)
}
