//! Writes the deltas of a plan, and packs small files on the way.
//!
//! A delta of a few edges would take a file of several kilobytes. So sixteen small files become one, sixteen of those
//! become one, and so on while they are small. The number of files grows with the logarithm of the number of deltas,
//! and a delta is rewritten that many times. If retention drops snapshots, sixty-four files become one. A file is also
//! rewritten once most of its bytes belong to unused deltas.

use anden_graph::Direction;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::append::DeltaChanges;
use super::draft::Draft;
use super::{PublishedState, net_counts};
use crate::chain::{Chain, ChainPlan, Composition, DeltaRef};
use crate::delta::{Delta, DeltaFile, DeltaWriter, Spill, compose_deltas};
use crate::file::{FileKind, FramedFile, WrittenFile};
use crate::options::{GraphOptions, Retention};
use crate::{Error, Result};

/// Number of small files that become one.
const PACK_FILES: usize = 16;

/// As [`PACK_FILES`], if retention drops snapshots: most of their deltas are soon composed with others, so few files
/// last.
const PACK_PASSING_FILES: usize = 64;

/// Files of at least this size are not small.
pub(crate) const SMALL_FILE_BYTES: u64 = 1 << 20;

/// A packed file takes no further delta once it has this size.
const PACKED_FILE_BYTES: u64 = 16 << 20;

/// A packed file takes at most one part in this many of the memory budget, because it is held in memory as a whole.
const PACKED_SHARE: u64 = 16;

/// Approximate bytes of the frame of a file.
const FRAME_BYTES: u64 = 5000;

/// Approximate bytes of a delta in its file.
pub(super) fn estimated_bytes(changes: &DeltaChanges<'_>, options: &GraphOptions) -> u64 {
    let arcs = [changes.out_added, changes.out_removed, changes.in_added, changes.in_removed];
    let num_arcs: u64 = arcs.iter().map(|arcs| arcs.len() as u64).sum();
    let num_vertices = (changes.died.len() + changes.returned.len()) as u64;
    // Pessimistic: each arc may have a list of its own, and its share of a page.
    let properties: u64 = changes.properties.iter().map(|column| column.as_ref().num_bytes() as u64).sum();
    num_arcs * (4 + options.data_bytes() as u64 + 8) + num_vertices * 4 + properties
}

/// One delta to write.
struct DeltaJob<'a> {
    /// Name of the delta in the plan.
    key: DeltaRef,
    from: u32,
    to: u32,
    num_bytes: u64,
    source: DeltaSource<'a>,
}

enum DeltaSource<'a> {
    New(&'a DeltaChanges<'a>),
    Composed(Vec<Delta>),
    Moved(Delta),
}

