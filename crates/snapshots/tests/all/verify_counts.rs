//! `verify` compares the counts in the manifest with the lists, also without in-lists.

use std::path::Path;
use std::sync::Arc;

use anden_base::checksum::crc32c;
use anden_base::parallel::Pool;
use anden_graph::WeightType;
use anden_snapshots::{GraphOptions, Store};

use crate::model::samples;

/// Numbers as bytes of the manifest.
fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn wrong_counts_are_found_without_in_lists() {
    let pool = Pool::new(1).unwrap();
    let manifest_path = Path::new("db/MANIFEST");
    for (in_edges, edge_properties) in [(false, false), (true, false), (false, true), (true, true)] {
        let weight_type = Some(WeightType::F32);
        let options = GraphOptions { in_edges, edge_properties, weight_type, ..GraphOptions::default() };
        let (whole, past) = samples::write_versions(options, "db");
        let store = Store::open_read_only(Arc::new(whole.duplicate()), "db".as_ref()).unwrap();
        past.compare(&store).unwrap();
        store.verify(&pool).unwrap();
        let manifest = whole.contents(manifest_path).unwrap();
        for snapshot in store.snapshots() {
            // A directed graph has equal numbers of edges and arcs.
            let numbers = [snapshot.num_edges, snapshot.num_edges, snapshot.added, snapshot.removed];
            let record = bytes_of(&numbers);
            let at = manifest.windows(record.len()).position(|bytes| bytes == record).unwrap();
            for (place, what) in ["edges", "entries", "added", "removed"].into_iter().enumerate() {
                let mut lie = manifest.clone();
                let mut wrong = numbers;
                wrong[place] += 1;
                lie[at..at + record.len()].copy_from_slice(&bytes_of(&wrong));
                let checksum = crc32c(&[&lie[..8], &lie[12..]].concat());
                lie[8..12].copy_from_slice(&checksum.to_le_bytes());
                let disk = whole.duplicate();
                disk.set_contents(manifest_path, &lie);
                let verified = Store::open_read_only(Arc::new(disk), "db".as_ref()).and_then(|db| db.verify(&pool));
                let error = verified.expect_err(&format!("{what} of {}, in-lists: {in_edges}", snapshot.number));
                println!("{what} of {}: {error}", snapshot.number);
            }
        }
    }
}
