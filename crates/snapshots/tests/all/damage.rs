//! Flips bits at every place of a small database, and cuts every file at every length. Opening or reading is refused
//! with the name of the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::parallel::Pool;
use anden_base::storage::Storage;
use anden_graph::{Direction, Graph};
use anden_snapshots::{Result, Store};
use anden_testkit::FaultStorage;

use crate::model::deaf::Deaf;
use crate::model::past::Past;
use crate::model::{Model, samples};

/// Opens the database, compares all answers with the model, and verifies it.
///
/// Panics on a wrong answer.
fn read_everything(model: &Model, disk: FaultStorage, pool: &Pool) -> Result<()> {
    let store = Store::open_read_only(Arc::new(disk), "db".as_ref())?;
    // With a prefetch hook, lists are verified one by one.
    model.compare(&store.view()?.with_hook(Some(Arc::new(Deaf))))?;
    model.compare(&store.view()?)?;
    store.verify(pool).map(drop)
}

struct Sample {
    name: &'static str,
    model: Model,
    disk: FaultStorage,
    files: Vec<(PathBuf, Vec<u8>)>,
}

fn samples() -> Vec<Sample> {
    let sample = |(name, model): (&'static str, Model)| {
        let disk = FaultStorage::default();
        drop(model.write(Arc::new(disk.clone()), "db".as_ref()).unwrap());
        let names = disk.list("db".as_ref()).unwrap().into_iter().filter(|name| name != "LOCK");
        let read = |name: String| {
            let path = Path::new("db").join(name);
            let bytes = disk.contents(&path).unwrap();
            (path, bytes)
        };
        let files: Vec<_> = names.map(read).collect();
        let num_bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(num_bytes <= 64 << 10, "{name}: {num_bytes} bytes");
        Sample { name, model, disk, files }
    };
    samples::all().into_iter().map(sample).collect()
}

/// Reads all snapshots of a database with several, as [`read_everything`] does for one.
fn read_all_versions(past: &Past, disk: FaultStorage, pool: &Pool) -> Result<()> {
    let store = Store::open_read_only(Arc::new(disk), "db".as_ref())?;
    past.compare(&store)?;
    let last = past.snapshots.len() - 1;
    past.compare_window(&store, 1, last)?;
    past.compare_diff(&store, last, 1)?;
    store.verify(pool).map(drop)
}

/// The places to damage: all of a manifest, and every third byte of the other files.
fn places(path: &Path, len: usize) -> Vec<usize> {
    let step = if path.ends_with("MANIFEST") { 1 } else { 3 };
    (0..len).filter(|place| place % step == place / 4096 % step).collect()
}

#[test]
fn damage_of_a_database_with_a_past_is_found() {
    damage_versions("versions", samples::versions(), |_| true);
}

#[test]
fn damage_of_properties_of_edges_is_found() {
    // The other files do not depend on rows.
    damage_versions("rows", samples::rows(), |name| name.starts_with("rows-") || name == "MANIFEST");
}

#[test]
fn damage_of_weights_beside_rows_is_found() {
    let is_meant = |name: &str| {
        let is_run = name.ends_with("-rows") || name.ends_with("-weights");
        is_run || name.starts_with("delta-") || name.starts_with("rows-")
    };
    damage_versions("weighted rows", samples::weighted_rows(), is_meant);
}

#[test]
fn damage_of_indexes_is_found() {
    damage_versions("indexes", samples::indexed(), |name| name.starts_with("index-") || name == "MANIFEST");
}

#[test]
fn damage_of_prepared_forms_is_found() {
    damage_versions("prepared", samples::prepared(), |name| name.starts_with("prepared-") || name == "MANIFEST");
}

