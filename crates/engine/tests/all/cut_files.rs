//! Files that are cut under their maps, within their last page. The map shows zeros there, and no read may take them for
//! the graph.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use anden_base::parallel::Pool;
use anden_base::progress::{Progress, Silent};
use anden_engine::{
    AppendOptions, BackupOptions, BackupTarget, Changes, Engine, GraphOptions, Maintenance, MergeScope, Missing,
    Result, SnapshotView, Update,
};
use anden_graph::property::PropertyValue;
use anden_graph::{Direction, Graph};
use anden_testkit::FaultStorage;

const PAGE_BYTES: u64 = 4096;
/// As many as make the files of edges and values large enough to be mapped.
const NUM_VERTICES: u64 = 30_000;

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

/// Appends an edge and a value for each vertex.
fn append(db: &Engine, seed: u64) {
    let target = |vertex: u64| (vertex * 7919 + seed) % NUM_VERTICES;
    let age = |vertex: u64| (vertex * 1_000_003 + seed).cast_signed();
    let changes = Changes {
        added: (0..NUM_VERTICES).map(|vertex| (vertex.into(), target(vertex).into(), None)).collect(),
        vertex_properties: (0..NUM_VERTICES).map(|vertex| (vertex.into(), "age".into(), age(vertex).into())).collect(),
        ..Changes::default()
    };
    let options = AppendOptions { maintenance: Maintenance::Never, ..AppendOptions::default() };
    db.append_changes(&changes, &options, &pool(), &Silent).unwrap();
}

/// An edge and a value for each vertex in a base, and one more edge in a delta.
fn make(path: &Path) {
    let db = Engine::create(path, GraphOptions::default()).unwrap();
    append(&db, 1);
    db.merge(MergeScope::All, &pool(), &Silent).unwrap();
    db.apply(&[Update::add_edge(0, 5)], Missing::Lenient, &pool()).unwrap();
    db.checkpoint(None).unwrap();
    db.close().unwrap();
}

/// Sums over all targets and all values.
fn sums(view: &SnapshotView) -> Result<(u64, i64)> {
    let mut of_targets = 0;
    for vertex in 0..view.vertex_bound() as u32 {
        let _ = view.for_each_fragment(Direction::Out, vertex, |targets| {
            of_targets += targets.iter().map(|&target| u64::from(target)).sum::<u64>();
            std::ops::ControlFlow::Continue(())
        });
    }
    let ages = view.properties().column(0)?.unwrap();
    let of_ages = ages.iter().map(|age| if let PropertyValue::I64(age) = age { age } else { 0 }).sum();
    view.check()?;
    Ok((of_targets, of_ages))
}

/// The mapped files that views of the newest snapshot read, and whose last page has more than one byte.
fn mapped_files(path: &Path) -> Vec<(PathBuf, u64)> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let files = files.map(|entry| (entry.path(), entry.metadata().unwrap().len()));
    let is_read = |path: &Path| ["base-", "column-"].iter().any(|begin| name_of(path).starts_with(begin));
    files.filter(|(path, len)| *len > 64 << 10 && len % PAGE_BYTES > 1 && is_read(path)).collect()
}

