//! Prepared forms beside the base: what kernels make of its version, stored on request.
//!
//! A form is never needed for correctness, since a kernel can make it anew. So its file is not opened with the
//! database, and a reader goes on without a file that is missing or damaged. A form belongs to the base's version:
//! publishing another base retires it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anden_base::checksum::CheckedBytes;
use anden_base::mapped::Advice;
use anden_base::parallel::Pool;
use anden_base::progress::Progress;
use anden_base::storage::Storage;
use anden_graph::{StoredFormKey, StoredFormReader};

use super::Store;
use super::merge::AsideFilesGuard;
use super::state::{open_file, read_manifest};
use crate::file::{FileKind, FileWriter, FramedFile, SectionKind, WrittenFile};
use crate::manifest::{FileRecord, Manifest, PreparationRecord};
use crate::options::DatabaseId;
use crate::view::SnapshotView;
use crate::{Error, Result, names};

/// Bytes that are written between two looks at the progress.
const WRITTEN_BYTES: usize = 8 << 20;

/// The stored forms of one version. The files are opened when they are read.
#[derive(Clone, Debug)]
pub struct StoredForms {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    id: DatabaseId,
    version: u32,
    forms: Vec<(StoredFormKey, FileRecord)>,
}

/// An open file with a stored form. Its bytes are not verified yet.
#[derive(Debug)]
pub struct StoredFormFile(FramedFile);

impl Store {
    /// The number of the base's version.
    pub fn base_version(&self) -> u32 {
        self.state().manifest.chain.anchor
    }

    /// The graph at the base's version, which may be no snapshot any more.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    pub fn base_view(&self) -> Result<SnapshotView> {
        let state = self.state();
        state.view(state.manifest.chain.anchor, &self.path)
    }

    /// The forms that are stored; `None` if there are none.
    pub fn stored_forms(&self) -> Option<StoredForms> {
        let state = self.state();
        let manifest = &state.manifest;
        // Most databases store no form, and each view asks.
        if manifest.preparations.is_empty() {
            return None;
        }
        let record = |preparation: &PreparationRecord| {
            let name = names::preparation(preparation.file);
            Some((preparation.key, manifest.files.iter().find(|file| file.name == name)?.clone()))
        };
        Some(StoredForms {
            storage: Arc::clone(&self.storage),
            directory: self.path.clone(),
            id: manifest.created.id,
            version: manifest.chain.anchor,
            forms: manifest.preparations.iter().filter_map(record).collect(),
        })
    }

    /// Stores a form of the base's version, in place of an older copy of the form. When this returns, the form survives
    /// a power cut. Returns the bytes of its file. Other threads can write meanwhile; merges wait.
    ///
    /// # Errors
    /// `version` is not that of the base any more; the handle is read-only or poisoned; the disk failed; or `progress`
    /// cancelled it. The database is then unchanged.
    pub fn store_form(
        &self,
        version: u32,
        key: StoredFormKey,
        arrays: &[Vec<&[u8]>],
        progress: &dyn Progress,
    ) -> Result<u64> {
        // A merge would replace the base. Files that are set aside are those of one thread, too.
        let merging = self.merging.lock();
        let mut draft = self.begin()?;
        if draft.state.manifest.chain.anchor != version {
            draft.end();
            let what = format!("cannot store {key}: a merge replaced the base of version {version}; prepare again");
            return Err(Error::Input(what));
        }
        // Made before the file, so that an error on any path below removes it.
        let aside = AsideFilesGuard(self);
        let number = draft.set_aside(|number| vec![names::preparation(number)]);
        // The file may be large, and checkpoints need not wait for it.
        draft.end();
        let file = self.write_form(number, arrays, progress)?;
        let num_bytes = file.len;
        let mut draft = self.begin()?;
        let mut manifest = draft.state.manifest.clone();
        manifest.preparations.retain(|record| record.key != key);
        manifest.preparations.push(PreparationRecord { key, file: number, version });
        draft.add_aside(vec![file]);
        draft.spare_maintenance();
        draft.publish(manifest)?;
        drop((aside, merging));
        Ok(num_bytes)
    }

    fn write_form(&self, number: u32, arrays: &[Vec<&[u8]>], progress: &dyn Progress) -> Result<WrittenFile> {
        let path = self.path.join(names::temporary(&names::preparation(number)));
        let mut writer = FileWriter::create(&*self.storage, &path)?;
        for pieces in arrays {
            writer.begin_section(SectionKind::PreparationArray)?;
            for part in pieces.iter().flat_map(|piece| piece.chunks(WRITTEN_BYTES)) {
                progress.check()?;
                writer.append(part)?;
                progress.wrote(part.len() as u64);
            }
        }
        writer.finish(FileKind::Preparation, self.id())
    }
}