/// Flips bytes and cuts files, and requires an error that names the file.
fn damage_versions(what: &str, (whole, past): (FaultStorage, Past), is_meant: impl Fn(&str) -> bool) {
    let (pool, serial) = (Pool::new(0).unwrap(), Pool::new(1).unwrap());
    read_all_versions(&past, whole.duplicate(), &serial).unwrap();
    let (mut num_files, mut num_places) = (0, 0);
    for name in whole.list("db".as_ref()).unwrap().into_iter().filter(|name| name != "LOCK" && is_meant(name)) {
        let path = Path::new("db").join(name);
        let bytes = whole.contents(&path).unwrap();
        let places = places(&path, bytes.len());
        (num_files, num_places) = (num_files + 1, num_places + 2 * places.len());
        pool.for_each_chunk(0..places.len(), 16, |_, chunk| {
            for &place in &places[chunk] {
                let mut flipped = bytes.clone();
                flipped[place] ^= 1 << (place % 8);
                for damaged in [&flipped[..], &bytes[..place]] {
                    let disk = whole.duplicate();
                    disk.set_contents(&path, damaged);
                    let place = format!("{}, byte {place} of {}", path.display(), bytes.len());
                    let error = read_all_versions(&past, disk, &serial).expect_err(&place).to_string();
                    assert!(error.contains(&*path.to_string_lossy()), "{place}: {error}");
                }
            }
        });
    }
    println!("damage[{what}]: {num_files} files, {num_places} flips and cuts, all refused by name");
}

/// Damages each file at each place, and requires an error that names the file.
fn damage_everywhere(what: &str, damage: impl Fn(&mut Vec<u8>, usize) + Sync) {
    let pool = Pool::new(0).unwrap();
    for sample in samples() {
        let serial = Pool::new(1).unwrap();
        read_everything(&sample.model, sample.disk.duplicate(), &serial).unwrap();
        let mut num_places = 0;
        for (path, whole) in &sample.files {
            num_places += whole.len();
            pool.for_each_chunk(0..whole.len(), 64, |_, places| {
                for place in places {
                    let mut bytes = whole.clone();
                    damage(&mut bytes, place);
                    let disk = sample.disk.duplicate();
                    disk.set_contents(path, &bytes);
                    let error = read_everything(&sample.model, disk, &serial);
                    let place = format!("{}: {}, byte {place}: {what}", sample.name, path.display());
                    let error = error.expect_err(&place).to_string();
                    assert!(error.contains(&*path.to_string_lossy()), "{place}: {error}");
                }
            });
        }
        println!("damage[{what} {}]: {num_places} places, all refused by name", sample.name);
    }
}

#[test]
fn a_flipped_bit_is_found() {
    // Another bit in each byte, so that neighbors do not hide a blind spot.
    damage_everywhere("flipped", |bytes, place| bytes[place] ^= 1 << (place % 8));
}

#[test]
fn a_cut_file_is_found() {
    damage_everywhere("cut", |bytes, place| bytes.truncate(place));
}

#[test]
fn a_missing_or_foreign_file_is_found() {
    let pool = Pool::new(1).unwrap();
    for sample in samples() {
        for (path, bytes) in &sample.files {
            let disk = sample.disk.duplicate();
            disk.remove_file(path).unwrap();
            let error = read_everything(&sample.model, disk, &pool).unwrap_err().to_string();
            assert!(error.contains("db"), "{error}");

            let disk = sample.disk.duplicate();
            disk.set_contents(path, &[&bytes[..], &[7]].concat());
            let answer = read_everything(&sample.model, disk, &pool);
            assert!(answer.is_err(), "a byte more in {}", path.display());
        }
    }
}

/// If lists are read one by one, only readers of the damaged list get the error.
#[test]
fn degrees_read_no_list() {
    for sample in samples() {
        let is_lists = |path: &PathBuf| path.to_string_lossy().ends_with("-out");
        let (path, bytes) = sample.files.iter().find(|(path, _)| is_lists(path)).unwrap();
        if sample.model.csr.num_arcs() == 0 {
            continue;
        }
        let disk = sample.disk.duplicate();
        let mut flipped = bytes.clone();
        // The first section begins after the header.
        flipped[4096] ^= 1;
        disk.set_contents(path, &flipped);
        let store = Store::open_read_only(Arc::new(disk), "db".as_ref()).unwrap();
        let view = store.view().unwrap().with_hook(Some(Arc::new(Deaf)));
        let bound = view.vertex_bound() as u32;
        let num_entries: usize = (0..bound).map(|vertex| view.degree(Direction::Out, vertex)).sum();
        assert_eq!((num_entries as u64, view.check().is_ok()), (view.num_arcs(), true), "{}", sample.name);
        for vertex in 0..bound {
            let _ = view.for_each_fragment(Direction::Out, vertex, |_| std::ops::ControlFlow::Continue(()));
            let _ = view.for_each_fragment(Direction::In, vertex, |_| std::ops::ControlFlow::Continue(()));
        }
        assert!(view.check().unwrap_err().to_string().contains("-out: damaged at byte 4096"), "{}", sample.name);
    }
}
