//! For tests: compiles C with clang. Without clang-19, tests report that and pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Btf;
use crate::shared::is_emulated;
use crate::shared::{Need, skip};

/// A temporary directory for clang's files, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `None` without clang-19, or if starting it may hang.
    pub(crate) fn new() -> Option<Self> {
        if is_emulated() {
            return None;
        }
        let found = Command::new("clang-19").arg("--version").output();
        if found.is_err() {
            skip(Need::Clang, "clang-19 is not there");
            return None;
        }
        let unique = format!(
            "bpflab-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        );
        let dir = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&dir).unwrap();
        Some(Self(dir))
    }

    /// Compiles C for BPF; returns the object's path, or clang's error output.
    pub(crate) fn compile(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let source = self.0.join(name).with_extension("c");
        let object = source.with_extension("o");
        std::fs::write(&source, text).unwrap();
        let mut clang = Command::new("clang-19");
        clang.args([
            "-target",
            "bpf",
            "-g",
            "-O2",
            "-ferror-limit=10",
            "-c",
            "-o",
        ]);
        let output = clang.arg(&object).arg(&source).output().unwrap();
        if output.status.success() {
            return Ok(object);
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The bytes of a section of an object file.
    pub(crate) fn section(&self, object: &Path, name: &str) -> Vec<u8> {
        let bytes = object.with_extension("section");
        let mut objcopy = Command::new("llvm-objcopy-19");
        objcopy
            .arg(format!("--dump-section={name}={}", bytes.display()))
            .arg(object);
        assert!(
            objcopy.arg("/dev/null").status().unwrap().success(),
            "{name}"
        );
        std::fs::read(bytes).unwrap()
    }

    /// The BTF of an object file.
    pub(crate) fn btf_of(&self, object: &Path) -> Btf {
        Btf::parse(&self.section(object, ".BTF")).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
