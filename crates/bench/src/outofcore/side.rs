//! The sides: plain mapped files, with the advisor, and with one who knows what will be asked.
//!
//! With an advisor, some kernels take another way than in memory. What is read ahead and which way is taken are told
//! apart by plain maps that are read in the advisor's way.

use anyhow::{Result, bail};
use engine::{Advisor, Prefetch, View};
use kernels::Medium;

/// Who reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The advisor, as everybody has it.
    On,
    /// Nobody: what the system does with a mapped file by itself.
    Off,
    /// Nobody, but kernels take the way that they take with an advisor.
    OffSameWay,
    /// The advisor, told what queries will read before they are asked.
    Oracle,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "advisor on",
            Self::Off => "advisor off",
            Self::OffSameWay => "advisor off, same way",
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

    /// The way that kernels take.
    pub(super) fn medium(self) -> Medium {
        if self == Self::OffSameWay { Medium::Disk } else { Medium::Auto }
    }

    /// The view, with whoever reads ahead.
    pub(super) fn attach(self, view: &View) -> (View, Advisor) {
        let advisor = Advisor::default();
        let is_off = matches!(self, Self::Off | Self::OffSameWay);
        let view = advisor.attach(view, if is_off { Prefetch::Off } else { Prefetch::Auto });
        (view, advisor)
    }
}

/// What each side gives, in the order of `sides`: they are measured in turn, and each round begins with the next of
/// them.
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
