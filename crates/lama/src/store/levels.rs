//! Writes the levels that a plan asks for, and packs small files while it is at it.
//!
//! A level of a few edges costs a file of some kilobytes, so sixteen small files become one, sixteen of those become
//! one, and so on while they are small: their number grows with the logarithm of the number of levels, and a level is
//! written that many times. Where a rule gives up snapshots it is sixty-four in the place of sixteen. A file most of
//! whose levels nobody needs any more is written anew too.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use graph::Side;

use super::append::LevelChanges;
use super::draft::Draft;
use super::{State, net_counts};
use crate::chain::{Chain, Composition, LevelRef, Plan};
use crate::file::{FileKind, FramedFile, WrittenFile};
use crate::level::{Level, LevelFile, LevelWriter, Spill, compose_levels};
use crate::options::{GraphOptions, Retention};
use crate::{Error, Result};

/// So many small files become one.
const PACK_FILES: usize = 16;

/// The same where a rule gives up snapshots: most of their levels soon become one with others anyway, and few files
/// would be there for long.
const PACK_PASSING_FILES: usize = 64;

/// Files of at least so many bytes are not small.
pub(crate) const SMALL_FILE_BYTES: u64 = 1 << 20;

/// A packed file is not begun anew before it has so many bytes.
const PACKED_FILE_BYTES: u64 = 16 << 20;

/// Nor of more than this part of the memory that may be used: it is there as a whole.
const PACKED_SHARE: u64 = 16;

/// About the bytes of the frame of a file.
const FRAME_BYTES: u64 = 5000;

/// About the bytes that a level will have in its file.
pub(super) fn estimated_bytes(changes: &LevelChanges<'_>, options: &GraphOptions) -> u64 {
    let arcs = [changes.out_added, changes.out_removed, changes.in_added, changes.in_removed];
    let num_arcs: u64 = arcs.iter().map(|arcs| arcs.len() as u64).sum();
    let num_vertices = (changes.died.len() + changes.returned.len()) as u64;
    // An arc may have a vertex of its own, and its share of a page.
    let properties: u64 = changes.properties.iter().map(|column| column.as_ref().num_bytes() as u64).sum();
    num_arcs * (4 + options.data_bytes() as u64 + 8) + num_vertices * 4 + properties
}

/// What is written as one level.
struct Job<'a> {
    /// What the plan calls the level.
    key: LevelRef,
    from: u32,
    to: u32,
    num_bytes: u64,
    source: Source<'a>,
}

enum Source<'a> {
    New(&'a LevelChanges<'a>),
    Composed(Vec<Level>),
    Moved(Level),
}

