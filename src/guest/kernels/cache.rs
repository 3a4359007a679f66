//! The cache of kernels: a folder with `ARCH/RELEASE/{vmlinuz,vmlinux,modules/NAME.ko,from}`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::versions::{begins_with, by_version};
use crate::guest::package::{self, Arch, Error, Module, Modules, Problem};

/// The modules that the cache keeps and a guest loads: its way out, disks and network devices for
/// tests, what tc programs attach to, and kfuncs. A kernel has some of them built in.
pub(crate) const MODULES: &[&str] = &[
    "cls_bpf",
    "ifb",
    "loop",
    "nf_conntrack",
    "null_blk",
    "sch_ingress",
    "veth",
    "virtio",
    "virtio_console",
    "virtio_mmio",
    "virtio_pci",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_ring",
];

/// What is in the folder of a kernel's folder.
const IMAGE: &str = "vmlinuz";
/// The kernel in the image, where that starts sooner.
const UNPACKED: &str = "vmlinux";
const MODULE_FOLDER: &str = "modules";
const FROM: &str = "from";

/// A kernel in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cached {
    /// What `uname -r` prints there.
    pub release: String,
    /// The machine that it is for.
    pub arch: Arch,
    /// The size of the image, the kernel in it, and the modules.
    pub bytes: u64,
    /// The names of its modules.
    pub modules: Vec<String>,
    /// The names of the files that it was taken from.
    pub from: Vec<String>,
}

/// The kernels of the cache, oldest release first.
///
/// # Errors
/// The folder can't be read. A folder that does not exist is empty.
pub(crate) fn list(cache: &Path) -> Result<Vec<Cached>, Error> {
    let mut kernels = Vec::new();
    for arch in Arch::ALL {
        let folder = cache.join(arch.name());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::of(&folder, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| Error::of(&folder, error))?;
            // Other names are of folders that are being made, and not ours.
            if let Ok(release) = entry.file_name().into_string()
                && package::is_release(&release)
            {
                kernels.push(Cached::look(cache, arch, release)?);
            }
        }
    }
    kernels.sort_by(order);
    Ok(kernels)
}

impl Cached {
    /// Its folder.
    pub(crate) fn folder(&self, cache: &Path) -> PathBuf {
        cache.join(self.arch.name()).join(&self.release)
    }

    /// What the cache has of a release.
    fn look(cache: &Path, arch: Arch, release: String) -> Result<Self, Error> {
        let mut cached = Self {
            release,
            arch,
            bytes: 0,
            modules: Vec::new(),
            from: Vec::new(),
        };
        let folder = cached.folder(cache);
        cached
            .look_into(&folder)
            .map_err(|error| Error::of(&folder, error))?;
        Ok(cached)
    }

    fn look_into(&mut self, folder: &Path) -> io::Result<()> {
        self.bytes = fs::metadata(folder.join(IMAGE))?.len();
        self.bytes += fs::metadata(folder.join(UNPACKED)).map_or(0, |file| file.len());
        for entry in fs::read_dir(folder.join(MODULE_FOLDER))? {
            let entry = entry?;
            if let Some(name) = entry.file_name().to_string_lossy().strip_suffix(".ko") {
                self.modules.push(name.to_owned());
                self.bytes += entry.metadata()?.len();
            }
        }
        self.modules.sort();
        let from = fs::read_to_string(folder.join(FROM))?;
        self.from = from.lines().map(str::to_owned).collect();
        Ok(())
    }

    /// Reads what a guest starts: the unpacked kernel if it is there, else the image.
    pub(super) fn kernel(&self, cache: &Path) -> Result<Vec<u8>, Error> {
        let unpacked = self.folder(cache).join(UNPACKED);
        match unpacked.exists() {
            true => read(&unpacked),
            false => self.image(cache),
        }
    }

    /// Reads the image.
    fn image(&self, cache: &Path) -> Result<Vec<u8>, Error> {
        read(&self.folder(cache).join(IMAGE))
    }

    /// Reads the modules.
    pub(super) fn modules(&self, cache: &Path) -> Result<Modules, Error> {
        let folder = self.folder(cache).join(MODULE_FOLDER);
        let mut modules = Modules::new();
        for name in &self.modules {
            let file = folder.join(format!("{name}.ko"));
            let Some(module) = Module::new(name, read(&file)?) else {
                return Err(Error::of(&file, Problem::NoObject));
            };
            modules.insert(name.clone(), module);
        }
        Ok(modules)
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| Error::of(file, error))
}

/// The order of a list: by release, then by machine.
fn order(a: &Cached, b: &Cached) -> Ordering {
    by_version(&a.release, &b.release).then(a.arch.cmp(&b.arch))
}

