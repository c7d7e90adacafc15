//! Every interleaving of a writer that publishes and readers that pin, as far as the memory model of the
//! language allows them: a model checker runs the modules `pins` and `newest` with atomics of its own.

#![allow(dead_code)]

/// What the module is made of.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[path = "../src/arena/newest.rs"]
mod newest;
#[path = "../src/pins.rs"]
mod pins;

type Handle = u32;

/// What a table is made of.
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

/// Stands for the nodes of a version: its epoch, or freed.
const FREED: u64 = u64::MAX;

/// A writer publishes versions and frees the nodes of those that it finds unpinned; readers pin
/// and read. Nobody may read a node that was freed, or a half-written seat; and what was done with a version that is
/// found unpinned was done before.
fn readers_and_writer(num_readers: usize, num_versions: u64) {
    let mut publisher = Publisher::new([0, 100]);
    let nodes: Arc<[AtomicU64; 4]> = Arc::new([0, 1, 2, 3].map(AtomicU64::new));
    let has_read: Arc<[AtomicU64; 2]> = Arc::new([0, 0].map(AtomicU64::new));
    let readers: Vec<_> = (0..num_readers)
        .map(|reader| {
            let (seats, nodes, has_read) = (Arc::clone(publisher.seats()), Arc::clone(&nodes), Arc::clone(&has_read));
            loom::thread::spawn(move || {
                let (seat, words) = seats.pin();
                assert_eq!(words[1], words[0] + 100, "a seat is read whole");
                let node = nodes[words[0] as usize].load(Ordering::Relaxed);
                assert_eq!(node, words[0], "a pinned version keeps its nodes");
                has_read[reader].store(1, Ordering::Relaxed);
                seats.unpin(seat);
                words[0]
            })
        })
        .collect();
    // What the writer knew of each reader when it found a version unpinned.
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
        assert_eq!(known[epoch as usize][reader], 1, "who gave a pin back had read before");
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

/// Stands for directories that are made.
const COMPLETE: u64 = 1 << 32;

/// A reader pins a version, and finds its page where the table or the seat says, while a writer replaces the page in each
/// group; before the page is overwritten in the table, who still has the version gets to know it otherwise.
#[test]
fn a_page_is_found_while_it_is_replaced() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let mut publisher = Publisher::new([0, 0]);
        let newest = Arc::new(Newest::of_len(1).unwrap());
        let reader = {
            let (seats, newest) = (Arc::clone(publisher.seats()), Arc::clone(&newest));
            loom::thread::spawn(move || {
                let (seat, words) = seats.pin();
                let limit = Limit::of(words[0]);
                let in_table = newest.page(0, limit).or_else(|| newest.page_before(0, limit));
                let page = in_table.unwrap_or_else(|| {
                    let word = seats.word(seat, 1);
                    assert!(word & COMPLETE != 0, "directories are there when they are needed");
                    word as Handle
                });
                assert_eq!(u64::from(page), words[0], "the page of this version and of no other");
                seats.unpin(seat);
            })
        };
        for epoch in 1..=4 {
            if let Some((outlived, seat)) = publisher.outlived() {
                publisher.renew(seat, 1, outlived | COMPLETE);
            }
            newest.set(0, epoch as Handle, epoch);
            publisher.publish(epoch, [epoch, 0]);
            publisher.sweep(|_| ());
        }
        reader.join().unwrap();
    });
}

/// Without threads: seats are as many as pinned versions, and are used again.
#[test]
fn versions_are_held_until_they_are_unpinned() {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 100_000;
    builder.check(|| {
        let mut publisher = Publisher::new([0]);
        let seats = Arc::clone(publisher.seats());
        let mut held = Vec::new();
        for epoch in 1..=40 {
            held.push(seats.pin());
            publisher.publish(epoch, [epoch]);
            publisher.sweep(|epoch| panic!("epoch {epoch} is pinned"));
        }
        assert!(held.iter().enumerate().all(|(epoch, (_, words))| words[0] == epoch as u64));
        seats.pin_again(held[7].0);
        held.iter().for_each(|&(seat, _)| seats.unpin(seat));
        let mut dropped = Vec::new();
        publisher.sweep(|epoch| dropped.push(epoch));
        assert_eq!(dropped, (0..40).filter(|&epoch| epoch != 7).collect::<Vec<_>>());
        assert_eq!(publisher.past().collect::<Vec<_>>(), [7]);
        seats.unpin(held[7].0);
        publisher.sweep(|epoch| assert_eq!(epoch, 7));
        for epoch in 41..80 {
            publisher.publish(epoch, [epoch]);
            publisher.sweep(|dropped| assert_eq!(dropped + 1, epoch));
        }
        let (seat, words) = seats.pin();
        assert!(words == [79] && seat <= 40, "seat {seat} where 41 suffice");
    });
}
