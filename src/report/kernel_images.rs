//! Kernels that guests can boot, for `bpflab kernels`.

use std::fmt;

use serde::Serialize;

use super::table::Table;

/// A kernel. Its fields are keys of `bpflab kernels list --json`.
#[derive(Debug, Clone, Serialize)]
pub struct KernelImageRow {
    /// What `uname -r` prints there.
    pub release: String,
    /// The machine that it is for: `x86_64` or `arm64`.
    pub arch: &'static str,
    /// The size of the image and of the modules.
    pub bytes: u64,
    /// The names of its modules.
    pub modules: Vec<String>,
    /// The names of the files that it was taken from.
    pub from: Vec<String>,
    /// The folder with its files.
    pub folder: String,
}

/// Kernels with a heading.
#[derive(Debug, Clone)]
pub struct KernelImages {
    /// The line before them.
    pub heading: String,
    /// The kernels.
    pub rows: Vec<KernelImageRow>,
}

impl fmt::Display for KernelImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading)?;
        let mut table = Table::default().numbers(&[2, 3]);
        table.row(["release", "machine", "MiB", "modules", "from"]);
        for row in &self.rows {
            // Tenths, rounded up: no kernel has 0.
            let tenths = row.bytes.saturating_mul(10).div_ceil(1 << 20);
            table.row([
                row.release.clone(),
                row.arch.to_owned(),
                format!("{}.{}", tenths / 10, tenths % 10),
                row.modules.len().to_string(),
                row.from.join(" "),
            ]);
        }
        write!(f, "{table}")
    }
}
