//! What users choose: what is read ahead, and how files are read.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base::storage::{CalledStorage, DiskStorage, Storage};

/// What is read ahead of whoever reads lists, from files that are larger than memory.
///
/// No choice changes a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Prefetch {
    /// As the work asks for, and nothing while what it reads fits in memory.
    #[default]
    Auto,
    /// Nothing but what the system reads ahead by itself.
    Off,
    /// The lists of the neighbours of each vertex that is visited: high degrees first, long lists cut.
    Neighbourhood,
    /// What lies ahead of a scan in storage order; what it has passed is released.
    Sequential,
    /// The lists that an algorithm or a query says it will read next, exactly.
    Frontier,
}

/// How files are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Io {
    /// As memory: the fastest. A file that fails or shrinks while it is mapped ends the process.
    #[default]
    Mmap,
    /// By calls, to memory, when a database is opened: a call that fails gives an error that names the file and the
    /// offset. Files that are larger than the memory that is free are refused.
    Pread,
}

impl Prefetch {
    /// Every choice.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Off, Self::Neighbourhood, Self::Sequential, Self::Frontier];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Neighbourhood => "neighbourhood",
            Self::Sequential => "sequential",
            Self::Frontier => "frontier",
        }
    }
}

impl Io {
    /// What reads and writes in this way.
    pub(crate) fn storage(self) -> Arc<dyn Storage> {
        match self {
            Self::Mmap => Arc::new(DiskStorage),
            Self::Pread => Arc::new(CalledStorage),
        }
    }

    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Mmap, Self::Pread];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mmap => "mmap",
            Self::Pread => "pread",
        }
    }
}

/// The error lists the names that there are.
impl FromStr for Prefetch {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &Self::ALL, Self::name, "a policy of prefetching")
    }
}

/// The error lists the names that there are.
impl FromStr for Io {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name, &Self::ALL, Self::name, "a way to read files")
    }
}

fn named<T: Copy>(name: &str, all: &[T], name_of: fn(T) -> &'static str, what: &str) -> Result<T, String> {
    let names = || all.iter().map(|&one| name_of(one)).collect::<Vec<_>>().join(", ");
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
        let error = "ahead".parse::<Prefetch>().unwrap_err();
        assert!(error.contains("ahead is not") && error.contains("auto, off, neighbourhood"), "{error}");
    }
}
