//! Settings of users: the policy of prefetching, and how files are read.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use anden_base::storage::{CalledStorage, DiskStorage, Storage};

/// The policy of prefetching, for files larger than memory.
///
/// No policy changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// Follows announcements and scans; off while the lists fit in memory.
    #[default]
    Auto,
    /// Only the system's own read-ahead.
    Off,
    /// The lists of the neighbors of each visited vertex: longest lists first, long lists cut.
    Neighborhood,
    /// A window ahead of a scan in storage order; passed bytes are released.
    Sequential,
    /// Exactly the lists that a kernel or a query announces.
    Frontier,
}

/// How files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Io {
    /// Memory maps, the fastest way. A file that fails or shrinks while it is mapped ends the process.
    #[default]
    Mmap,
    /// Read calls, into memory, when a database is opened. A failed call gives an error with file and offset. Files
    /// larger than the free memory are refused.
    Pread,
}

impl Prefetch {
    /// All policies.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Off, Self::Neighborhood, Self::Sequential, Self::Frontier];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Neighborhood => "neighbourhood",
            Self::Sequential => "sequential",
            Self::Frontier => "frontier",
        }
    }
}

impl Io {
    /// The storage that reads and writes in this way.
    pub(crate) fn storage(self) -> Arc<dyn Storage> {
        match self {
            Self::Mmap => Arc::new(DiskStorage),
            Self::Pread => Arc::new(CalledStorage),
        }
    }

    /// All ways.
    pub const ALL: [Self; 2] = [Self::Mmap, Self::Pread];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Pread => "pread",
        }
    }
}

/// The error lists the valid names.
impl FromStr for Prefetch {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        // Both spellings are accepted; `name` and the messages have the paper's.
        let name = if name == "neighborhood" { Self::Neighborhood.name() } else { name };
        named(name, &Self::ALL, Self::name, "a policy of prefetching")
    }
}

/// The error lists the valid names.
impl FromStr for Io {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &Self::ALL, Self::name, "a way to read files")
    }
}

fn named<T: Copy>(name: &str, all: &[T], name_of: fn(T) -> &'static str, what: &str) -> Result<T, String> {
    let names = || all.iter().map(|&one| name_of(one)).collect::<Vec<_>>().join(", ");
    // The names stand in one place, so parser, help and display agree.
    let found = all.iter().copied().find(|&one| name_of(one) == name);
    found.ok_or_else(|| format!("{name} is not {what}: there are {}", names()))
}

impl fmt::Display for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        assert!(Prefetch::ALL.into_iter().all(|policy| policy.name().parse() == Ok(policy)));
        assert!(Io::ALL.into_iter().all(|io| io.name().parse() == Ok(io)));
        assert_eq!("neighborhood".parse(), Ok(Prefetch::Neighborhood));
        let error = "ahead".parse::<Prefetch>().unwrap_err();
        assert!(error.contains("ahead is not") && error.contains("auto, off, neighbourhood"), "{error}");
    }
}
