//! The speed of the disk: bytes a second of a sequential read of a file that bypasses the page cache.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::harness::seconds;

/// The bytes of one read.
const BLOCK_BYTES: usize = 1 << 20;
/// The number of concurrent reads.
const DEPTH: usize = 8;
/// The alignment of memory and file offsets for direct reads.
const ALIGNMENT: usize = 4096;
/// `O_DIRECT` of Linux on x86-64 and most other architectures.
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64")))]
const DIRECT: i32 = 0o40000;
#[cfg(any(target_arch = "aarch64", target_arch = "arm", target_arch = "powerpc64"))]
const DIRECT: i32 = 0o200_000;

/// The tool that measures the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// The program `fio`.
    Fio,
    /// Our own reads.
    Own,
}

impl Probe {
    /// Fio if it is installed, else our own reads.
    pub(super) fn new() -> Self {
        let found = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
        if found { Self::Fio } else { Self::Own }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Own => "direct reads of 1 MB, 8 at once (fio is not installed)",
        }
    }

    /// The bytes a second of a read of the whole file.
    pub(super) fn rate(self, path: &Path) -> Result<f64> {
        match self {
            Self::Fio => fio(path),
            Self::Own => own(path),
        }
    }
}

/// Measures with fio threads that read a part each. Every fio has the engine for threads.
fn fio(path: &Path) -> Result<f64> {
    let len = std::fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?.len();
    let part = len / DEPTH as u64 / ALIGNMENT as u64 * ALIGNMENT as u64;
    let output = Command::new("fio")
        .args(["--name=read", "--rw=read", "--bs=1M", "--direct=1", "--readonly"])
        .args(["--ioengine=psync", "--thread", "--group_reporting", "--output-format=json"])
        .arg(format!("--numjobs={DEPTH}"))
        .args([format!("--size={part}"), format!("--offset_increment={part}")])
        .arg(format!("--filename={}", path.display()))
        .output()?;
    rate_in(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// The rate in a report of fio. Notes may precede the report.
fn rate_in(report: &[u8]) -> Result<f64> {
    let start = report.iter().position(|&byte| byte == b'{').context("fio: no report")?;
    let report: serde_json::Value = serde_json::from_slice(&report[start..]).context("fio: cannot read its report")?;
    match report["jobs"][0]["read"]["bw_bytes"].as_f64() {
        Some(rate) if rate > 0.0 => Ok(rate),
        _ => bail!("fio: no rate of reading in its report"),
    }
}

/// Opens a file for direct reads. If the file system refuses them, opens it for cached reads and evicts it.
pub(super) fn open_direct(path: &Path) -> Result<File> {
    match OpenOptions::new().read(true).custom_flags(DIRECT).open(path) {
        Ok(file) => Ok(file),
        Err(_) => {
            anden_testkit::evict(path)?;
            File::open(path).with_context(|| format!("{}: cannot read", path.display()))
        }
    }
}

/// Memory that is aligned for direct reads.
pub(super) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    num_bytes: usize,
}

pub(super) fn aligned(num_bytes: usize) -> Aligned {
    let memory = vec![0; num_bytes + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    Aligned { memory, start, num_bytes }
}

impl Aligned {
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.num_bytes]
    }
}

fn own(path: &Path) -> Result<f64> {
    let named = || format!("{}: cannot read", path.display());
    let file = open_direct(path)?;
    let len = file.metadata().with_context(named)?.len();
    let next = AtomicU64::new(0);
    let (time, results) = seconds(|| {
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..DEPTH).map(|_| scope.spawn(|| read_blocks(&file, len, &next))).collect();
            readers.into_iter().map(|reader| reader.join().unwrap_or(Ok(0))).collect::<Vec<_>>()
        })
    });
    let num_read: u64 = results.into_iter().collect::<std::io::Result<Vec<_>>>().with_context(named)?.iter().sum();
    if num_read < len {
        bail!("{}: {num_read} of {len} bytes read", path.display());
    }
    Ok(len as f64 / time)
}

fn read_blocks(file: &File, len: u64, next: &AtomicU64) -> std::io::Result<u64> {
    let mut block = aligned(BLOCK_BYTES);
    let mut num_read = 0;
    loop {
        let offset = next.fetch_add(BLOCK_BYTES as u64, Ordering::Relaxed);
        if offset >= len {
            return Ok(num_read);
        }
        num_read += file.read_at(block.bytes(), offset)? as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 3 * BLOCK_BYTES + 77]).unwrap();
        assert!(own(&path).unwrap() > 0.0);
        assert!(own(&dir.path().join("none")).is_err());
    }

    #[test]
    fn fio_notes_before_report_are_skipped() {
        let report = r#"note: the queue depth will be capped
{"fio version": "fio-3.42", "jobs": [{"read": {"bw_bytes": 1500000}}]}"#;
        assert_eq!(rate_in(report.as_bytes()).unwrap(), 1.5e6);
        let broken = ["fio: engine not loadable", "{", r#"{"jobs": [{"read": {"bw_bytes": 0}}]}"#, "{}"];
        assert!(broken.iter().all(|report| rate_in(report.as_bytes()).is_err()));
    }
}
