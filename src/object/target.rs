//! The kernel that programs are relocated for: its BTF resolves CO-RE relocations, kfuncs,
//! kernel variables and attach targets.

use std::path::Path;
use std::sync::OnceLock;

use super::error::{ErrorLocation, ObjectError, Problem};
use super::{bundled, elf};
use crate::btf::{Btf, BtfError};
use crate::util::compressed;

/// The kernel that an object's programs are relocated for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Target {
    /// The running kernel, if it exports its BTF (`/sys/kernel/btf/vmlinux`). Otherwise
    /// [bundled](Self::bundled) types for an object with a program that attaches to one of
    /// their functions or tracepoints, and [`Own`](Self::Own) for any other.
    #[default]
    Auto,
    /// The kernel of this BTF.
    Kernel(Btf),
    /// No kernel: the object's own BTF, in which every CO-RE relocation resolves to the
    /// compile-time layout.
    Own,
}

impl Target {
    /// The file of the running kernel's BTF.
    pub const RUNNING: &str = "/sys/kernel/btf/vmlinux";

    /// The kernel described by a BTF file: raw BTF like `/sys/kernel/btf/vmlinux` or the
    /// kernel's ELF file (`vmlinux`), plain or compressed with gzip or xz.
    ///
    /// # Errors
    /// A file that can't be read or is not BTF.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        let path = path.as_ref();
        read(path)
            .map(Self::Kernel)
            .map_err(|error| error.of(&path.display().to_string()))
    }

    /// The same kernel with a module, whose functions and types programs then find, too: the
    /// module's BTF like `/sys/kernel/btf/MODULE`, or its ELF file, which has that section.
    /// Without a kernel's BTF it is a module of the running kernel.
    ///
    /// ```no_run
    /// use bpflab::object::Target;
    ///
    /// let kernel = Target::file("vmlinux.btf")?.with_module("nf_conntrack.btf")?;
    /// # Ok::<(), bpflab::Error>(())
    /// ```
    ///
    /// # Errors
    /// A file that can't be read or is not BTF on this kernel's; types that are no kernel's.
    pub fn with_module(self, path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        let path = path.as_ref();
        let fault = |text: &str| {
            let problem = Problem::Btf(text.to_owned());
            let error = ObjectError::new(ErrorLocation::Object, problem);
            error.of(&path.display().to_string())
        };
        let kernel = match self {
            Self::Kernel(btf) => btf,
            Self::Auto => {
                running_kernel().ok_or_else(|| fault("the running kernel's BTF can't be read"))?
            }
            Self::Own => {
                return Err(fault(
                    "a module builds on its kernel's BTF, not on the object's own",
                ));
            }
        };
        let joined = with_btf(path, |bytes| kernel.with_module(bytes));
        joined
            .map(Self::Kernel)
            .map_err(|error| error.of(&path.display().to_string()))
    }

    /// The types that tracing programs commonly name, as bpflab describes them: no kernel's
    /// BTF. Members are missing and offsets differ, so verdicts may differ from a kernel's.
    #[must_use]
    pub fn bundled() -> Self {
        bundled::btf().map_or(Self::Own, Self::Kernel)
    }

    /// Whether a program's kernel types are the [bundled](Self::bundled) ones.
    pub(crate) fn is_bundled(kernel: &Btf) -> bool {
        bundled::btf().is_some_and(|bundled| bundled.same(kernel))
    }

    /// The kernel's BTF, if there is a kernel. `attaches` is whether programs attach to what a
    /// BTF has.
    pub(super) fn kernel(&self, attaches: impl Fn(&Btf) -> bool) -> Option<Btf> {
        match self {
            Self::Auto => running_kernel().or_else(|| bundled::btf().filter(attaches)),
            Self::Kernel(btf) => Some(btf.clone()),
            Self::Own => None,
        }
    }
}

fn read(path: &Path) -> Result<Btf, ObjectError> {
    with_btf(path, Btf::parse)
}

/// Parses the bytes of a file of BTF, or those of an ELF file's section.
fn with_btf(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<Btf, BtfError>,
) -> Result<Btf, ObjectError> {
    let fault = |problem| ObjectError::new(ErrorLocation::Object, problem);
    let bytes =
        compressed::read(path).map_err(|error| fault(Problem::Unreadable(error.to_string())))?;
    let btf = if elf::is_elf(&bytes) {
        let section = elf::btf(&bytes)?;
        section.ok_or_else(|| fault(Problem::Btf("the ELF file has no section .BTF".to_owned())))?
    } else {
        &bytes
    };
    parse(btf).map_err(|error| fault(Problem::Btf(error.to_string())))
}

/// The running kernel's BTF, read once.
fn running_kernel() -> Option<Btf> {
    static BTF: OnceLock<Option<Btf>> = OnceLock::new();
    BTF.get_or_init(|| read(Path::new(Target::RUNNING)).ok())
        .clone()
}
