//! Takes out of a package's files what a guest needs: the image and some modules.

use std::collections::BTreeSet;
use std::io::{BufReader, Read};

use super::error::Problem;
use super::module::{self, Module, Modules};
use super::vmlinuz::{self, Arch, MAX_IMAGE};
use crate::util::compressed::{Bounded, unpack};

/// The most that a package may unpack to. Debian's 6.1 for PCs, whose modules are not
/// compressed, has 410 million bytes.
pub(super) const MAX_UNPACKED: u64 = 1 << 30;

/// The largest module: those of a distribution have up to ten million bytes.
const MAX_MODULE: u64 = 64 << 20;

/// The most that is taken out of a package: an image, and modules.
const MAX_KEPT: u64 = 512 << 20;

/// The most modules that are taken out of a package.
const MAX_MODULES: usize = 256;

/// What was found in a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// The release; none if the file does not tell.
    pub release: Option<String>,
    /// The machine that it is for.
    pub arch: Arch,
    /// The image.
    pub kernel: Option<Vec<u8>>,
    /// The wanted modules, and those that they need.
    pub modules: Modules,
}

/// Sees the files of a package, one after the other.
pub(super) struct Collector {
    /// Names of modules: those that the guest wants, and those that they need.
    wanted: BTreeSet<String>,
    release: Option<String>,
    arch: Option<Arch>,
    kernel: Option<Vec<u8>>,
    modules: Modules,
    /// The bytes of image and modules.
    kept: u64,
    /// Packages that this one depends on and that may contain a kernel.
    requires: Vec<String>,
}

impl Collector {
    pub fn new(wanted: &[&str]) -> Self {
        Self {
            wanted: wanted.iter().map(|name| (*name).to_owned()).collect(),
            release: None,
            arch: None,
            kernel: None,
            modules: Modules::new(),
            kept: 0,
            requires: Vec::new(),
        }
    }

    /// The wanted modules that were not found. Found ones have added to them.
    pub fn missing(&self) -> BTreeSet<String> {
        let missing = self.wanted.iter();
        missing
            .filter(|name| !self.modules.contains_key(*name))
            .cloned()
            .collect()
    }

    /// What was found.
    pub fn finish(self) -> Result<Found, Problem> {
        match self.arch {
            Some(arch) => Ok(Found {
                release: self.release,
                arch,
                kernel: self.kernel,
                modules: self.modules,
            }),
            None => Err(Problem::Nothing(self.requires)),
        }
    }

    /// Sees a dependency of the package.
    pub fn requires(&mut self, package: &str) {
        let kernels = ["linux-image-", "linux-binary-", "linux-modules-"];
        if kernels.iter().any(|kernel| package.starts_with(kernel)) {
            self.requires.push(package.to_owned());
        }
    }

    /// Sees an image without a package. Returns its release, if it tells that.
    pub fn image(&mut self, contents: impl Read) -> Result<Option<String>, Problem> {
        if self.kernel.is_none() {
            let image = self.read(contents, MAX_IMAGE)?;
            self.is_for(Arch::of_image(&image).ok_or(Problem::NotAKernel)?)?;
            self.release = vmlinuz::release(&image);
            self.kernel = Some(image);
        }
        Ok(self.release.clone())
    }

    /// Sees a file; a path may begin with `/` or `./`.
    pub fn file(&mut self, path: &str, contents: &mut dyn Read) -> Result<(), Problem> {
        let path = path.strip_prefix('.').unwrap_or(path);
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.starts_with("usr/lib/debug/") {
            return Err(Problem::DebugSymbols);
        }
        if let Some(release) = path.strip_prefix("boot/vmlinuz-") {
            return self.kernel(path, release, contents);
        }
        let path = path.strip_prefix("usr/").unwrap_or(path);
        let inner = path.strip_prefix("lib/modules/");
        match inner.and_then(|inner| inner.split_once('/')) {
            Some((release, "vmlinuz")) => self.kernel(path, release, contents),
            Some((release, inner)) => match module::name_of(inner) {
                Some(name) => self.module(path, release, &name, contents),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn kernel(
        &mut self,
        path: &str,
        release: &str,
        contents: &mut dyn Read,
    ) -> Result<(), Problem> {
        if self.kernel.is_none() {
            self.is_of(release)?;
            let image = self.read(contents, MAX_IMAGE)?;
            let foreign = || Problem::Foreign(path.to_owned());
            self.is_for(Arch::of_image(&image).ok_or_else(foreign)?)?;
            self.kernel = Some(image);
        }
        Ok(())
    }

    fn module(
        &mut self,
        path: &str,
        release: &str,
        name: &str,
        contents: &mut dyn Read,
    ) -> Result<(), Problem> {
        if !self.wanted.contains(name) || self.modules.contains_key(name) {
            return Ok(());
        }
        if self.modules.len() == MAX_MODULES {
            let text = format!("a guest would need more than {MAX_MODULES} modules");
            return Err(Problem::Malformed(text));
        }
        self.is_of(release)?;
        let bytes = self.read(unpack(BufReader::new(contents))?, MAX_MODULE)?;
        let foreign = || Problem::Foreign(path.to_owned());
        let module = Module::new(name, bytes).ok_or_else(foreign)?;
        self.is_for(module.arch().ok_or_else(foreign)?)?;
        self.wanted.extend(module.after.iter().cloned());
        self.modules.insert(name.to_owned(), module);
        Ok(())
    }

    /// All files are of one release.
    fn is_of(&mut self, release: &str) -> Result<(), Problem> {
        if !vmlinuz::is_release(release) {
            let text = format!("`{}` is not a release", release.escape_default());
            return Err(Problem::Malformed(text));
        }
        let known = self.release.get_or_insert_with(|| release.to_owned());
        if known == release {
            return Ok(());
        }
        let text = format!("files of two kernels, {known} and {release}");
        Err(Problem::Malformed(text))
    }

    /// All files are for one machine.
    fn is_for(&mut self, arch: Arch) -> Result<(), Problem> {
        if *self.arch.get_or_insert(arch) == arch {
            return Ok(());
        }
        let text = "files for x86-64 and for arm64";
        Err(Problem::Malformed(text.to_owned()))
    }

    fn read(&mut self, contents: impl Read, limit: u64) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        let limit = limit.min(MAX_KEPT.saturating_sub(self.kept));
        Bounded::new(contents, limit).read_to_end(&mut bytes)?;
        self.kept = self.kept.saturating_add(bytes.len() as u64);
        Ok(bytes)
    }
}