impl Draft<'_> {
    /// Writes what the plan asks for, and gives the chain with the places of all levels, its edges counted.
    ///
    /// # Errors
    /// A level is damaged, the changes break a rule, or the disk failed.
    pub fn carry_out(&mut self, plan: Plan, new: Option<&LevelChanges<'_>>) -> Result<Chain> {
        let Plan { mut chain, compositions, recounts } = plan;
        let options = self.store.options;
        let mut jobs = Vec::new();
        if let Some(changes) = new {
            let newest = self.state.manifest.chain.newest().number;
            let (from, to) = (newest, chain.newest().number);
            let num_bytes = estimated_bytes(changes, &options);
            jobs.push(Job { key: LevelRef::NEW, from, to, num_bytes, source: Source::New(changes) });
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

    /// Writes consecutive levels as one, in a file of its own.
    pub fn write_composed(&mut self, levels: Vec<Level>, from: u32, to: u32) -> Result<LevelRef> {
        let key = LevelRef::composed(0);
        let num_bytes = levels.iter().map(Level::num_bytes).sum();
        let (places, _) = self.write_jobs(vec![Job { key, from, to, num_bytes, source: Source::Composed(levels) }])?;
        Ok(places[&key])
    }

    fn composition(&self, index: usize, composition: &Composition) -> Result<Job<'static>> {
        let Composition { from, to, parts } = composition;
        let level = |&part: &LevelRef| {
            let level = self.state.level_at(part).cloned();
            level.ok_or_else(|| Error::Input(format!("there is no level {part:?}")))
        };
        let levels = parts.iter().map(level).collect::<Result<Vec<_>>>()?;
        let num_bytes = levels.iter().map(Level::num_bytes).sum();
        let key = LevelRef::composed(index as u32);
        Ok(Job { key, from: *from, to: *to, num_bytes, source: Source::Composed(levels) })
    }

    /// Writes a job; counts what it has of new changes.
    fn write(&mut self, job: &Job<'_>, writer: &mut LevelWriter) -> Result<()> {
        let num_before = writer.num_bytes();
        job.write(writer, &self.store.options)?;
        if job.key == LevelRef::NEW {
            self.num_new_bytes += writer.num_bytes() - num_before;
        }
        Ok(())
    }

    fn level_writer(&self, number: u32) -> Result<LevelWriter> {
        let id = self.state.manifest.created.id;
        LevelWriter::create(&*self.store.storage, &self.store.path, &self.store.options, id, number)
    }

    /// Opens a file that has no name of its own yet.
    fn open_levels(&self, file: &WrittenFile) -> Result<LevelFile> {
        let id = self.state.manifest.created.id;
        let file = FramedFile::open(&*self.store.storage, &file.path, FileKind::Level, id)?;
        LevelFile::open(&file, &self.store.options)
    }

    /// Writes the levels, small ones together; gives their places, and the files.
    fn write_jobs(&mut self, jobs: Vec<Job<'_>>) -> Result<(HashMap<LevelRef, LevelRef>, HashMap<u32, WrittenFile>)> {
        let mut places = HashMap::new();
        let mut files = HashMap::new();
        let mut jobs = jobs.into_iter().peekable();
        let most_bytes = self.store.memory().map_or(u64::MAX, |memory| memory / PACKED_SHARE).min(PACKED_FILE_BYTES);
        while let Some(first) = jobs.peek() {
            let is_large = first.num_bytes >= SMALL_FILE_BYTES;
            let number = self.next_file();
            let mut writer = self.level_writer(number)?;
            if is_large && matches!(first.source, Source::Composed(_)) && self.store.memory().is_some() {
                let (storage, directory) = (Arc::clone(&self.store.storage), self.store.path.clone());
                writer = writer.spilling(Spill::new(storage, directory, number));
            }
            let (mut index, mut num_bytes) = (0, 0);
            let fits = |job: &Job<'_>, index: u32, num_bytes: u64| {
                let joins = !is_large && job.num_bytes < SMALL_FILE_BYTES && num_bytes < most_bytes;
                index == 0 || joins
            };
            while let Some(job) = jobs.next_if(|job| fits(job, index, num_bytes)) {
                num_bytes += job.num_bytes;
                self.write(&job, &mut writer)?;
                places.insert(job.key, LevelRef { file: number, index });
                index += 1;
            }
            let file = writer.finish_telling(self.progress)?;
            self.add(file.clone());
            files.insert(number, file);
        }
        Ok((places, files))
    }

    /// Counts the edges that these versions add and remove, now that the levels that lead to them are there.
    fn recount(&self, chain: &mut Chain, numbers: &[u32], files: &HashMap<u32, WrittenFile>) -> Result<()> {
        let mut opened: HashMap<u32, LevelFile> = HashMap::new();
        for &number in numbers {
            let mut levels = Vec::new();
            for place in chain.levels_between(chain.kept_before(number).unwrap_or(0), number) {
                if let Some(file) = files.get(&place.file)
                    && !opened.contains_key(&place.file)
                {
                    opened.insert(place.file, self.open_levels(file)?);
                }
                let level = match opened.get(&place.file) {
                    Some(file) => file.levels().get(place.index as usize),
                    None => self.state.level_at(place),
                };
                levels.push(level.cloned().ok_or_else(|| Error::Input(format!("there is no level {place:?}")))?);
            }
            let (num_added, num_removed) = net_counts(&levels, &self.store.options)?;
            if let Some(index) = chain.index(number) {
                chain.versions[index].num_added = num_added;
                chain.versions[index].num_removed = num_removed;
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    fn write(&self, writer: &mut LevelWriter, options: &GraphOptions) -> Result<()> {
        match &self.source {
            Source::New(changes) => {
                let LevelChanges { vertex_bound, died, returned, .. } = **changes;
                writer.begin_level(self.from, self.to, vertex_bound, died, returned)?;
                writer.append_arcs(Side::Out, changes.out_added, changes.out_removed)?;
                if options.stores_in_lists() {
                    writer.append_arcs(Side::In, changes.in_added, changes.in_removed)?;
                }
                let mut properties = changes.properties.iter();
                properties.try_for_each(|column| writer.append_properties(column.column(), column.as_ref()))
            }
            Source::Composed(levels) => compose_levels(levels, writer, options),
            Source::Moved(level) => writer.append_level(level),
        }
    }
}

/// The levels that go to another file: those of files that are mostly needless, and of small files once there are
/// enough of them. `is_joined`: at least one small level is written anyway.
fn moves(state: &State, chain: &Chain, is_joined: bool) -> Vec<Job<'static>> {
    let pack_files = match state.manifest.retention {
        Retention::All => PACK_FILES,
        _ => PACK_PASSING_FILES,
    };
    let mut live: BTreeMap<u32, Vec<LevelRef>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for place in chain.level_refs().filter(|place| state.level_at(*place).is_some() && seen.insert(*place)) {
        live.entry(place.file).or_default().push(place);
    }
    let mut moved = Vec::new();
    let mut tiers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&file, places) in &live {
        let num_bytes: u64 = state.levels_of(file).iter().map(Level::num_bytes).sum();
        let live_bytes: u64 = places.iter().map(|&place| state.level(place).num_bytes()).sum();
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
        num_joining = 1;
    }
    let places = moved.iter().flat_map(|file| &live[file]);
    let job = |&key: &LevelRef| {
        let level = state.level(key).clone();
        let num_bytes = level.num_bytes();
        Job { key, from: level.from(), to: level.to(), num_bytes, source: Source::Moved(level) }
    };
    places.map(job).collect()
}