/// Adds the kernels in these files; files of one release are one kernel, and are joined with
/// what the cache has of it. Returns the kernels that were added or changed.
///
/// # Errors
/// A file can't be read or contains no kernel, a release has no image, or the cache can't be
/// written.
pub(crate) fn add(cache: &Path, files: &[PathBuf]) -> Result<Vec<Cached>, Error> {
    let mut kernels: BTreeMap<(Arch, String), New> = BTreeMap::new();
    for file in files {
        let found = package::read(file, MODULES)?;
        let Some(release) = found.release else {
            return Err(Error::of(file, Problem::NoRelease));
        };
        let kernel = kernels.entry((found.arch, release)).or_default();
        kernel.image = found.kernel.or_else(|| kernel.image.take());
        kernel.modules.extend(found.modules);
        kernel.from.insert(package::file_name(file));
    }
    for ((arch, release), kernel) in &mut kernels {
        if cache.join(arch.name()).join(release).exists() {
            let old = Cached::look(cache, *arch, release.clone())?;
            if kernel.image.is_none() {
                kernel.image = Some(old.image(cache)?);
            }
            for (name, module) in old.modules(cache)? {
                kernel.modules.entry(name).or_insert(module);
            }
            kernel.from.extend(old.from);
        } else if kernel.image.is_none() {
            let files: Vec<&str> = kernel.from.iter().map(String::as_str).collect();
            let problem = Problem::NoImage(release.clone());
            return Err(Error::new(files.join(", "), problem));
        }
    }
    let mut added = Vec::new();
    for ((arch, release), kernel) in kernels {
        let folder = cache.join(arch.name()).join(&release);
        kernel
            .write(&folder)
            .map_err(|error| Error::of(&folder, Problem::Unwritable(error)))?;
        added.push(Cached::look(cache, arch, release)?);
    }
    Ok(added)
}

/// Removes the kernel that this version selects, as in [`find`](super::find), and returns it.
///
/// # Errors
/// It selects none or several, or the folder can't be removed.
pub(crate) fn remove(cache: &Path, version: &str) -> Result<Cached, Error> {
    let (kernel, others) = select(cache, version)?;
    if !others.is_empty() {
        let mut all = others;
        all.push(kernel);
        all.sort_by(order);
        return Err(Error::new(version, Problem::Several(names(&all))));
    }
    let folder = kernel.folder(cache);
    fs::remove_dir_all(&folder).map_err(|error| Error::of(&folder, Problem::Unwritable(error)))?;
    Ok(kernel)
}

/// The newest kernel that a version selects, if possible for this machine, and the others. A
/// release in full selects no others.
///
/// # Errors
/// It selects none.
pub(super) fn select(cache: &Path, version: &str) -> Result<(Cached, Vec<Cached>), Error> {
    let (arch, start) = match version.split_once('/') {
        Some((arch, start)) => (Some(arch), start),
        None => (None, version),
    };
    let there = list(cache)?;
    let mut selected = there.clone();
    selected.retain(|kernel| {
        begins_with(&kernel.release, start) && arch.is_none_or(|arch| arch == kernel.arch.name())
    });
    if selected.iter().any(|kernel| kernel.release == start) {
        selected.retain(|kernel| kernel.release == start);
    }
    // The sort is stable: the newest of this machine comes last.
    selected.sort_by_key(|kernel| kernel.arch.is_native());
    match selected.pop() {
        Some(kernel) => Ok((kernel, selected)),
        None => {
            let there = names(&there);
            Err(Error::new(version, Problem::NotThere { there }))
        }
    }
}

/// Kernels as a text that selects them.
fn names(kernels: &[Cached]) -> String {
    let names = kernels.iter();
    let names = names.map(|kernel| format!("{}/{}", kernel.arch.name(), kernel.release));
    names.collect::<Vec<_>>().join(", ")
}

/// What is added to the cache.
#[derive(Default)]
struct New {
    image: Option<Vec<u8>>,
    modules: Modules,
    from: BTreeSet<String>,
}

impl New {
    /// Writes a kernel's folder: who reads it finds the old one, none, or the whole new one.
    fn write(&self, folder: &Path) -> io::Result<()> {
        let parent = folder.parent().unwrap_or(folder);
        let scratch = Scratch::new(parent)?;
        let (new, old) = (scratch.0.join("new"), scratch.0.join("old"));
        fs::create_dir_all(new.join(MODULE_FOLDER))?;
        let image = self.image.as_deref().unwrap_or_default();
        store(&new.join(IMAGE), image)?;
        if let Some(kernel) = package::unpacked(image) {
            store(&new.join(UNPACKED), &kernel)?;
        }
        for (name, module) in &self.modules {
            store(
                &new.join(MODULE_FOLDER).join(format!("{name}.ko")),
                &module.bytes,
            )?;
        }
        let from: String = self.from.iter().map(|file| format!("{file}\n")).collect();
        store(&new.join(FROM), from.as_bytes())?;
        if folder.exists() {
            fs::rename(folder, &old)?;
        }
        fs::rename(&new, folder).inspect_err(|_| {
            // The old one, if there was one.
            let _ = fs::rename(&old, folder);
        })
    }
}

/// Writes a file, so that it is on the disk before its folder gets its name.
fn store(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A folder that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    /// A new folder in this one, with a name that is no release.
    fn new(parent: &Path) -> io::Result<Self> {
        let folder = parent.join(format!(".{}", std::process::id()));
        if folder.exists() {
            // Of a process that was killed.
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing else can be done.
        let _ = fs::remove_dir_all(&self.0);
    }
}
