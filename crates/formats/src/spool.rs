//! Copies of inputs that lack random access.
//!
//! Serialized graphs and Parquet files need random access. A pipe or a compressed file is first copied to a scratch
//! file in the system's directory for temporary files (`TMPDIR`). The scratch file loses its name once it is open, so
//! it vanishes with the process even after a crash.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;

/// Bytes per copy step.
const COPY_BYTES: usize = 1 << 20;

/// Copies all of `reader` to a file without a name. Messages call the input `path`.
///
/// # Errors
/// The input cannot be read, or the disk is full.
pub(crate) fn spooled(path: &Path, mut reader: impl Read) -> Result<File> {
    let mut file = scratch_file()?;
    let scratch = std::env::temp_dir();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let num_bytes = match reader.read(&mut buffer) {
            Ok(0) => return Ok(file),
            Ok(num_bytes) => num_bytes,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(anden_base::Error::io("read", path, e).into()),
        };
        file.write_all(&buffer[..num_bytes])
            .map_err(|e| anden_base::Error::io("write a scratch file in", &scratch, e))?;
    }
}

fn scratch_file() -> Result<File> {
    static NUM_FILES: AtomicU64 = AtomicU64::new(0);
    let folder = std::env::temp_dir();
    loop {
        let number = NUM_FILES.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("anden-{}-{number}.spool", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                // Removed while it is open, so that no crash leaves it behind.
                std::fs::remove_file(&path).map_err(|e| anden_base::Error::io("remove", &path, e))?;
                return Ok(file);
            }
            // Left by an earlier process with this process id.
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(anden_base::Error::io("create a scratch file in", &folder, e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_copy_has_all_bytes_and_no_name() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let file = spooled("-".as_ref(), &bytes[..]).unwrap();
        assert_eq!(file.metadata().unwrap().len(), bytes.len() as u64);
        let mut back = [0; 100];
        file.read_exact_at(&mut back, 2_000_000).unwrap();
        assert_eq!(back, bytes[2_000_000..2_000_100]);
        let own = format!("anden-{}-", std::process::id());
        let names = std::fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_string_lossy().starts_with(&own)).count(), 0);
    }
}
