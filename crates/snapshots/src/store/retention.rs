//! Retention: the rule by which a database drops snapshots.
//!
//! A rule by days follows the clock. If the clock jumps forward, or the database was not written for a long time, the
//! rule would drop most of the history at once. So a rule by days drops at most half of the snapshots by itself, and
//! only a caller that insists drops more.

use super::Store;
use crate::chain::Chain;
use crate::options::Retention;
use crate::{Error, Result};

/// Whether the caller accepts that a rule by days drops more than half of the snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetainScope {
    Half,
    Any,
}

impl Store {
    /// The rule by which the database drops snapshots.
    pub fn retention(&self) -> Retention {
        self.state().manifest.retention
    }

    /// Sets the retention rule, which then applies to each new snapshot. Drops the snapshots that it does not keep, and
    /// returns their numbers. Snapshots with a [lease](Self::lease) stay until a later snapshot finds them without one.
    ///
    /// Cost: as [`drop_snapshots`](Self::drop_snapshots).
    ///
    /// # Errors
    /// The rule keeps no snapshot; [`Error::DropsMost`]: a rule by days would drop more than half of the snapshots; the
    /// file of leases cannot be used; as [`append`](Self::append).
    pub fn retain(&self, retention: Retention) -> Result<Vec<u32>> {
        self.freeing(0, || self.apply_retention(retention, RetainScope::Half))
    }

    /// As [`retain`](Self::retain), also if a rule by days drops more than half of the snapshots.
    ///
    /// # Errors
    /// As [`retain`](Self::retain), but for [`Error::DropsMost`].
    pub fn retain_by_force(&self, retention: Retention) -> Result<Vec<u32>> {
        self.freeing(0, || self.apply_retention(retention, RetainScope::Any))
    }

    /// The snapshots that the rule would drop now, and keeps because they are more than half of all: see
    /// [`retain_by_force`](Self::retain_by_force).
    pub fn held_back_snapshots(&self) -> Vec<u32> {
        let manifest = &self.state().manifest;
        let given_up = manifest.chain.given_up(manifest.retention, self.time());
        match require_half(&manifest.chain, manifest.retention, &given_up, self.time()) {
            Ok(()) => Vec::new(),
            Err(_) => given_up,
        }
    }

    fn apply_retention(&self, retention: Retention, scope: RetainScope) -> Result<Vec<u32>> {
        if retention == Retention::Last(0) {
            return Err(Error::Input("a database keeps at least its last snapshot".into()));
        }
        let _span = tracing::info_span!("retention", ?retention).entered();
        let mut draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        let now = self.time();
        let given_up = manifest.chain.given_up(retention, now);
        if scope == RetainScope::Half {
            require_half(&manifest.chain, retention, &given_up, now)?;
        }
        // Held until the manifest is published, so that no lease is taken meanwhile.
        let unleased = self.unleased(&given_up)?;
        let given_up = &unleased.numbers;
        manifest.retention = retention;
        // Without a change, no manifest is written.
        if manifest == draft.state.manifest && given_up.is_empty() {
            return Ok(Vec::new());
        }
        let plan = manifest.chain.without(given_up);
        manifest.chain = draft.carry_out(plan, None)?;
        draft.publish(manifest)?;
        tracing::info!(?retention, dropped = ?given_up, "set the retention of snapshots");
        Ok(unleased.numbers)
    }
}

/// The snapshots that the rule drops when a new snapshot is made. If they are more than half of all by a rule by days,
/// none is dropped, and an event says so.
pub(super) fn given_up_at_append(chain: &Chain, retention: Retention, now: u64) -> Vec<u32> {
    let given_up = chain.given_up(retention, now);
    match require_half(chain, retention, &given_up, now) {
        Ok(()) => given_up,
        Err(error) => {
            tracing::warn!(%error, "retention drops no snapshot");
            Vec::new()
        }
    }
}

/// Refuses to drop more than half of the snapshots by a rule by days.
fn require_half(chain: &Chain, retention: Retention, given_up: &[u32], now: u64) -> Result<()> {
    let num_snapshots = chain.kept().count();
    // The other rules do not depend on the clock.
    let Retention::Days(days) = retention else { return Ok(()) };
    if given_up.len() * 2 <= num_snapshots {
        return Ok(());
    }
    let times = chain.kept().filter(|version| given_up.contains(&version.number)).map(|version| version.unix_time);
    let (oldest, youngest) =
        times.fold((u64::MAX, 0), |(oldest, youngest), time| (time.min(oldest), time.max(youngest)));
    Err(Error::DropsMost { days, num_dropped: given_up.len(), num_snapshots, oldest, youngest, now })
}