impl Draft<'_> {
    /// Writes the deltas of a plan; returns the chain with the places of all deltas and with counted edges.
    ///
    /// # Errors
    /// A delta is damaged, the changes break a rule, or the disk failed.
    pub fn carry_out(&mut self, plan: ChainPlan, new: Option<&DeltaChanges<'_>>) -> Result<Chain> {
        let ChainPlan { mut chain, compositions, recounts } = plan;
        let options = self.store.options;
        let mut jobs = Vec::new();
        if let Some(changes) = new {
            let newest = self.state.manifest.chain.newest().number;
            let (from, to) = (newest, chain.newest().number);
            let num_bytes = estimated_bytes(changes, &options);
            jobs.push(DeltaJob { key: DeltaRef::NEW, from, to, num_bytes, source: DeltaSource::New(changes) });
        }
        for (index, composition) in compositions.iter().enumerate() {
            jobs.push(self.composition(index, composition)?);
        }
        jobs.extend(moves(&self.state, &chain, jobs.iter().any(|job| job.num_bytes < SMALL_FILE_BYTES)));
        jobs.sort_by_key(|job| (job.to, job.from));
        let (places, written) = self.write_jobs(jobs)?;
        chain.relocate(&places);
        self.recount(&mut chain, &recounts, &written)?;
        Ok(chain)
    }

    /// Writes consecutive deltas as one, in a file of its own.
    pub fn write_composed(&mut self, deltas: Vec<Delta>, from: u32, to: u32) -> Result<DeltaRef> {
        let key = DeltaRef::composed(0);
        let num_bytes = deltas.iter().map(Delta::num_bytes).sum();
        let (places, _) =
            self.write_jobs(vec![DeltaJob { key, from, to, num_bytes, source: DeltaSource::Composed(deltas) }])?;
        Ok(places[&key])
    }

    fn composition(&self, index: usize, composition: &Composition) -> Result<DeltaJob<'static>> {
        let Composition { from, to, parts } = composition;
        let delta = |&part: &DeltaRef| {
            let delta = self.state.delta_at(part).cloned();
            delta.ok_or_else(|| Error::Input(format!("there is no delta {part:?}")))
        };
        let deltas = parts.iter().map(delta).collect::<Result<Vec<_>>>()?;
        let num_bytes = deltas.iter().map(Delta::num_bytes).sum();
        let key = DeltaRef::composed(index as u32);
        Ok(DeltaJob { key, from: *from, to: *to, num_bytes, source: DeltaSource::Composed(deltas) })
    }

    /// Writes a job, and counts the bytes of new changes.
    fn write(&mut self, job: &DeltaJob<'_>, writer: &mut DeltaWriter) -> Result<()> {
        let num_before = writer.num_bytes();
        job.write(writer, &self.store.options)?;
        if job.key == DeltaRef::NEW {
            self.num_new_bytes += writer.num_bytes() - num_before;
        }
        Ok(())
    }

    fn delta_writer(&self, number: u32) -> Result<DeltaWriter> {
        let id = self.state.manifest.created.id;
        DeltaWriter::create(&*self.store.storage, &self.store.path, &self.store.options, id, number)
    }

    /// Opens a file that still has its temporary name.
    fn open_deltas(&self, file: &WrittenFile) -> Result<DeltaFile> {
        let id = self.state.manifest.created.id;
        let file = FramedFile::open(&*self.store.storage, &file.path, FileKind::Delta, id)?;
        DeltaFile::open(&file, &self.store.options)
    }

    /// Writes the deltas, small ones together; returns their places, and the files.
    fn write_jobs(
        &mut self,
        jobs: Vec<DeltaJob<'_>>,
    ) -> Result<(HashMap<DeltaRef, DeltaRef>, HashMap<u32, WrittenFile>)> {
        let mut places = HashMap::new();
        let mut files = HashMap::new();
        let mut jobs = jobs.into_iter().peekable();
        let most_bytes = self.store.memory().map_or(u64::MAX, |memory| memory / PACKED_SHARE).min(PACKED_FILE_BYTES);
        while let Some(first) = jobs.peek() {
            // A large delta has a file of its own, so that packing never copies it.
            let is_large = first.num_bytes >= SMALL_FILE_BYTES;
            let number = self.next_file();
            let mut writer = self.delta_writer(number)?;
            // A composed delta may be larger than the memory budget, so its columns go through scratch files.
            if is_large && matches!(first.source, DeltaSource::Composed(_)) && self.store.memory().is_some() {
                let (storage, directory) = (Arc::clone(&self.store.storage), self.store.path.clone());
                writer = writer.spilling(Spill::new(storage, directory, number));
            }
            let (mut index, mut num_bytes) = (0, 0);
            let fits = |job: &DeltaJob<'_>, index: u32, num_bytes: u64| {
                // A file takes its first delta whatever its size; others join while all are small.
                let joins = !is_large && job.num_bytes < SMALL_FILE_BYTES && num_bytes < most_bytes;
                index == 0 || joins
            };
            while let Some(job) = jobs.next_if(|job| fits(job, index, num_bytes)) {
                num_bytes += job.num_bytes;
                self.write(&job, &mut writer)?;
                places.insert(job.key, DeltaRef { file: number, index });
                index += 1;
            }
            let file = writer.finish_telling(self.progress)?;
            self.add(file.clone());
            files.insert(number, file);
        }
        Ok((places, files))
    }

    /// Counts the edges that these versions add and remove, from the deltas that were just written.
    fn recount(&self, chain: &mut Chain, numbers: &[u32], files: &HashMap<u32, WrittenFile>) -> Result<()> {
        let mut opened: HashMap<u32, DeltaFile> = HashMap::new();
        for &number in numbers {
            let mut deltas = Vec::new();
            for place in chain.deltas_between(chain.kept_before(number).unwrap_or(0), number) {
                // Deltas of this change are in no published state, so their file is opened here.
                if let Some(file) = files.get(&place.file)
                    && !opened.contains_key(&place.file)
                {
                    opened.insert(place.file, self.open_deltas(file)?);
                }
                let delta = match opened.get(&place.file) {
                    Some(file) => file.deltas().get(place.index as usize),
                    None => self.state.delta_at(place),
                };
                deltas.push(delta.cloned().ok_or_else(|| Error::Input(format!("there is no delta {place:?}")))?);
            }
            let (num_added, num_removed) = net_counts(&deltas, &self.store.options)?;
            if let Some(index) = chain.index(number) {
                chain.versions[index].num_added = num_added;
                chain.versions[index].num_removed = num_removed;
            }
        }
        Ok(())
    }
}

