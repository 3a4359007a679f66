//! Arguments that several verbs share: an object, and the kernel that it is
//! relocated for.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Failure;
use crate::btf::Btf;
use crate::object::cases::{CaseError, Cases};
use crate::object::{Object, Target};

/// The kernel that programs are relocated for.
#[derive(Debug, Args)]
pub(super) struct KernelArguments {
    /// Kernel to relocate for: a file of its BTF (plain, gzip, xz), or `own`, the
    /// object's own types [default: the running kernel, where it shows its BTF]
    #[arg(long, value_name = "FILE|own")]
    pub btf: Option<PathBuf>,
    /// Kernel configuration for `__kconfig` variables: a configuration file, or one
    /// value (CONFIG_HZ=250)
    #[arg(long, value_name = "FILE|NAME=VALUE")]
    pub kconfig: Vec<String>,
    /// Addresses of kernel symbols for `__ksym` variables: a file like /proc/kallsyms,
    /// or one address (NAME=0xffffffff81000000)
    #[arg(long, value_name = "FILE|NAME=ADDRESS")]
    pub ksym: Vec<String>,
}

impl KernelArguments {
    /// Opens an object, to be relocated for this kernel.
    pub fn open(&self, path: &Path) -> Result<Object, Failure> {
        let mut object = Object::open(path)?;
        if let Some(target) = self.target()? {
            object.set_target(target);
        }
        for given in &self.kconfig {
            match given.split_once('=') {
                Some((name, value)) => object.set_kconfig(name, value),
                None => object.read_kconfig_file(given)?,
            }
        }
        for given in &self.ksym {
            match given.split_once('=') {
                Some((name, value)) => object.set_ksym(name, address(name, value)?),
                None => object.read_kallsyms(&read_text(given)?),
            }
        }
        Ok(object)
    }

    /// Opens a file of cases, `-` for the standard input, whose type ids are those of
    /// this kernel.
    pub fn open_cases(&self, file: &Path) -> Result<Cases, Failure> {
        let opened = if file.as_os_str() == "-" {
            Cases::read("standard input", ".", BufReader::new(std::io::stdin()))
        } else {
            Cases::open(file)
        };
        // Not a line, the file itself can't be read.
        let unreadable =
            |error: CaseError| Failure::bad(format!("{}: {}", error.file, error.problem));
        let mut cases = opened.map_err(unreadable)?;
        if let Some(btf) = self.btf()? {
            cases.set_kernel(btf);
        }
        Ok(cases)
    }

    /// What `--btf` asks for, if it was given.
    fn target(&self) -> Result<Option<Target>, Failure> {
        Ok(match &self.btf {
            None => None,
            Some(own) if own.as_os_str() == "own" => Some(Target::Own),
            Some(file) => Some(Target::file(file)?),
        })
    }

    /// The BTF of the file that `--btf` names.
    pub fn btf(&self) -> Result<Option<Btf>, Failure> {
        Ok(match self.target()? {
            Some(Target::Kernel(btf)) => Some(btf),
            _ => None,
        })
    }
}

/// An address in hexadecimal, with or without `0x`.
fn address(name: &str, text: &str) -> Result<u64, Failure> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| {
        Failure::bad(format!(
            "--ksym {name}={text}: no address in hexadecimal: {error}"
        ))
    })
}

/// The text of a file.
pub(super) fn read_text(path: impl AsRef<Path>) -> Result<String, Failure> {
    let path = path.as_ref();
    std::fs::read_to_string(path)
        .map_err(|error| Failure::bad(format!("{}: can't be read: {error}", path.display())))
}
