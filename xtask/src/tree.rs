//! The text files of a checkout, read once: files that git tracks, and new files that git does not ignore.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// All files of a checkout. Paths are relative to its root.
#[derive(Debug, Default)]
pub struct Tree {
    /// `None` for data, such as archives and golden files.
    texts: BTreeMap<PathBuf, Option<String>>,
}

impl Tree {
    /// Reads the checkout at `root`. New files count before they are committed.
    pub fn read(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git")?;
        if !output.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let list = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
        let mut texts = BTreeMap::new();
        for path in list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from) {
            // The index still lists a file that was deleted but not committed.
            let Ok(bytes) = fs::read(root.join(&path)) else { continue };
            texts.insert(path, text_of(bytes));
        }
        Ok(Self { texts })
    }

    /// The text files, ordered by path.
    pub fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.texts.iter().filter_map(|(path, text)| Some((path.as_path(), text.as_deref()?)))
    }

    /// The text of one file, if the checkout has it and it is text.
    pub fn text(&self, path: &Path) -> Option<&str> {
        self.texts.get(path)?.as_deref()
    }

    /// Whether the checkout has a file or a folder at `path`.
    pub fn has(&self, path: &Path) -> bool {
        let next = self.texts.range(path.to_path_buf()..).next();
        next.is_some_and(|(found, _)| found.starts_with(path))
    }

    /// A checkout in memory.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self { texts: files.iter().map(|(path, text)| (PathBuf::from(path), Some((*text).to_owned()))).collect() }
    }
}

/// Whether the path ends with one of the extensions.
pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().and_then(|extension| extension.to_str()).is_some_and(|found| extensions.contains(&found))
}

fn text_of(bytes: Vec<u8>) -> Option<String> {
    let is_binary = bytes.iter().take(8192).any(|&byte| byte == 0);
    if is_binary { None } else { String::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_data_has_no_text() {
        assert_eq!(text_of(b"a\0b".to_vec()), None);
        assert_eq!(text_of(b"\xfd7zXZ".to_vec()), None);
        assert_eq!(text_of("é".into()).as_deref(), Some("é"));
    }

    #[test]
    fn folders_of_files_exist() {
        let tree = Tree::of(&[("docs/a/b.md", ""), ("docs-old.md", "")]);
        for path in ["docs", "docs/a", "docs/a/b.md", "docs-old.md"] {
            assert!(tree.has(Path::new(path)), "{path}");
        }
        for path in ["doc", "docs/a/b", "docs/a/c.md", "z"] {
            assert!(!tree.has(Path::new(path)), "{path}");
        }
    }
}
