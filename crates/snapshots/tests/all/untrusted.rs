//! Files with valid checksums and malicious content: an attacker can compute checksums too. Reading them may give
//! errors or another graph, but never a panic or a target that is no vertex.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anden_base::checksum::{BLOCK_BYTES, crc32c};
use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use anden_graph::{Direction, Graph, GraphKind, SingleFragment, WeightType, WeightedEdges};
use anden_snapshots::{GraphOptions, Result, SnapshotView, Store};
use anden_testkit::FaultStorage;

use crate::model::deaf::Deaf;
use crate::model::samples;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

fn put_crc(bytes: &mut [u8], at: usize, crc: u32) {
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Recomputes every checksum of a data file by `docs/format.md`, not by the crate's code. Returns that of the header.
///
/// A section with an invalid place keeps its checksums.
fn seal(bytes: &mut [u8]) -> u32 {
    let (num_sections, directory) = (u32_at(bytes, 12), u64_at(bytes, 40).min(bytes.len()));
    let entries = bytes[directory..].len() / 40;
    for entry in (0..num_sections.min(entries)).map(|i| directory + 40 * i) {
        let (offset, len, checksums) = (u64_at(bytes, entry + 8), u64_at(bytes, entry + 16), u64_at(bytes, entry + 24));
        let Some(section) = bytes.get(offset..offset.saturating_add(len)) else { continue };
        let crcs: Vec<u32> = section.chunks(BLOCK_BYTES).map(crc32c).collect();
        let Some(place) = bytes.get_mut(checksums..checksums.saturating_add(4 * crcs.len())) else { continue };
        crcs.iter().enumerate().for_each(|(i, &crc)| put_crc(place, 4 * i, crc));
        let crc = crc32c(place);
        put_crc(bytes, entry + 4, crc);
    }
    let crc = crc32c(&bytes[directory..]);
    put_crc(bytes, 48, crc);
    let crc = crc32c(&bytes[..4092]);
    put_crc(bytes, 4092, crc);
    crc
}

/// The places that an attacker would change: the bytes of sections, and the counts in the header.
fn interesting(bytes: &[u8]) -> Vec<usize> {
    let (num_sections, directory) = (u32_at(bytes, 12), u64_at(bytes, 40));
    let mut places: Vec<usize> = (4..56).collect();
    for entry in (0..num_sections).map(|i| directory + 40 * i) {
        places.extend(u64_at(bytes, entry + 8)..u64_at(bytes, entry + 8) + u64_at(bytes, entry + 16));
        places.extend(entry..entry + 40);
    }
    places
}

/// Recomputes the checksum of a manifest.
fn seal_manifest(manifest: &mut [u8]) {
    let crc = crc32c(&[&manifest[..8], &manifest[12..]].concat());
    put_crc(manifest, 8, crc);
}

/// Replaces a file of the database, and its checksum in the manifest, which follows the name and length.
fn replace(disk: &FaultStorage, name: &str, mut bytes: Vec<u8>, old_crc: u32) {
    let crc = seal(&mut bytes);
    let manifest_path = Path::new("db/MANIFEST");
    let mut manifest = disk.contents(manifest_path).unwrap();
    let string = [&(name.len() as u32).to_le_bytes(), name.as_bytes()].concat();
    let record = (0..manifest.len()).find(|&at| manifest[at..].starts_with(&string)).unwrap();
    let at = record + string.len() + 8;
    assert_eq!(u32_at(&manifest, at), old_crc as usize);
    put_crc(&mut manifest, at, crc);
    seal_manifest(&mut manifest);
    disk.set_contents(manifest_path, &manifest);
    disk.set_contents(&Path::new("db").join(name), &bytes);
}

fn read_everything(disk: FaultStorage, pool: &Pool) -> Result<()> {
    let store = Store::open_read_only(Arc::new(disk), "db".as_ref())?;
    let view = store.view()?;
    let bound = view.vertex_bound();
    let check = |list: &[u32]| {
        assert!(list.iter().all(|&target| (target as usize) < bound));
        ControlFlow::Continue(())
    };
    let heard = store.view()?.with_hook(Some(Arc::new(Deaf)));
    for v in 0..bound as u32 {
        let degree = heard.degree(Direction::Out, v);
        let _ = heard.for_each_fragment(Direction::Out, v, |list| {
            assert_eq!(list.len(), degree);
            check(list)
        });
        let _ = heard.for_each_fragment(Direction::In, v, check);
        let _ = heard.list(Direction::Out, v).map(check);
    }
    for v in 0..bound as u32 {
        let _ = view.for_each_fragment(Direction::Out, v, check);
        let _ = view.for_each_fragment(Direction::In, v, check);
        if let Ok(key) = view.key(v) {
            let _ = view.vertex(&key);
        }
    }
    let verified = store.verify(pool).map(drop);
    view.check()?;
    verified
}

/// Reads every snapshot, a window and a diff.
fn read_all_versions(disk: FaultStorage, pool: &Pool) -> Result<()> {
    let store = Store::open_read_only(Arc::new(disk), "db".as_ref())?;
    let mut answer = Ok(());
    let numbers: Vec<u32> = store.snapshots().iter().map(|info| info.number).collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    let second = numbers.get(1).copied().unwrap_or(first);
    let views = numbers.iter().map(|&number| store.snapshot(number));
    for view in views.chain([store.view(), store.window(second, last)]) {
        answer = answer.and(view.and_then(|view| read_view(&view)));
    }
    answer = answer.and(store.diff(last, first).map(|diff| {
        let bound = diff.new_vertices.end.max(1 << 12);
        assert!(diff.added.iter().chain(&diff.removed).all(|arc| arc.list.max(arc.neighbor) < bound));
    }));
    let _ = store.stats();
    store.verify(pool).map(drop).and(answer)
}

fn read_view(view: &SnapshotView) -> Result<()> {
    let bound = view.vertex_bound();
    let check = |list: &[u32]| {
        assert!(list.iter().all(|&target| (target as usize) < bound));
        ControlFlow::Continue(())
    };
    for v in 0..bound as u32 {
        let _ = view.for_each_fragment(Direction::Out, v, check);
        let _ = view.for_each_fragment(Direction::In, v, check);
        let _ = view.for_each_weighted_fragment::<f32>(Direction::Out, v, |list, _| check(list));
        let _ = (view.degree(Direction::Out, v), view.list(Direction::Out, v), view.is_live(v));
        if let Ok(key) = view.key(v) {
            let _ = view.vertex(&key);
        }
    }
    for v in 0..bound as u32 {
        let _ = view.for_each_row(Direction::Out, v, |targets, rows| {
            for row in rows {
                let num_properties = view.edge_properties().schema().len();
                (0..num_properties).for_each(|place| drop(view.edge_properties().value(place, *row)));
            }
            check(targets)
        });
    }
    for place in 0..view.properties().schema().len() {
        let column = view.properties().column(place);
        assert!(column.is_err() || column.is_ok_and(|column| column.is_some_and(|column| column.len() == bound)));
        for v in 0..bound as u32 {
            // Without an index a search reads all values, so a few searches suffice.
            if let Ok(value) = view.properties().value(place, v)
                && v % 8 == 0
                && let Ok(found) = view.properties().find(place, value)
            {
                assert!(found.iter().all(|&vertex| (vertex as usize) < bound));
            }
        }
    }
    Ok(view.check()?)
}

/// Whether reading `disk` is refused.
fn is_refused(place: &str, pool: &Pool, disk: impl FnOnce() -> FaultStorage) -> bool {
    let tries = std::panic::catch_unwind(AssertUnwindSafe(|| read_all_versions(disk(), pool).is_err()));
    tries.unwrap_or_else(|_| panic!("{place}"))
}

#[test]
fn lies_about_versions_do_no_harm() {
    let is_meant = |name: &str| ["delta-", "dict-", "column-"].iter().any(|prefix| name.starts_with(prefix));
    lie_about(samples::versions().0, is_meant);
    lie_about(samples::indexed().0, |name| name.starts_with("index-"));
}

#[test]
fn lies_about_properties_of_edges_do_no_harm() {
    lie_about(samples::rows().0, |name| name.starts_with("rows-"));
}

#[test]
fn lies_about_weights_beside_rows_do_no_harm() {
    // The other files do not depend on rows.
    let is_base = |name: &str| name.ends_with("-weights") || name.ends_with("-rows");
    lie_about(samples::weighted_rows().0, |name| name.starts_with("delta-") || is_base(name));
}

/// Changes the manifest and the files that `is_meant` selects.
fn lie_about(whole: FaultStorage, is_meant: impl Fn(&str) -> bool) {
    let (pool, serial) = (Pool::new(0).unwrap(), Pool::new(1).unwrap());
    assert!(!is_refused("nothing changed", &serial, || whole.duplicate()));
    for name in whole.list("db".as_ref()).unwrap() {
        let is_manifest = name == "MANIFEST";
        if name == "LOCK" || !is_manifest && !is_meant(&name) {
            continue;
        }
        let bytes = whole.contents(&Path::new("db").join(&name)).unwrap();
        let mut sealed = bytes.clone();
        let old_crc = if is_manifest { 0 } else { seal(&mut sealed) };
        assert!(sealed == bytes, "{name}: the checksums are not those of docs/format.md");
        let places = if is_manifest { (4..bytes.len()).collect() } else { interesting(&bytes) };
        let num_refused = AtomicUsize::new(0);
        pool.for_each_chunk(0..places.len(), 16, |_, chunk| {
            for &place in &places[chunk] {
                for value in [bytes[place].wrapping_add(1), bytes[place] ^ 0xff] {
                    let mut lie = bytes.clone();
                    lie[place] = value;
                    let disk = || {
                        let disk = whole.duplicate();
                        if is_manifest {
                            seal_manifest(&mut lie);
                            disk.set_contents("db/MANIFEST".as_ref(), &lie);
                        } else {
                            replace(&disk, &name, lie, old_crc);
                        }
                        disk
                    };
                    let refused = is_refused(&format!("{name}, byte {place} = {value}"), &serial, disk);
                    num_refused.fetch_add(refused.into(), Ordering::Relaxed);
                }
            }
        });
        println!("lies[{name}]: {}, of them refused: {}", 2 * places.len(), num_refused.into_inner());
    }
}

#[test]
fn lies_with_fitting_checksums_do_no_harm() {
    let (pool, serial) = (Pool::new(0).unwrap(), Pool::new(1).unwrap());
    for (sample, model) in samples::all() {
        let whole = FaultStorage::default();
        drop(model.write(Arc::new(whole.clone()), "db".as_ref()).unwrap());
        let (mut num_lies, num_refused) = (0, AtomicUsize::new(0));
        for name in whole.list("db".as_ref()).unwrap() {
            if name == "LOCK" || name == "MANIFEST" {
                continue;
            }
            let bytes = whole.contents(&Path::new("db").join(&name)).unwrap();
            let mut sealed = bytes.clone();
            let old_crc = seal(&mut sealed);
            assert!(sealed == bytes, "{name}: the checksums are not those of docs/format.md");
            let places = interesting(&bytes);
            num_lies += 2 * places.len();
            pool.for_each_chunk(0..places.len(), 64, |_, chunk| {
                for &place in &places[chunk] {
                    for value in [bytes[place].wrapping_add(1), bytes[place] ^ 0xff] {
                        let mut lie = bytes.clone();
                        lie[place] = value;
                        let disk = whole.duplicate();
                        let tries = std::panic::catch_unwind(AssertUnwindSafe(|| {
                            replace(&disk, &name, lie, old_crc);
                            read_everything(disk, &serial).is_err()
                        }));
                        let is_refused = tries.unwrap_or_else(|_| panic!("{sample}: {name}, byte {place} = {value}"));
                        num_refused.fetch_add(is_refused.into(), Ordering::Relaxed);
                    }
                }
            });
        }
        println!("lies[{sample}]: {num_lies}, of them refused: {}", num_refused.into_inner());
    }
}

/// The bytes of the section of a kind.
fn section(bytes: &[u8], kind: usize) -> std::ops::Range<usize> {
    find_section(bytes, kind).unwrap()
}

fn find_section(bytes: &[u8], kind: usize) -> Option<std::ops::Range<usize>> {
    let directory = u64_at(bytes, 40);
    let mut entries = (0..u32_at(bytes, 12)).map(|i| directory + 40 * i);
    let entry = entries.find(|&entry| u32_at(bytes, entry) == kind)?;
    Some(u64_at(bytes, entry + 8)..u64_at(bytes, entry + 8) + u64_at(bytes, entry + 16))
}

/// The bytes of each string in a part of the dictionary.
fn strings(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (offsets, text) = (section(bytes, 7), section(bytes, 8));
    let ends: Vec<usize> = offsets.step_by(8).map(|at| text.start + u64_at(bytes, at)).collect();
    ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[test]
fn a_missing_entry_of_an_index_is_found() {
    let (pool, (whole, _)) = (Pool::new(1).unwrap(), samples::indexed());
    let names = whole.list("db".as_ref()).unwrap().into_iter().filter(|name| name.starts_with("index-"));
    let (mut num_missing, mut num_disordered) = (0, 0);
    for name in names {
        let bytes = whole.contents(&Path::new("db").join(&name)).unwrap();
        let old_crc = seal(&mut bytes.clone());
        for entry in section(&bytes, 36).step_by(8) {
            // The entry names another vertex.
            let mut lie = bytes.clone();
            lie[entry + 1] ^= 1;
            let disk = whole.duplicate();
            replace(&disk, &name, lie, old_crc);
            let store = Store::open_read_only(Arc::new(disk), "db".as_ref()).unwrap();
            let Err(error) = store.verify(&pool) else { continue };
            let error = error.to_string();
            assert!(error.contains(&name) || error.contains("lacks a value"), "{error}");
            num_missing += u32::from(error.contains("lacks a value of vertex"));
            num_disordered += u32::from(error.contains("entries that ascend expected"));
        }
    }
    assert!(num_missing > 10 && num_disordered > 0, "{num_missing} missing, {num_disordered} out of order");
}

#[test]
fn a_key_that_two_vertices_have_is_found() {
    let (pool, (whole, _)) = (Pool::new(1).unwrap(), samples::versions());
    let parts: Vec<_> = whole.list("db".as_ref()).unwrap();
    let parts: Vec<_> = parts.into_iter().filter(|name| name.starts_with("dict-")).collect();
    let contents = |name: &String| whole.contents(&Path::new("db").join(name)).unwrap();
    let first = contents(&parts[0]);
    assert!(parts.len() > 1);
    let kinds = ["ascending order", "a key that no vertex has yet"];
    for (part, expected) in parts.iter().zip(kinds) {
        // Each key of the part in turn becomes each other key of the first part with equal length.
        let (mut num_lies, mut num_expected) = (0, 0);
        for place in strings(&contents(part)) {
            let fits = |other: &std::ops::Range<usize>| other.len() == place.len();
            for another in strings(&first).into_iter().filter(fits) {
                let mut lie = contents(part);
                let old_crc = seal(&mut lie);
                if lie[place.clone()] == first[another.clone()] {
                    continue;
                }
                lie[place.clone()].copy_from_slice(&first[another]);
                let disk = whole.duplicate();
                replace(&disk, part, lie, old_crc);
                let store = Store::open_read_only(Arc::new(disk), "db".as_ref()).unwrap();
                let error = store.verify(&pool).unwrap_err().to_string();
                assert!(kinds.iter().any(|kind| error.contains(kind)), "{part}: {error}");
                (num_lies, num_expected) = (num_lies + 1, num_expected + u32::from(error.contains(expected)));
            }
        }
        assert!(num_expected > 0, "{part}: {expected} in none of {num_lies} lies");
    }
}

/// A backup may restore such a file: complete, and of this database.
#[test]
fn intact_file_unknown_to_manifest_is_refused() {
    for (sample, model) in samples::all() {
        let disk = FaultStorage::default();
        drop(model.write(Arc::new(disk.clone()), "db".as_ref()).unwrap());
        let names = disk.list("db".as_ref()).unwrap();
        for name in names.into_iter().filter(|name| name != "LOCK" && name != "MANIFEST") {
            let (copy, path) = (disk.duplicate(), Path::new("db").join(&name));
            let mut bytes = disk.contents(&path).unwrap();
            // The first section begins after the header.
            bytes[4096] ^= 1;
            seal(&mut bytes);
            copy.set_contents(&path, &bytes);
            let error = Store::open_read_only(Arc::new(copy), "db".as_ref()).unwrap_err().to_string();
            assert!(error.contains("not the one that the manifest names"), "{sample}, {name}: {error}");
        }
    }
}

/// Numbers that wrap, or nearly do, in sums and products.
const HUGE: [u64; 6] = [u64::MAX, u64::MAX - 1, u64::MAX - 7, 1 << 63, (1 << 63) - 1, 1 << 62];

fn put_u64(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The error of opening a database. Requires that it names a file.
#[track_caller]
fn refused_on_opening(disk: FaultStorage, what: &str) -> String {
    let error = match Store::open_read_only(Arc::new(disk), "db".as_ref()) {
        Ok(store) => panic!("{what}: opened with {:?}", store.snapshots()),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("db/"), "{what}: {error}");
    error
}

fn kinds_of_graphs() -> [GraphOptions; 4] {
    let weighted = GraphOptions { weight_type: Some(WeightType::F32), ..GraphOptions::default() };
    [
        weighted,
        GraphOptions { graph_kind: GraphKind::Undirected, ..weighted },
        GraphOptions { edge_properties: true, ..weighted },
        GraphOptions { multigraph: true, edge_properties: true, ..GraphOptions::default() },
    ]
}

#[test]
fn huge_counts_of_a_manifest_are_refused() {
    for options in kinds_of_graphs() {
        let (whole, _) = samples::write_versions(options, "db");
        let store = Store::open_read_only(Arc::new(whole.duplicate()), "db".as_ref()).unwrap();
        let manifest = whole.contents("db/MANIFEST".as_ref()).unwrap();
        let mut num_versions = 0;
        for snapshot in store.snapshots() {
            let num_arcs = store.snapshot(snapshot.number).unwrap().num_arcs();
            let counts = [snapshot.num_edges, num_arcs, snapshot.added, snapshot.removed];
            let record: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            let at = manifest.windows(record.len()).position(|bytes| bytes == record).unwrap();
            // One number alone, and numbers of edges and arcs that agree.
            for places in [&[0][..], &[1], &[2], &[3], &[0, 1], &[0, 1, 2], &[0, 1, 2, 3]] {
                for huge in HUGE {
                    let mut lie = manifest.clone();
                    places.iter().for_each(|place| put_u64(&mut lie, at + 8 * place, huge));
                    seal_manifest(&mut lie);
                    let disk = whole.duplicate();
                    disk.set_contents("db/MANIFEST".as_ref(), &lie);
                    refused_on_opening(disk, &format!("snapshot {}: {places:?} = {huge}", snapshot.number));
                }
            }
            num_versions += 1;
        }
        assert!(num_versions > 5);
    }
}

#[test]
fn huge_counts_of_deltas_are_refused() {
    /// The bytes of a directory entry. Versions and the vertex bound precede the counts.
    const ENTRY: usize = 104;
    for options in kinds_of_graphs() {
        let (whole, _) = samples::write_versions(options, "db");
        for name in whole.list("db".as_ref()).unwrap().into_iter().filter(|name| name.starts_with("delta-")) {
            let bytes = whole.contents(&Path::new("db").join(&name)).unwrap();
            let old_crc = seal(&mut bytes.clone());
            for entry in section(&bytes, 11).step_by(ENTRY) {
                for word in (8..ENTRY).step_by(8) {
                    for huge in HUGE {
                        let mut lie = bytes.clone();
                        put_u64(&mut lie, entry + word, huge);
                        let disk = whole.duplicate();
                        replace(&disk, &name, lie, old_crc);
                        refused_on_opening(disk, &format!("{name}: byte {word} of an entry = {huge}"));
                    }
                }
                // Added and removed arcs whose sum wraps to the old value.
                for added in [32, 64] {
                    let mut lie = bytes.clone();
                    let sum = (u64_at(&lie, entry + added) + u64_at(&lie, entry + added + 8)) as u64;
                    put_u64(&mut lie, entry + added, u64::MAX);
                    put_u64(&mut lie, entry + added + 8, sum + 1);
                    let disk = whole.duplicate();
                    replace(&disk, &name, lie, old_crc);
                    refused_on_opening(disk, &format!("{name}: counts that wrap to {sum}"));
                }
            }
        }
    }
}

/// Words that are counts, by section: index of pages, facts of the dictionary, indexes and properties of deltas, facts
/// and entries of columns.
#[test]
fn huge_counts_of_other_files_do_no_harm() {
    const STRIDES: [(usize, usize, &[usize]); 6] =
        [(4, 16, &[0]), (5, 32, &[8, 16, 24]), (12, 16, &[8]), (16, 16, &[8]), (22, 16, &[8]), (26, 16, &[0, 8])];
    let pool = Pool::new(1).unwrap();
    let mut num_lies = 0;
    for (whole, _) in [samples::versions(), samples::rows(), samples::weighted_rows()] {
        for name in whole.list("db".as_ref()).unwrap() {
            let bytes = whole.contents(&Path::new("db").join(&name)).unwrap();
            if name == "LOCK" || name == "MANIFEST" {
                continue;
            }
            let old_crc = seal(&mut bytes.clone());
            for (kind, stride, words) in STRIDES.into_iter().chain([(31, 24, &[16][..])]) {
                let Some(section) = find_section(&bytes, kind) else { continue };
                for (entry, huge) in section.step_by(stride).flat_map(|entry| HUGE.map(|huge| (entry, huge))) {
                    for word in words {
                        let mut lie = bytes.clone();
                        put_u64(&mut lie, entry + word, huge);
                        let disk = || {
                            let disk = whole.duplicate();
                            replace(&disk, &name, lie, old_crc);
                            disk
                        };
                        let place = format!("{name}, section {kind}, word {word} = {huge}");
                        // Only the first key of a range may be changed to another valid value.
                        assert!(is_refused(&place, &pool, disk) || (kind, *word) == (5, 24), "{place}");
                        num_lies += 1;
                    }
                }
            }
        }
    }
    assert!(num_lies > 500, "{num_lies}");
}