fn name_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn cut_within_last_page(file: &Path, len: u64) {
    File::options().write(true).open(file).unwrap().set_len(len - len % PAGE_BYTES + 1).unwrap();
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("anden-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn cut_page_is_never_taken_for_zeros() {
    let folder = empty_folder("cut");
    let path = folder.join("db");
    make(&path);
    let expected = sums(&Engine::open_read_only(&path).unwrap().view().unwrap()).unwrap();
    let files = mapped_files(&path);
    assert_eq!(files.len(), 5, "{files:?}");
    for (file, len) in files {
        let whole = fs::read(&file).unwrap();
        let db = Engine::open(&path).unwrap();
        let view = db.view().unwrap();
        // All is verified now, and is not verified again.
        assert_eq!(sums(&view).unwrap(), expected);
        cut_within_last_page(&file, len);

        let name = name_of(&file);
        let expect = |error: String| assert!(error.contains(name), "{name}: {error}");
        expect(view.check().unwrap_err().to_string());
        // What the view read meanwhile may stay in its memory, so the file is not trusted again.
        fs::write(&file, &whole).unwrap();
        expect(sums(&view).unwrap_err().to_string());

        cut_within_last_page(&file, len);
        expect(db.merge(MergeScope::All, &pool(), &Silent).unwrap_err().to_string());
        expect(db.verify(&pool()).unwrap_err().to_string());
        drop((view, db));
        expect(Engine::open(&path).map(drop).unwrap_err().to_string());
        fs::write(&file, whole).unwrap();
        let db = Engine::open(&path).unwrap();
        assert_eq!(sums(&db.view().unwrap()).unwrap(), expected);
        db.verify(&pool()).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn cut_delta_is_not_merged() {
    let folder = empty_folder("cut-delta");
    let path = folder.join("db");
    let db = Engine::create(&path, GraphOptions::default()).unwrap();
    (1..4).for_each(|seed| append(&db, seed));
    let view = db.view().unwrap();
    let expected = sums(&view).unwrap();
    // A block that was verified is not verified again by the merge.
    for vertex in 0..NUM_VERTICES as u32 {
        assert!(view.for_each_fragment(Direction::In, vertex, |_| std::ops::ControlFlow::Continue(())).is_continue());
    }
    let deltas: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    let last = deltas.iter().filter(|path| name_of(path).starts_with("delta-")).max().unwrap();
    let whole = fs::read(last).unwrap();
    cut_within_last_page(last, whole.len() as u64);
    let error = db.merge(MergeScope::Newest(2), &pool(), &Silent).unwrap_err().to_string();
    assert!(error.contains(name_of(last)), "{error}");
    fs::write(last, whole).unwrap();
    drop((view, db));
    let db = Engine::open(&path).unwrap();
    assert_eq!(sums(&db.view().unwrap()).unwrap(), expected);
    db.verify(&pool()).unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// Cuts a file after this many parts were copied.
struct CutsMeanwhile<'a> {
    file: &'a Path,
    len: u64,
    num_parts: AtomicIsize,
}

impl Progress for CutsMeanwhile<'_> {
    fn advance(&self, _: u64) {
        if self.num_parts.fetch_sub(1, Ordering::Relaxed) == 1 {
            cut_within_last_page(self.file, self.len);
        }
    }
}

#[test]
fn cut_during_a_backup_is_noticed() {
    let folder = empty_folder("cut-backup");
    let path = folder.join("db");
    make(&path);
    let (file, len) = mapped_files(&path).into_iter().find(|(file, _)| name_of(file).ends_with("-out")).unwrap();
    let (name, whole) = (name_of(&file), fs::read(&file).unwrap());
    let (mut num_refused, mut num_whole) = (0, 0);
    for place in 1.. {
        let (db, disk) = (Engine::open(&path).unwrap(), FaultStorage::default());
        let progress = CutsMeanwhile { file: &file, len, num_parts: place.into() };
        let target = BackupTarget::Directory("backup".into());
        let copied = db.backup_in(Arc::new(disk.clone()), target, &BackupOptions::default(), &progress);
        drop(db);
        fs::write(&file, &whole).unwrap();
        match copied {
            // The file was copied before.
            Ok(_) => {
                assert_eq!(disk.contents(&Path::new("backup").join(name)).unwrap(), whole, "after {place} parts");
                num_whole += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains(name), "{error}");
                num_refused += 1;
            }
        }
        // There are no more parts.
        if progress.num_parts.into_inner() > 0 {
            break;
        }
    }
    assert!(num_refused > 2 && num_whole > 2, "{num_refused} refused, {num_whole} whole");
    fs::remove_dir_all(folder).unwrap();
}
