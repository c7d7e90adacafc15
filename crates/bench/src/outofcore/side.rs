//! The sides: plain mapped files, the prefetcher, and an oracle that knows the coming queries.
//!
//! With a prefetcher, some kernels take another path than in memory. A third kind of side separates the two effects:
//! plain maps, with kernels on the prefetcher's path.

use anden_engine::{Prefetch, Prefetcher, SnapshotView};
use anden_kernels::Medium;
use anyhow::{Result, bail};

/// The source of read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The prefetcher in its default mode.
    On,
    /// None, only the system's handling of mapped files.
    Off,
    /// None, but kernels take the path for a prefetcher.
    OffSameWay,
    /// The prefetcher, with announcements of all coming reads.
    Oracle,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "prefetcher on",
            Self::Off => "prefetcher off",
            Self::OffSameWay => "prefetcher off, same way",
            Self::Oracle => "oracle",
        }
    }

    pub(super) fn named(name: &str) -> Result<Self> {
        match [Self::On, Self::Off, Self::OffSameWay, Self::Oracle].into_iter().find(|side| side.name() == name) {
            Some(side) => Ok(side),
            None => bail!("{name:?}: no such side"),
        }
    }

    pub(super) fn is_oracle(self) -> bool {
        self == Self::Oracle
    }

    /// The path of the kernels.
    pub(super) fn medium(self) -> Medium {
        if self == Self::OffSameWay { Medium::Disk } else { Medium::Auto }
    }

    /// Attaches the prefetcher of this side to the view.
    pub(super) fn attach(self, view: &SnapshotView) -> (SnapshotView, Prefetcher) {
        let prefetcher = Prefetcher::default();
        let is_off = matches!(self, Self::Off | Self::OffSameWay);
        let view = prefetcher.attach(view, if is_off { Prefetch::Off } else { Prefetch::Auto });
        (view, prefetcher)
    }
}

/// Measures the sides in turn, and returns the results in the order of `sides`. Each round begins with the next side.
pub(super) fn in_turn<S: Copy, T>(
    sides: &[S],
    round: usize,
    mut measure: impl FnMut(S) -> Result<T>,
) -> Result<Vec<T>> {
    let first = round % sides.len().max(1);
    let (late, early) = sides.split_at(first);
    let mut found = early.iter().chain(late).map(|&side| measure(side)).collect::<Result<Vec<T>>>()?;
    found.rotate_right(first);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_side() {
        let mut order = String::new();
        for round in 0..4 {
            let found = in_turn(&['a', 'b', 'c'], round, |side| {
                order.push(side);
                Ok(side)
            });
            assert_eq!(found.unwrap(), ['a', 'b', 'c']);
        }
        assert_eq!(order, "abcbcacababc");
        assert!(in_turn(&[], 1, |side: char| Ok(side)).unwrap().is_empty());
    }
}
