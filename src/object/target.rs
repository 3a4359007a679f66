//! The kernel that programs are relocated for: its BTF resolves CO-RE relocations, kfuncs,
//! kernel variables and attach targets.

use std::path::Path;
use std::sync::OnceLock;

use super::compressed;
use super::error::{ErrorLocation, ObjectError, Problem};
use crate::btf::Btf;

/// The kernel that an object's programs are relocated for.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Target {
    /// The running kernel, if it exports its BTF (`/sys/kernel/btf/vmlinux`), otherwise
    /// [`Own`](Self::Own).
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

    /// The kernel described by a BTF file: raw BTF like `/sys/kernel/btf/vmlinux`, plain or
    /// compressed with gzip or xz.
    ///
    /// # Errors
    /// A file that can't be read or is not BTF.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, ObjectError> {
        let path = path.as_ref();
        read(path)
            .map(Self::Kernel)
            .map_err(|error| error.of(&path.display().to_string()))
    }

    /// The kernel's BTF, if there is a kernel.
    pub(super) fn kernel(&self) -> Option<Btf> {
        match self {
            Self::Auto => running_kernel(),
            Self::Kernel(btf) => Some(btf.clone()),
            Self::Own => None,
        }
    }
}

fn read(path: &Path) -> Result<Btf, ObjectError> {
    let fault = |problem| ObjectError::new(ErrorLocation::Object, problem);
    let bytes =
        compressed::read(path).map_err(|error| fault(Problem::Unreadable(error.to_string())))?;
    Btf::parse(&bytes).map_err(|error| fault(Problem::Btf(error.to_string())))
}

/// The running kernel's BTF, read once.
fn running_kernel() -> Option<Btf> {
    static BTF: OnceLock<Option<Btf>> = OnceLock::new();
    BTF.get_or_init(|| read(Path::new(Target::RUNNING)).ok())
        .clone()
}
