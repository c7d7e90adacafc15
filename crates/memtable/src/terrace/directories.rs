//! Directories for versions that outlive the next version.
//!
//! The table of newest pages holds two generations of each page. Until a page is replaced twice, a reader finds its
//! version's page there. Before a group replaces pages, the version before the newest gets directories if a reader
//! has it pinned. If no reader has, no reader can pin it later.

use anden_base::parallel::Pool;

use super::Terrace;
use crate::arena::{Limit, Newest};
use crate::builder::NodeBuilder;
use crate::directory::{Directory, NumberedDirectory};
use crate::limbo_list::Retired;
use crate::pins::EpochSlotId;
use crate::state::{AdjacencyTable, AdjacencyTableState, NUM_ADJACENCY_TABLES, VersionState};
use crate::{EntryValue, Result};

/// Minimum number of directories for one worker.
const GRAIN: usize = 512;

const ADJACENCY_TABLES: [AdjacencyTable; NUM_ADJACENCY_TABLES] =
    [AdjacencyTable::Out, AdjacencyTable::In, AdjacencyTable::OutRemoved, AdjacencyTable::InRemoved];

impl<W: EntryValue> Terrace<W> {
    /// Prepares the next version. Must run before its first change; further calls have no effect.
    ///
    /// # Errors
    /// The nodes fill the address range. Then only published versions stay readable.
    pub(super) fn begin(&mut self, pool: Option<&Pool>) -> Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        if let Some((epoch, epoch_slot)) = self.publisher.outlived() {
            self.complete_for(pool, epoch, epoch_slot)?;
        }
        // After the call above, which would take them: the newest version still needs these numbers.
        self.stale.iter_mut().for_each(|stale| stale.get_mut().publish());
        // The table does not identify pages of later groups, so each version gets directories.
        if self.next.epoch > Newest::LAST {
            self.complete_published(pool)?;
        }
        Ok(())
    }

    /// Completes the directories of the newest version.
    pub(super) fn complete_published(&mut self, pool: Option<&Pool>) -> Result<()> {
        let (epoch, epoch_slot) = self.publisher.current();
        self.complete_for(pool, epoch, epoch_slot)
    }

    /// Completes the directories of the newest version and of the next one.
    pub(super) fn complete(&mut self, pool: &Pool) -> Result<()> {
        self.complete_published(Some(pool))?;
        for adjacency_table in ADJACENCY_TABLES {
            let numbers = self.stale[adjacency_table as usize].get_mut().take_changed();
            let mut retired = self.renew(Some(pool), adjacency_table, (self.next.epoch, Limit::NONE), &numbers)?;
            self.workers[0].lock().retired.append(&mut retired);
        }
        Ok(())
    }

    /// Completes the directories of the version in `epoch_slot` from all published stale numbers.
    fn complete_for(&mut self, pool: Option<&Pool>, epoch: u64, epoch_slot: EpochSlotId) -> Result<()> {
        for adjacency_table in ADJACENCY_TABLES {
            // Complete since publication, or completed for an earlier group.
            if AdjacencyTableState::complete_root(
                self.publisher.epoch_slots().word(epoch_slot, VersionState::root_word(adjacency_table)),
            )
            .is_some()
            {
                continue;
            }
            let numbers = self.stale[adjacency_table as usize].get_mut().take_published();
            let mut retired = self.renew(pool, adjacency_table, (epoch, Limit::of(epoch)), &numbers)?;
            if !retired.is_empty() {
                // Version `epoch` never reaches the replaced directories: its readers get a root only once it is
                // complete.
                self.limbo_list.retire(epoch - 1, &mut retired);
            }
            let state =
                AdjacencyTableState { is_complete: true, ..self.next.adjacency_tables[adjacency_table as usize] };
            self.publisher.renew(epoch_slot, VersionState::root_word(adjacency_table), state.root_word());
        }
        // `collect` calls this without a publication, which would otherwise count these lines.
        for worker in &mut self.workers {
            worker.get_mut().slots.count_taken(&self.free_lists);
        }
        Ok(())
    }

    /// Rewrites the lowest directories with `numbers` (ascending) as nodes of `group`, with the pages of its version.
    /// Returns the nodes that they replace.
    fn renew(
        &mut self,
        pool: Option<&Pool>,
        adjacency_table: AdjacencyTable,
        (group, limit): (u64, Limit),
        numbers: &[u32],
    ) -> Result<Vec<Retired>> {
        let directory = self.next.directory(adjacency_table);
        let made = self.made(pool, adjacency_table, (group, limit), directory, numbers);
        // The numbers were taken from `stale`, so after a failure no later group can complete the directories.
        self.is_broken = made.is_err();
        let (directory, retired) = made?;
        self.next.adjacency_tables[adjacency_table as usize].root = directory.root;
        Ok(retired)
    }

    fn made(
        &self,
        pool: Option<&Pool>,
        adjacency_table: AdjacencyTable,
        (group, limit): (u64, Limit),
        directory: Directory,
        numbers: &[u32],
    ) -> Result<(Directory, Vec<Retired>)> {
        let table = (&self.shared.newest[adjacency_table as usize], limit);
        let part = |worker: usize, numbers: &[u32]| -> Result<(Vec<NumberedDirectory>, Vec<Retired>)> {
            let (mut worker, mut retired) = (self.workers[worker].lock(), Vec::new());
            let mut builder = NodeBuilder { group, retired: &mut retired, ..self.builder(&mut worker) };
            let lowest = directory.lowest(&mut builder, table, numbers)?;
            Ok((lowest, retired))
        };
        let parts = match pool {
            Some(pool) => pool.map_chunks(0..numbers.len(), GRAIN, |worker, range| part(worker, &numbers[range])),
            None => vec![part(0, numbers)],
        };
        let (mut lowest, mut retired) = (Vec::with_capacity(numbers.len()), Vec::new());
        for part in parts {
            let (mut some_lowest, mut some_retired) = part?;
            lowest.append(&mut some_lowest);
            retired.append(&mut some_retired);
        }
        let mut worker = self.workers[0].lock();
        let mut builder = NodeBuilder { group, retired: &mut retired, ..self.builder(&mut worker) };
        Ok((directory.with(&mut builder, lowest)?, retired))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anden_testkit::Random;

    use super::*;
    use crate::arena::NOTHING;
    use crate::{EntryUpdate, Options, Space, Version};

    const BOUND: u32 = 3000;

    struct DirectoryScene {
        terrace: Terrace,
        pool: Pool,
        random: Random,
        space: Space<EntryUpdate<()>>,
        edges: BTreeSet<(u32, u32)>,
    }

    impl DirectoryScene {
        fn new(seed: u64) -> Self {
            println!("seed {seed}");
            let mut terrace = Terrace::new(&Options::default()).unwrap();
            terrace.grow(BOUND as usize).unwrap();
            let (pool, random) = (Pool::new(1).unwrap(), Random::new(seed));
            Self { terrace, pool, random, space: Space::default(), edges: BTreeSet::new() }
        }

        fn apply(&mut self, len: u32) {
            let random = &mut self.random;
            let changes: Vec<_> = (0..len)
                .map(|_| {
                    let (source, target) = (random.below(BOUND), random.below(BOUND));
                    EntryUpdate { source, target, addition: (random.below(3) > 0).then_some(()) }
                })
                .collect();
            for change in &changes {
                let edge = (change.source, change.target);
                if change.addition.is_some() {
                    self.edges.insert(edge)
                } else {
                    self.edges.remove(&edge)
                };
            }
            self.terrace.apply(&self.pool, AdjacencyTable::Out, &changes, &mut self.space).unwrap();
        }
    }

    fn compare(version: &Version<()>, edges: &BTreeSet<(u32, u32)>) {
        version.verify().unwrap_or_else(|what| panic!("version {}: {what}", version.epoch()));
        let mut found = BTreeSet::new();
        for source in 0..BOUND {
            let _ = version.lists(AdjacencyTable::Out).for_each_fragment(source, |targets, _| {
                found.extend(targets.iter().map(|&target| (source, target)));
                std::ops::ControlFlow::Continue(())
            });
        }
        assert_eq!(&found, edges, "version {}", version.epoch());
    }

    #[test]
    fn only_long_pinned_version_gets_directories() {
        let mut scene = DirectoryScene::new(1);
        let publish = |scene: &mut DirectoryScene| {
            scene.apply(200);
            scene.terrace.publish();
        };
        for _ in 0..20 {
            publish(&mut scene);
            let version = scene.terrace.version();
            publish(&mut scene);
            assert!(version.directory(AdjacencyTable::Out).is_none());
        }
        assert_eq!(scene.terrace.next.adjacency_tables[0].root, NOTHING);
        let (version, edges) = (scene.terrace.version(), scene.edges.clone());
        publish(&mut scene);
        compare(&version, &edges);
        publish(&mut scene);
        assert!(version.directory(AdjacencyTable::Out).is_some());
        for _ in 0..20 {
            compare(&version, &edges);
            publish(&mut scene);
        }
    }

    #[test]
    fn four_billion_groups_are_not_too_many() {
        let mut scene = DirectoryScene::new(2);
        scene.terrace.next.epoch = Newest::LAST - 30;
        scene.terrace.publish();
        let mut pinned = Vec::new();
        for i in 0..90 {
            scene.apply([1, 300, 2500][i % 3]);
            if i % 7 == 5 {
                // Two batches in one group, then a group without batches.
                scene.apply(40);
                scene.terrace.publish();
            }
            scene.terrace.publish();
            let version = scene.terrace.version();
            compare(&version, &scene.edges);
            pinned.push((version, scene.edges.clone()));
            if pinned.len() > 12 {
                pinned.swap_remove(scene.random.below(13) as usize);
            }
            pinned.iter().for_each(|(version, edges)| compare(version, edges));
        }
        assert!(scene.terrace.published.epoch > Newest::LAST + 50);
        pinned.clear();
        scene.terrace.collect();
        assert_eq!(scene.terrace.memory().live_bytes, scene.terrace.version().verify().unwrap());
    }
}
