//! The metrics of a handle in the text format of Prometheus.

use std::time::Duration;

use super::exposition::{Exposition, MetricLabels, in_base_units};
use super::{CommitStats, LiveStats, Metrics, WorkStats};

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

impl Metrics {
    /// Returns these metrics in the text format of Prometheus, version 0.0.4
    /// (content type `text/plain; version=0.0.4`). Names begin with `anden_`; units are seconds and bytes.
    ///
    /// Every metric gets `labels`, for example the name of the database if a process has several. A handle that cannot
    /// write has no metrics of commits, memtable and WAL.
    ///
    /// ```
    /// use anden::{Database, Options};
    ///
    /// let db = Database::in_memory(Options::default())?;
    /// let text = db.metrics().to_prometheus(&[("database", "social")]);
    /// assert!(text.contains("\nanden_snapshots{database=\"social\"} 1\n"));
    /// # Ok::<(), anden::Error>(())
    /// ```
    #[must_use]
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut text = Exposition::new(labels);
        text.gauge("anden_epoch", "Epoch of the last commit that views show.", self.epoch);
        text.gauge("anden_snapshots", "Snapshots of the database.", self.snapshots);
        if let Some(newest) = self.newest_snapshot {
            text.gauge("anden_newest_snapshot", "Number of the newest snapshot.", newest);
        }
        text.gauge("anden_snapshot_bytes", "Bytes of the files of all snapshots.", self.snapshot_bytes);
        text.gauge("anden_views_open", "Open views and transactions.", self.views.open);
        let age = seconds(self.views.oldest_age);
        text.gauge("anden_oldest_view_age_seconds", "Age of the oldest open view; 0 without views.", age);
        text.gauge("anden_cache_bytes", "Bytes of cached parts and of what kernels prepared.", self.cache.bytes);
        text.gauge("anden_cache_entries", "Entries of the cache.", self.cache.entries);
        text.gauge("anden_cache_limit_bytes", "Bytes that the cache may take.", self.cache.limit_bytes);
        let bytes = self.prefetch.total().bytes;
        text.counter("anden_prefetched_bytes_total", "Bytes that the prefetcher asked the system to read.", bytes);
        if !self.is_read_only {
            add_commits(&mut text, &self.commits);
            add_live(&mut text, &self.live);
            let poisoned = u8::from(self.write_error.is_some());
            text.gauge("anden_poisoned", "1 if the handle writes nothing more until it is reopened.", poisoned);
        }
        text.into_text()
    }
}

fn add_commits(text: &mut Exposition, commits: &CommitStats) {
    text.counter("anden_commits_total", "Commits that succeeded.", commits.commits);
    let refused: [(MetricLabels<'_>, u64); 3] = [
        (&[("reason", "conflict")], commits.conflicts),
        (&[("reason", "invalid")], commits.invalid),
        (&[("reason", "failure")], commits.failures),
    ];
    text.counters("anden_commits_refused_total", "Commits that did not happen, by reason.", refused);
    text.counter("anden_commit_retries_total", "Retries of transactions after conflicts.", commits.retries);
    let help = "Transactions that ran alone after several conflicts.";
    text.counter("anden_exclusive_commits_total", help, commits.admitted_alone);
    let sizes = [(&[][..], &commits.group_sizes)];
    text.histograms("anden_commit_group_size", "Commits in one group.", 1, sizes);
    let latencies: [(MetricLabels<'_>, _); 3] = [
        (&[("durability", "sync")], &commits.latency_ns.sync),
        (&[("durability", "batched")], &commits.latency_ns.batched),
        (&[("durability", "none")], &commits.latency_ns.none),
    ];
    let help = "Time from request to answer of commits that succeeded. After the first 1024 commits one in 16 is timed \
                and counts for 16.";
    text.histograms("anden_commit_latency_seconds", help, NANOS, latencies);
}

fn add_live(text: &mut Exposition, live: &LiveStats) {
    text.gauge("anden_memtable_bytes", "Bytes of the changes that are in no snapshot.", live.delta_bytes);
    text.gauge("anden_memtable_edges_added", "Edges that the memtable adds.", live.added);
    text.gauge("anden_memtable_edges_removed", "Edges that the memtable removes.", live.removed);
    text.gauge("anden_wal_bytes", "Bytes of the WAL's files.", live.log_bytes);
    let help = "Of these, bytes of files that a snapshot covers, kept for the change feed.";
    text.gauge("anden_wal_retained_bytes", help, live.retained_log_bytes);
    text.counter("anden_wal_written_bytes_total", "Bytes of records written to the WAL.", live.log_written_bytes);
    text.counter("anden_wal_syncs_total", "Syncs of the WAL.", live.log_syncs);
    text.counter("anden_wal_sync_seconds_total", "Time that syncs of the WAL took.", seconds(live.log_sync_time));
    let failing = u8::from(live.log_error.is_some());
    text.gauge("anden_wal_failing", "1 if the last write or sync of the WAL failed.", failing);
    add_work(text, "checkpoint", &live.checkpoints);
    add_work(text, "merge", &live.merges);
    let automatic: [(MetricLabels<'_>, u64); 2] =
        [(&[("work", "checkpoint")], live.automatic_checkpoints), (&[("work", "merge")], live.automatic_merges)];
    text.counters("anden_background_runs_total", "Checkpoints and merges by the background.", automatic);
    let help = "Bytes that checkpoints and merges of the background wrote.";
    text.counter("anden_background_written_bytes_total", help, live.background_bytes);
    let help = "Pauses of the background to keep to its write rate.";
    text.counter("anden_background_pauses_total", help, live.background_pauses);
    let failing = u8::from(live.background_error.is_some());
    text.gauge("anden_background_failing", "1 if the last attempt of the background failed.", failing);
}

/// The metrics of checkpoints or merges.
fn add_work(text: &mut Exposition, work: &str, stats: &WorkStats) {
    let name = |end: &str| format!("anden_{work}{end}");
    let outcomes: [(MetricLabels<'_>, u64); 2] =
        [(&[("outcome", "success")], stats.succeeded), (&[("outcome", "failure")], stats.failed)];
    text.counters(&name("s_total"), &format!("Runs of a {work}, by outcome."), outcomes);
    text.counter(&name("_seconds_total"), &format!("Time of every {work} that ended."), seconds(stats.time));
    text.counter(&name("_written_bytes_total"), &format!("Bytes of files that every {work} wrote."), stats.bytes);
    text.gauge(&name("_running"), &format!("1 while a {work} runs."), u8::from(stats.running.is_some()));
    let running = stats.running.as_ref();
    let age = running.map_or(Duration::ZERO, |running| running.age);
    let help = format!("Age of the {work} that runs; 0 without one.");
    text.gauge(&name("_running_seconds"), &help, seconds(age));
    let help = format!("Bytes that the running {work} has written.");
    text.gauge(&name("_running_bytes"), &help, running.map_or(0, |running| running.bytes));
    let share = running.and_then(|running| running.share()).unwrap_or(0.0);
    let help = format!("Finished part of the running {work}, from 0 to 1; 0 if that is not known.");
    text.gauge(&name("_progress_ratio"), &help, share);
}

fn seconds(time: Duration) -> String {
    in_base_units(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), NANOS)
}