impl DeltaJob<'_> {
    fn write(&self, writer: &mut DeltaWriter, options: &GraphOptions) -> Result<()> {
        match &self.source {
            DeltaSource::New(changes) => {
                let DeltaChanges { vertex_bound, died, returned, .. } = **changes;
                writer.begin_delta(self.from, self.to, vertex_bound, died, returned)?;
                writer.append_arcs(Direction::Out, changes.out_added, changes.out_removed)?;
                if options.stores_in_lists() {
                    writer.append_arcs(Direction::In, changes.in_added, changes.in_removed)?;
                }
                let mut properties = changes.properties.iter();
                properties.try_for_each(|column| writer.append_properties(column.column(), column.as_ref()))
            }
            DeltaSource::Composed(deltas) => compose_deltas(deltas, writer, options),
            DeltaSource::Moved(delta) => writer.append_delta(delta),
        }
    }
}

/// The deltas that move to another file: those of files that are mostly unused, and of small files once there are
/// enough of them. `is_joined`: at least one small delta is written anyway.
fn moves(state: &PublishedState, chain: &Chain, is_joined: bool) -> Vec<DeltaJob<'static>> {
    let pack_files = match state.manifest.retention {
        Retention::All => PACK_FILES,
        _ => PACK_PASSING_FILES,
    };
    let mut live: BTreeMap<u32, Vec<DeltaRef>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for place in chain.delta_refs().filter(|place| state.delta_at(*place).is_some() && seen.insert(*place)) {
        live.entry(place.file).or_default().push(place);
    }
    let mut moved = Vec::new();
    let mut tiers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&file, places) in &live {
        let num_bytes: u64 = state.deltas_of(file).iter().map(Delta::num_bytes).sum();
        let live_bytes: u64 = places.iter().map(|&place| state.delta(place).num_bytes()).sum();
        // At most half of the bytes of a file are unused.
        if live_bytes * 2 < num_bytes {
            moved.push(file);
        } else if num_bytes + FRAME_BYTES < SMALL_FILE_BYTES {
            tiers.entry(places.len().ilog(pack_files)).or_default().push(file);
        }
    }
    let mut num_joining = usize::from(is_joined || !moved.is_empty());
    for tier in 0.. {
        let Some(files) = tiers.get(&tier) else { break };
        if files.len() + num_joining < pack_files {
            break;
        }
        moved.extend(files);
        // The packed files become one file of the next tier, which may then be full, too.
        num_joining = 1;
    }
    let places = moved.iter().flat_map(|file| &live[file]);
    let job = |&key: &DeltaRef| {
        let delta = state.delta(key).clone();
        let num_bytes = delta.num_bytes();
        DeltaJob { key, from: delta.from(), to: delta.to(), num_bytes, source: DeltaSource::Moved(delta) }
    };
    places.map(job).collect()
}
