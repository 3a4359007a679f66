//! What a guest has to do, and its first file system.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cpio::Archive;
use super::elf;
use super::error::GuestError;
use super::kernels::{Arch, Image};
use super::libraries::needs;
use crate::kernel::init::memory_file;

/// The guest's first program, which is bpflab.
pub(super) const INIT: &str = "/init";
/// The job, as JSON.
pub(super) const FILE: &str = "/job.json";
/// The folder of the modules, which are named by their place in the order of loading.
pub(super) const MODULES: &str = "/modules";

/// A command for a guest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The program; bpflab itself if none is named.
    pub program: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// Names and values of the environment.
    pub environment: Vec<(String, String)>,
    /// Files that the command writes and that come back, or folders with all that is in them:
    /// absolute paths.
    pub outputs: Vec<PathBuf>,
    /// How many modules there are.
    pub modules: usize,
    /// Memory of the guest beside its first file system, in MiB.
    #[serde(skip)]
    pub memory: u64,
    /// Files to copy into the guest, and folders with all that is in them, each to its own path.
    #[serde(skip)]
    pub files: Vec<PathBuf>,
    /// Programs to copy into the guest, with what they need to start.
    #[serde(skip)]
    pub programs: Vec<PathBuf>,
    /// A bpflab for the guest's machine, if that is another than this one's.
    #[serde(skip)]
    pub bpflab: Option<PathBuf>,
    /// Folders that are there in the guest, empty but for the files above.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
}

impl Job {
    /// The guest's first file system, in memory, from its beginning.
    ///
    /// # Errors
    /// A file that can't be read, or a library that is missing.
    pub(super) fn file_system(&self, image: &Image) -> Result<File, GuestError> {
        let memory = memory_file(c"initramfs").map_err(GuestError::Start)?;
        let mut archive = Archive::new(BufWriter::new(memory));
        self.fill(&mut archive, image)?;
        let written = archive.finish().and_then(|sink| Ok(sink.into_inner()?));
        let rewound = written.and_then(|mut file| {
            file.rewind()?;
            Ok(file)
        });
        rewound.map_err(GuestError::Start)
    }

    fn fill<W: Write>(&self, archive: &mut Archive<W>, image: &Image) -> Result<(), GuestError> {
        for folder in ["/dev", "/proc", "/sys", "/tmp", "/run", MODULES] {
            archive
                .folder(Path::new(folder))
                .map_err(GuestError::Start)?;
        }
        let own = match &self.bpflab {
            Some(named) => named.clone(),
            None if image.arch.is_native() => std::env::current_exe().map_err(GuestError::Start)?,
            None => return Err(GuestError::OtherMachine(image.arch)),
        };
        let bytes = read(&own)?;
        archive
            .file(Path::new(INIT), &elf::without_sections(bytes))
            .map_err(GuestError::Start)?;
        libraries(&own, image.arch, archive)?;
        for program in &self.programs {
            copy(program, archive)?;
            libraries(program, image.arch, archive)?;
        }
        for file in &self.files {
            copy_all(file, archive)?;
        }
        for folder in self.folders.iter().chain([&self.folder]) {
            archive.folder(folder).map_err(GuestError::Start)?;
        }
        for (number, module) in image.modules.iter().enumerate() {
            let path = Path::new(MODULES).join(number.to_string());
            archive
                .file(&path, &module.bytes)
                .map_err(GuestError::Start)?;
        }
        let job = Self {
            modules: image.modules.len(),
            ..self.clone()
        };
        let text = serde_json::to_vec(&job).map_err(|error| GuestError::Start(error.into()))?;
        archive
            .file(Path::new(FILE), &text)
            .map_err(GuestError::Start)
    }
}

/// Adds what a program needs to start.
fn libraries<W: Write>(
    program: &Path,
    guest: Arch,
    archive: &mut Archive<W>,
) -> Result<(), GuestError> {
    let needed = needs(program, guest).map_err(|error| GuestError::file(program, error))?;
    needed.iter().try_for_each(|one| {
        let bytes = read(&one.from)?;
        archive.file(&one.to, &bytes).map_err(GuestError::Start)
    })
}

fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    std::fs::read(path).map_err(|error| GuestError::file(path, error))
}

fn copy_all<W: Write>(path: &Path, archive: &mut Archive<W>) -> Result<(), GuestError> {
    if !path.is_dir() {
        return copy(path, archive);
    }
    let entries = std::fs::read_dir(path).map_err(|error| GuestError::file(path, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| GuestError::file(path, error))?.path();
        // Sockets, pipes and devices stay outside; so does what a link leads to elsewhere.
        let kind = std::fs::symlink_metadata(&entry);
        if kind.is_ok_and(|kind| kind.is_dir() || kind.is_file()) {
            copy_all(&entry, archive)?;
        }
    }
    Ok(())
}

fn copy<W: Write>(path: &Path, archive: &mut Archive<W>) -> Result<(), GuestError> {
    let bytes = read(path)?;
    let place = std::path::absolute(path).map_err(|error| GuestError::file(path, error))?;
    let written: io::Result<()> = archive.file(&place, &bytes);
    written.map_err(GuestError::Start)
}
