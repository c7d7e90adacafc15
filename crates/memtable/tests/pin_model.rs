//! A model checker runs the modules `pins` and `newest` with its own atomics. It tries all interleavings of a
//! publishing writer and pinning readers that the memory model of the language allows.

#![allow(dead_code)]

/// Atomics of the two modules.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../src/arena/newest.rs"]
mod newest;
#[path = "../src/pins.rs"]
mod pins;

type Handle = u32;

/// The storage of a table.
#[derive(Debug)]
struct Zeros(Vec<AtomicU64>);

impl Zeros {
    fn of_len(len: usize) -> std::io::Result<Self> {
        Ok(Self((0..len).map(|_| AtomicU64::new(0)).collect()))
    }

    fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use newest::{Limit, Newest};
use pins::Publisher;

/// Stands for a freed node. A node of a version holds the epoch.
const FREED: u64 = u64::MAX;

/// A writer publishes versions and frees the nodes of those that it finds unpinned, while readers pin and read. No
/// reader may read a freed node or a half-written epoch slot. Reads of a version happen before it is found unpinned.
fn readers_and_writer(num_readers: usize, num_versions: u64) {
    let mut publisher = Publisher::new([0, 100]);
    let nodes: Arc<[AtomicU64; 4]> = Arc::new([0, 1, 2, 3].map(AtomicU64::new));
    let has_read: Arc<[AtomicU64; 2]> = Arc::new([0, 0].map(AtomicU64::new));
    let readers: Vec<_> = (0..num_readers)
        .map(|reader| {
            let (epoch_slots, nodes, has_read) =
                (Arc::clone(publisher.epoch_slots()), Arc::clone(&nodes), Arc::clone(&has_read));
            loom::thread::spawn(move || {
                let (epoch_slot, words) = epoch_slots.pin();
                assert_eq!(words[1], words[0] + 100, "an epoch slot is read whole");
                let node = nodes[words[0] as usize].load(Ordering::Relaxed);
                assert_eq!(node, words[0], "a pinned version keeps its nodes");
                has_read[reader].store(1, Ordering::Relaxed);
                epoch_slots.unpin(epoch_slot);
                words[0]
            })
        })
        .collect();
    // Reads of each reader that the writer knew of when it found a version unpinned.
    let mut known = [[0; 2]; 4];
    let mut free = |epoch: u64| {
        nodes[epoch as usize].store(FREED, Ordering::Relaxed);
        known[epoch as usize] = [0, 1].map(|reader: usize| has_read[reader].load(Ordering::Relaxed));
    };
    for epoch in 1..=num_versions {
        publisher.publish(epoch, [epoch, epoch + 100]);
        publisher.sweep(&mut free);
    }
    let epochs: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    publisher.sweep(&mut free);
    assert_eq!(publisher.past().count(), 0, "all pins were given back");
    for (reader, epoch) in epochs.into_iter().enumerate().filter(|&(_, epoch)| epoch < num_versions) {
        assert_eq!(known[epoch as usize][reader], 1, "a reader reads before it returns its pin");
    }
}

#[test]
fn one_reader_and_the_writer() {
    loom::model(|| readers_and_writer(1, 2));
}

#[test]
fn two_readers_and_the_writer() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| readers_and_writer(2, 2));
}

/// Marks complete directories.
const COMPLETE: u64 = 1 << 32;

/// A reader pins a version and finds its page in the table or in the epoch slot. Meanwhile a writer replaces the page
/// in each group. Before the page is overwritten in the table, the slot of a pinned version gets its directories.
#[test]
fn a_page_is_found_while_it_is_replaced() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let mut publisher = Publisher::new([0, 0]);
        let newest = Arc::new(Newest::of_len(1).unwrap());
        let reader = {
            let (epoch_slots, newest) = (Arc::clone(publisher.epoch_slots()), Arc::clone(&newest));
            loom::thread::spawn(move || {
                let (epoch_slot, words) = epoch_slots.pin();
                let limit = Limit::of(words[0]);
                let in_table = newest.page(0, limit).or_else(|| newest.page_before(0, limit));
                let page = in_table.unwrap_or_else(|| {
                    let word = epoch_slots.word(epoch_slot, 1);
                    assert!(word & COMPLETE != 0, "directories are there when they are needed");
                    word as Handle
                });
                assert_eq!(u64::from(page), words[0], "the page of this version and of no other");
                epoch_slots.unpin(epoch_slot);
            })
        };
        for epoch in 1..=4 {
            if let Some((outlived, epoch_slot)) = publisher.outlived() {
                publisher.renew(epoch_slot, 1, outlived | COMPLETE);
            }
            newest.set(0, epoch as Handle, epoch);
            publisher.publish(epoch, [epoch, 0]);
            publisher.sweep(|_| ());
        }
        reader.join().unwrap();
    });
}

/// Without threads: as many epoch slots as pinned versions, and slots are used again.
#[test]
fn versions_are_held_until_they_are_unpinned() {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.check(|| {
        let mut publisher = Publisher::new([0]);
        let epoch_slots = Arc::clone(publisher.epoch_slots());
        let mut held = Vec::new();
        for epoch in 1..=40 {
            held.push(epoch_slots.pin());
            publisher.publish(epoch, [epoch]);
            publisher.sweep(|epoch| panic!("epoch {epoch} is pinned"));
        }
        assert!(held.iter().enumerate().all(|(epoch, (_, words))| words[0] == epoch as u64));
        epoch_slots.pin_again(held[7].0);
        held.iter().for_each(|&(epoch_slot, _)| epoch_slots.unpin(epoch_slot));
        let mut dropped = Vec::new();
        publisher.sweep(|epoch| dropped.push(epoch));
        assert_eq!(dropped, (0..40).filter(|&epoch| epoch != 7).collect::<Vec<_>>());
        assert_eq!(publisher.past().collect::<Vec<_>>(), [7]);
        epoch_slots.unpin(held[7].0);
        publisher.sweep(|epoch| assert_eq!(epoch, 7));
        for epoch in 41..80 {
            publisher.publish(epoch, [epoch]);
            publisher.sweep(|dropped| assert_eq!(dropped + 1, epoch));
        }
        let (epoch_slot, words) = epoch_slots.pin();
        assert!(words == [79] && epoch_slot <= 40, "epoch slot {epoch_slot} where 41 suffice");
    });
}
