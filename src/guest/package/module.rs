//! Kernel modules.

use std::collections::BTreeMap;

use super::vmlinuz::Arch;

/// Modules by their names.
pub(crate) type Modules = BTreeMap<String, Module>;

/// A kernel module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    /// Its name, with underscores: `virtio_console`.
    pub name: String,
    /// The object that `finit_module` takes, not compressed.
    pub bytes: Vec<u8>,
    /// Names of the modules that must be loaded before it.
    pub after: Vec<String>,
}

impl Module {
    /// A module from its object; none if that is not ELF.
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Option<Self> {
        bytes.starts_with(b"\x7fELF").then(|| Self {
            name: name.to_owned(),
            after: depends(&bytes),
            bytes,
        })
    }

    /// The machine that it is for.
    pub(super) fn arch(&self) -> Option<Arch> {
        Arch::of_elf(&self.bytes)
    }
}

/// The name of the module in a file: `virtio_rng` for `kernel/virtio-rng.ko.xz`.
pub(super) fn name_of(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (stem, ending) = file.split_once(".ko")?;
    let known = ["", ".gz", ".xz", ".zst"].contains(&ending);
    let name = stem.replace('-', "_");
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (known && plain && !name.is_empty()).then_some(name)
}

/// The modules that one needs: `depends=a,b` in its section `.modinfo`, whose texts end with
/// a zero byte each (`include/linux/moduleparam.h`, `scripts/mod/modpost.c`).
fn depends(object: &[u8]) -> Vec<String> {
    let texts = object.split(|byte| *byte == 0);
    let list = texts
        .filter_map(|text| text.strip_prefix(b"depends="))
        .next();
    let list = list.and_then(|list| std::str::from_utf8(list).ok());
    let names = list.unwrap_or_default().split(',');
    names
        .filter_map(|name| name_of(&format!("{name}.ko")))
        .collect()
}

/// The wanted modules and those that they need, each behind those that it needs itself.
pub(crate) fn with_needs(mut modules: Modules, wanted: &[&str]) -> Vec<Module> {
    let mut names: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let mut taken = Vec::new();
    while let Some(name) = names.pop() {
        if let Some(module) = modules.remove(&name) {
            names.extend(module.after.iter().cloned());
            taken.push(module);
        }
    }
    in_order(taken)
}

/// Modules, each behind those that it needs.
fn in_order(mut left: Vec<Module>) -> Vec<Module> {
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let names: Vec<String> = left.iter().map(|module| module.name.clone()).collect();
        let (mut ready, waiting): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|module| !module.after.iter().any(|name| names.contains(name)));
        if ready.is_empty() {
            // A circle, which no kernel could load.
            ordered.extend(waiting);
            break;
        }
        ordered.append(&mut ready);
        left = waiting;
    }
    ordered
}
