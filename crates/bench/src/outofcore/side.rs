//! The sides: plain mapped files, with the advisor, and with one who knows what will be asked.

use anyhow::{Result, bail};
use engine::{Advisor, Prefetch, View};

/// Who reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The advisor, as everybody has it.
    On,
    /// Nobody: what the system does with a mapped file by itself.
    Off,
    /// The advisor, told what queries will read before they are asked.
    Oracle,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "advisor on",
            Self::Off => "advisor off",
            Self::Oracle => "oracle",
        }
    }

    pub(super) fn named(name: &str) -> Result<Self> {
        match [Self::On, Self::Off, Self::Oracle].into_iter().find(|side| side.name() == name) {
            Some(side) => Ok(side),
            None => bail!("{name:?}: no such side"),
        }
    }

    pub(super) fn is_oracle(self) -> bool {
        self == Self::Oracle
    }

    /// The view, with whoever reads ahead.
    pub(super) fn attach(self, view: &View) -> (View, Advisor) {
        let advisor = Advisor::default();
        let view = advisor.attach(view, if self == Self::Off { Prefetch::Off } else { Prefetch::Auto });
        (view, advisor)
    }
}
