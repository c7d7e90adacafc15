//! Durabilities: which crashes a commit survives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The moment at which a commit is answered, and thus the crashes that it survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The commit is answered once it is on the disk. It survives a power cut.
    #[default]
    Sync,
    /// The commit is answered once it is in the WAL's file, which is synced at most this time later. It survives a
    /// killed process. A power cut loses at most the commits of this time and of two syncs.
    Batched(Duration),
    /// The commit is answered once it is in memory, and written soon after. A crash loses at most the youngest commits.
    None,
}

impl Durability {
    /// The usual time of [`Batched`](Self::Batched).
    pub const BATCH_TIME: Duration = Duration::from_millis(5);

    /// [`Batched`](Self::Batched) with the usual time.
    pub fn batched() -> Self {
        Self::Batched(Self::BATCH_TIME)
    }

    /// The stronger of two durabilities.
    #[must_use]
    pub fn strongest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Sync, _) | (_, Self::Sync) => Self::Sync,
            (Self::Batched(first), Self::Batched(second)) => Self::Batched(first.min(second)),
            (Self::Batched(time), Self::None) | (Self::None, Self::Batched(time)) => Self::Batched(time),
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// A durability that threads read and set concurrently.
#[derive(Debug)]
pub(crate) struct SharedDurability(AtomicU64);

// The two ends of the range of nanoseconds stand for the durabilities without a time.
const SYNC: u64 = 0;
const NONE: u64 = u64::MAX;

impl Default for SharedDurability {
    fn default() -> Self {
        Self(AtomicU64::new(SYNC))
    }
}

impl SharedDurability {
    pub(crate) fn set(&self, durability: Durability) {
        let number = match durability {
            Durability::Sync => SYNC,
            Durability::None => NONE,
            // A time at an end of the range would read as another durability.
            Durability::Batched(time) => u64::try_from(time.as_nanos()).unwrap_or(NONE).clamp(1, NONE - 1),
        };
        // Relaxed: the number guards no other memory.
        self.0.store(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Durability {
        match self.0.load(Ordering::Relaxed) {
            SYNC => Durability::Sync,
            NONE => Durability::None,
            nanos => Durability::Batched(Duration::from_nanos(nanos)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stronger_promise_counts() {
        let ms = |ms| Durability::Batched(Duration::from_millis(ms));
        assert_eq!(Durability::None.strongest(Durability::None), Durability::None);
        assert_eq!(Durability::None.strongest(ms(3)), ms(3));
        assert_eq!(ms(7).strongest(ms(3)), ms(3));
        assert_eq!(ms(3).strongest(Durability::Sync), Durability::Sync);
        let shared = SharedDurability::default();
        assert_eq!(shared.get(), Durability::Sync);
        for durability in [Durability::None, ms(4), Durability::Sync] {
            shared.set(durability);
            assert_eq!(shared.get(), durability);
        }
        shared.set(ms(0));
        assert_eq!(shared.get(), Durability::Batched(Duration::from_nanos(1)));
    }
}
