//! What the running kernel supports: `bpflab kernel check`.

use std::fmt;

use serde::Serialize;

use super::kfuncs::KfuncSupport;
use super::table::Table;
use crate::btf::Btf;
use crate::kernel::{Availability, TypeSupport};
use crate::spec::Backports;

/// What the running kernel supports. Its fields are the keys of `--json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct KernelCheck {
    /// Whether programs can be loaded.
    pub usable: bool,
    /// What is missing, and what to do about it.
    pub missing: Vec<String>,
    /// Its kfuncs; none without its BTF.
    pub kfuncs: Option<KfuncSupport>,
    /// The changes of later kernels that were found in a build of Linux 6.18, by the names of
    /// [`Backports`].
    pub backports: Vec<&'static str>,
    /// What is available.
    #[serde(flatten)]
    pub kernel: Availability,
}

impl KernelCheck {
    /// A report on the kernel, its BTF and its backports.
    #[must_use]
    pub fn new(kernel: Availability, btf: Option<&Btf>, backports: Backports) -> Self {
        Self {
            backports: backports.iter_names().map(|(name, _)| name).collect(),
            kfuncs: btf.map(KfuncSupport::of),
            usable: kernel.usable(),
            missing: kernel.missing(),
            kernel,
        }
    }
}

impl fmt::Display for KernelCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = &self.kernel;
        writeln!(f, "Linux {}", kernel.release)?;
        let mut table = Table::default();
        let user = if kernel.privilege.root {
            "root"
        } else {
            "not root"
        };
        let capabilities = kernel.privilege.capabilities.iter();
        let capabilities: Vec<_> = capabilities.map(|capability| capability.name()).collect();
        table.row(["user", &[&[user], &*capabilities].concat().join(", ")]);
        table.row(["bpf()", kernel.refused.as_deref().unwrap_or("works")]);
        table.row(["BTF", if kernel.btf { "yes" } else { "no" }]);
        let jit = match kernel.jit {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        };
        table.row(["JIT", jit]);
        if let Some(kfuncs) = &self.kfuncs {
            table.row(["kfuncs", &kfuncs.to_string()]);
        }
        // That none was found is not shown: without BTF nobody could look.
        if !self.backports.is_empty() {
            table.row(["backports", &self.backports.join(" ")]);
        }
        let of = |wanted: fn(&TypeSupport) -> bool| {
            let names = kernel.prog_types.iter().filter(|ty| wanted(ty));
            names
                .map(|ty| ty.prog_type.name())
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (label, names) in [
            ("loads", of(|ty| ty.loads)),
            ("known", of(|ty| ty.known && !ty.loads)),
            ("unknown", of(|ty| !ty.known)),
        ] {
            if !names.is_empty() {
                table.row([label, &names]);
            }
        }
        table.fmt(f)?;
        for missing in &self.missing {
            writeln!(f, "missing: {missing}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_that_were_found_are_shown() {
        let check = |backports| KernelCheck::new(Availability::probe(), None, backports);
        let with = check(Backports::KFUNC_ARGUMENTS_TRUSTED);
        let row = |line: &str| {
            line.split_whitespace()
                .eq(["backports", "KFUNC_ARGUMENTS_TRUSTED"])
        };
        assert!(with.to_string().lines().any(row), "{with}");
        assert_eq!(with.backports, ["KFUNC_ARGUMENTS_TRUSTED"]);
        let without = check(Backports::empty());
        assert!(!without.to_string().contains("backports"), "{without}");
    }
}
