//! The kernel's functions, for `bpflab kernel functions`.

use std::fmt;

use serde::Serialize;

use super::table::Table;
use crate::kernel::functions::Function;

/// A function. Its fields are keys of `bpflab kernel functions --json`.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionRow {
    /// Its name.
    pub function: String,
    /// Its module; none for the kernel itself.
    pub module: Option<String>,
    /// Whether kprobes can attach.
    pub kprobe: bool,
    /// Whether fentry and fexit can attach.
    pub fentry: bool,
    /// How many functions have this name.
    pub count: usize,
}

impl From<&Function> for FunctionRow {
    fn from(function: &Function) -> Self {
        Self {
            function: function.name.clone(),
            module: function.module.clone(),
            kprobe: function.kprobe,
            fentry: function.fentry,
            count: function.count,
        }
    }
}

/// Functions with column headings.
#[derive(Debug, Clone)]
pub struct FunctionTable(pub Vec<FunctionRow>);

impl fmt::Display for FunctionTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::default().flush();
        table.row(["function", "module", "kprobe", "fentry"]);
        let yes = |is: bool| if is { "yes" } else { "no" };
        for row in &self.0 {
            let kprobe = match (row.kprobe, row.count) {
                (true, 2..) => format!("yes ({} of that name)", row.count),
                (is, _) => yes(is).to_owned(),
            };
            table.row([
                row.function.clone(),
                row.module.clone().unwrap_or_default(),
                kprobe,
                yes(row.fentry).to_owned(),
            ]);
        }
        write!(f, "{table}")
    }
}
