//! Writes filtered entries to files of a temporary folder, for results larger than the memory budget.

use std::path::Path;
use std::sync::Arc;

use anden_base::VertexId;
use anden_base::bitmap::Bitmap;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::{DiskStorage, Storage};
use anden_graph::{Direction, Graph, Weight, WeightType};

use crate::base::{AdjacencyFiles, OpenBase};
use crate::base_writer::{BaseWriter, FinishedBase};
use crate::file::{FileKind, FramedFile};
use crate::lists::ListRules;
use crate::options::{DatabaseId, GraphOptions};
use crate::table::PAGE_VERTICES;
use crate::view::entries::Entries;
use crate::view::{EntryFilter, SnapshotView};
use crate::{Error, Result};

/// No database has this id, so no database takes these files for its own.
const ID: DatabaseId = DatabaseId([0; 16]);

/// Pages that each worker filters before all of them are written.
const PAGES_AT_ONCE: usize = 4;

/// Filters the lists page by page, and writes them to files. The files lose their names once they are open, so they
/// vanish with their last view. Each direction is read by itself, so nothing is sorted.
///
/// # Errors
/// Those of `filter`; cancellation; the folder for temporary files cannot be written.
pub(super) fn spill<E: From<Error> + Send>(
    view: &SnapshotView,
    dead: Option<&Bitmap>,
    filter: &EntryFilter<'_, E>,
    pool: &Pool,
    progress: &dyn Progress,
) -> Result<(Arc<OpenBase>, u64), E> {
    let (options, vertex_bound) = (view.options(), view.vertex_bound);
    let folder = tempfile::Builder::new().prefix("anden-part-").tempdir().map_err(|error| {
        Error::from(anden_base::Error::io("create a folder for a filtered view", &std::env::temp_dir(), error))
    })?;
    let storage = DiskStorage.open_dir(folder.path()).map_err(Error::from)?;
    let writer = BaseWriter::create(&*storage, folder.path(), options, ID, vertex_bound, 1)?;
    let mut num_loops = 0;
    let in_adjacency = options.stores_in_lists().then_some(Direction::In);
    for direction in std::iter::once(Direction::Out).chain(in_adjacency) {
        let num_pages = pool.num_threads() * PAGES_AT_ONCE;
        for start in (0..vertex_bound).step_by(num_pages * PAGE_VERTICES) {
            progress.check().map_err(Error::from)?;
            let vertices = start..vertex_bound.min(start + num_pages * PAGE_VERTICES);
            let pages = pool.map_chunks(vertices, PAGE_VERTICES, |_, vertices| {
                let mut degrees = vec![0; vertices.len()];
                let first = vertices.start;
                let vertices = first as VertexId..vertices.end as VertexId;
                let entries = view.kept_in_page(direction, vertices, dead, filter)?;
                entries.sources.iter().for_each(|&source| degrees[source as usize - first] += 1);
                Ok::<_, E>((degrees, entries))
            });
            // Pages are written in their order, because each file is one stream.
            for page in pages {
                let (degrees, entries) = page?;
                append(&writer, direction, &degrees, &entries)?;
                let is_loop =
                    |(source, target): &(&VertexId, &VertexId)| direction == Direction::Out && source == target;
                num_loops += entries.sources.iter().zip(&entries.targets).filter(is_loop).count() as u64;
            }
        }
    }
    // Damaged lists look empty, and must not make a result that looks whole.
    view.check().map_err(Error::from)?;
    // Opened before `folder` is dropped, which removes the names.
    let base = open(&*storage, &writer.finish()?, options, vertex_bound)?;
    Ok((base, num_loops))
}

fn append(writer: &BaseWriter, direction: Direction, degrees: &[u32], entries: &Entries) -> Result<()> {
    fn typed<W: Weight>(bits: &[u64]) -> Vec<W> {
        bits.iter().map(|&bits| W::of_bits(bits)).collect()
    }
    let Entries { targets, weights, rows, .. } = entries;
    match writer.weight_type() {
        None => writer.append::<u32>(direction, degrees, targets, &[], rows),
        Some(WeightType::U32) => writer.append(direction, degrees, targets, &typed::<u32>(weights), rows),
        Some(WeightType::I64) => writer.append(direction, degrees, targets, &typed::<i64>(weights), rows),
        Some(WeightType::F32) => writer.append(direction, degrees, targets, &typed::<f32>(weights), rows),
        Some(WeightType::F64) => writer.append(direction, degrees, targets, &typed::<f64>(weights), rows),
    }
}

/// Opens the files of a base.
fn open(
    storage: &dyn Storage,
    base: &FinishedBase,
    options: &GraphOptions,
    vertex_bound: usize,
) -> Result<Arc<OpenBase>> {
    let file = |kind: FileKind| -> Result<Arc<FramedFile>> {
        let file = base.files.iter().find(|file| file.kind == kind);
        let path: &Path = &file.ok_or_else(|| Error::Input("a file of a filtered view is missing".into()))?.path;
        Ok(Arc::new(FramedFile::open(storage, path, kind, ID)?))
    };
    let files = |direction: Direction| -> Result<AdjacencyFiles> {
        Ok(AdjacencyFiles {
            table: file(FileKind::table(direction))?,
            targets: file(FileKind::targets(direction))?,
            weights: match options.weight_type {
                Some(weight_type) => Some((file(FileKind::weights(direction))?, weight_type)),
                None => None,
            },
            rows: options.has_rows().then(|| file(FileKind::rows(direction))).transpose()?,
        })
    };
    let in_files = options.stores_in_lists().then(|| files(Direction::In)).transpose()?;
    let rules = ListRules { vertex_bound, multigraph: options.multigraph };
    OpenBase::open(&files(Direction::Out)?, in_files.as_ref(), rules, 0)
}
