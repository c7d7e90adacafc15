//! Directories are made for versions that outlive the next one.
//!
//! What a reader of a version looks for stands in the table of newest pages as long as no page was replaced twice since.
//! So before a group replaces anything, the version before the newest gets its directories if somebody has it pinned;
//! if nobody has, nobody ever will.

use base::parallel::Pool;

use super::{Terrace, stale_of};
use crate::arena::{Limit, Newest};
use crate::builder::Builder;
use crate::crew::lock;
use crate::directory::{Directory, NewDirectory};
use crate::graveyard::Retired;
use crate::pins::SeatId;
use crate::state::{NUM_PLANES, Plane, PlaneState, State};
use crate::{Result, Value};

/// So many directories at least are made by one worker.
const GRAIN: usize = 512;

const PLANES: [Plane; NUM_PLANES] = [Plane::Out, Plane::In, Plane::OutRemoved, Plane::InRemoved];

impl<W: Value> Terrace<W> {
    /// To be called before anything is done for the next version; again without effect.
    ///
    /// # Errors
    /// The nodes fill the address range. Only what was published can be read then.
    pub(super) fn begin(&mut self, pool: Option<&Pool>) -> Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        if let Some((epoch, seat)) = self.publisher.outlived() {
            self.complete_for(pool, epoch, seat)?;
        }
        self.stale.iter_mut().for_each(|stale| stale_of(stale).publish());
        if self.next.epoch > Newest::LAST {
            self.complete_published(pool)?;
        }
        Ok(())
    }

    /// Makes the directories of the newest version.
    pub(super) fn complete_published(&mut self, pool: Option<&Pool>) -> Result<()> {
        let (epoch, seat) = self.publisher.current();
        self.complete_for(pool, epoch, seat)
    }

    /// Makes the directories of the newest version, and of the one that is being made.
    pub(super) fn complete(&mut self, pool: &Pool) -> Result<()> {
        self.complete_published(Some(pool))?;
        for plane in PLANES {
            let numbers = stale_of(&mut self.stale[plane as usize]).take_changed();
            let mut retired = self.renew(Some(pool), plane, (self.next.epoch, Limit::NONE), &numbers)?;
            lock(&self.workers[0]).retired.append(&mut retired);
        }
        Ok(())
    }

    /// Makes the directories of a version that has everything which is published and stale, if they are not made.
    fn complete_for(&mut self, pool: Option<&Pool>, epoch: u64, seat: SeatId) -> Result<()> {
        for plane in PLANES {
            if PlaneState::complete_root(self.publisher.seats().word(seat, State::root_word(plane))).is_some() {
                continue;
            }
            let numbers = stale_of(&mut self.stale[plane as usize]).take_published();
            let mut retired = self.renew(pool, plane, (epoch, Limit::of(epoch)), &numbers)?;
            if !retired.is_empty() {
                // This version never leads to what they lead to: nobody asked for its directories before they were complete.
                self.graveyard.bury(epoch - 1, &mut retired);
            }
            let state = PlaneState { is_complete: true, ..self.next.planes[plane as usize] };
            self.publisher.renew(seat, State::root_word(plane), state.root_word());
        }
        for worker in &mut self.workers {
            worker.get_mut().unwrap_or_else(|e| e.into_inner()).slots.settle(&self.stock);
        }
        Ok(())
    }

    /// Makes some of the lowest directories of a plane anew, which ascend, as nodes of `group` with the pages that its
    /// version has; returns the nodes that they replace.
    fn renew(
        &mut self,
        pool: Option<&Pool>,
        plane: Plane,
        (group, limit): (u64, Limit),
        numbers: &[u32],
    ) -> Result<Vec<Retired>> {
        let directory = self.next.directory(plane);
        let made = self.made(pool, plane, (group, limit), directory, numbers);
        self.is_broken = made.is_err();
        let (directory, retired) = made?;
        self.next.planes[plane as usize].root = directory.root;
        Ok(retired)
    }

    fn made(
        &self,
        pool: Option<&Pool>,
        plane: Plane,
        (group, limit): (u64, Limit),
        directory: Directory,
        numbers: &[u32],
    ) -> Result<(Directory, Vec<Retired>)> {
        let table = (&self.shared.newest[plane as usize], limit);
        let part = |worker: usize, numbers: &[u32]| -> Result<(Vec<NewDirectory>, Vec<Retired>)> {
            let (mut worker, mut retired) = (lock(&self.workers[worker]), Vec::new());
            let mut builder = Builder { group, retired: &mut retired, ..self.builder(&mut worker) };
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
        let mut worker = lock(&self.workers[0]);
        let mut builder = Builder { group, retired: &mut retired, ..self.builder(&mut worker) };
        Ok((directory.with(&mut builder, lowest)?, retired))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use testkit::Random;

    use super::*;
    use crate::arena::NOTHING;
    use crate::{Options, Space, Update, Version};

    const BOUND: u32 = 3000;

    struct Scene {
        terrace: Terrace,
        pool: Pool,
        random: Random,
        space: Space<Update<()>>,
        edges: BTreeSet<(u32, u32)>,
    }

    impl Scene {
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
                    Update { source, target, addition: (random.below(3) > 0).then_some(()) }
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
            self.terrace.apply(&self.pool, Plane::Out, &changes, &mut self.space).unwrap();
        }
    }

    fn compare(version: &Version<()>, edges: &BTreeSet<(u32, u32)>) {
        version.verify().unwrap_or_else(|what| panic!("version {}: {what}", version.epoch()));
        let mut found = BTreeSet::new();
        for source in 0..BOUND {
            let _ = version.lists(Plane::Out).for_each_fragment(source, |targets, _| {
                found.extend(targets.iter().map(|&target| (source, target)));
                std::ops::ControlFlow::Continue(())
            });
        }
        assert_eq!(&found, edges, "version {}", version.epoch());
    }

    #[test]
    fn who_outlives_the_next_version_has_directories_and_nobody_else() {
        let mut scene = Scene::new(1);
        let publish = |scene: &mut Scene| {
            scene.apply(200);
            scene.terrace.publish();
        };
        for _ in 0..20 {
            publish(&mut scene);
            let version = scene.terrace.version();
            publish(&mut scene);
            assert!(version.directory(Plane::Out).is_none());
        }
        assert_eq!(scene.terrace.next.planes[0].root, NOTHING);
        let (version, edges) = (scene.terrace.version(), scene.edges.clone());
        publish(&mut scene);
        compare(&version, &edges);
        publish(&mut scene);
        assert!(version.directory(Plane::Out).is_some());
        for _ in 0..20 {
            compare(&version, &edges);
            publish(&mut scene);
        }
    }

    #[test]
    fn four_billion_groups_are_not_too_many() {
        let mut scene = Scene::new(2);
        scene.terrace.next.epoch = Newest::LAST - 30;
        scene.terrace.publish();
        let mut pinned = Vec::new();
        for i in 0..90 {
            scene.apply([1, 300, 2500][i % 3]);
            if i % 7 == 5 {
                // Two batches of one group, and a group without any.
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