impl StoredForms {
    /// The number of the version.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The forms, with the bytes of their files.
    pub fn list(&self) -> impl Iterator<Item = (StoredFormKey, u64)> {
        self.forms.iter().map(|(key, file)| (*key, file.len))
    }

    /// Opens the file of a form; `None` if the form is not stored.
    ///
    /// # Errors
    /// The file is missing or damaged, or not the one that the manifest names.
    pub fn open(&self, key: StoredFormKey) -> Option<Result<StoredFormFile>> {
        let (_, record) = self.forms.iter().find(|(stored, _)| *stored == key)?;
        Some(open_file(&*self.storage, &self.directory, self.id, record).and_then(StoredFormFile::new))
    }

    /// Verifies a form and passes its arrays to `take`, if the form is stored. A missing or damaged file, and an error
    /// of `take`, become an event: the caller prepares the form anew.
    pub fn read(&self, key: StoredFormKey, pool: &Pool, take: &mut StoredFormReader<'_>) {
        let Some(file) = self.open(key) else { return };
        let taken = file.and_then(|file| {
            file.verify(pool)?;
            take(&file.arrays()).map_err(|what| file.0.corrupt(what))
        });
        if let Err(error) = taken {
            tracing::warn!(form = %key, %error, "a stored form cannot be read and is prepared anew");
        }
    }
}

impl StoredFormFile {
    fn new(file: FramedFile) -> Result<Self> {
        let has_arrays_only = file.kinds().all(|kind| kind == SectionKind::PreparationArray as u32);
        if has_arrays_only { Ok(Self(file)) } else { Err(file.corrupt("a section is no array of a form")) }
    }

    /// Verifies all bytes.
    ///
    /// # Errors
    /// The first damaged block.
    pub fn verify(&self, pool: &Pool) -> Result<()> {
        // All bytes are needed at once, so the disk reads ahead of the checksums.
        self.0.sections().for_each(|section| section.bytes().advise(Advice::WillNeed));
        self.0.verify(pool)
    }

    /// The arrays of the form.
    pub fn arrays(&self) -> Vec<&[u8]> {
        self.0.sections().map(CheckedBytes::bytes).map(|bytes| bytes.as_slice()).collect()
    }

    /// An error about the content of the file.
    pub fn corrupt(&self, what: &str) -> Error {
        self.0.corrupt(what)
    }
}

/// Verifies the files of all prepared forms that a manifest names.
pub(crate) fn verify_preparations(storage: &dyn Storage, path: &Path, manifest: &Manifest, pool: &Pool) -> Result<()> {
    for record in manifest.files.iter().filter(|record| record.kind == FileKind::Preparation) {
        match open_file(storage, path, manifest.created.id, record).and_then(StoredFormFile::new) {
            Ok(file) => file.verify(pool)?,
            // A writer may have retired the file since the manifest was read.
            Err(Error::Base(error)) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => {
                let now = Manifest::decode(&read_manifest(storage, path)?, &path.join(names::MANIFEST))?;
                if now.files.contains(record) {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
