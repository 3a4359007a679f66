//! The kernel's functions that programs can attach to.
//!
//! | source | what it says |
//! |---|---|
//! | tracefs, `available_filter_functions` | functions with a call of ftrace at their start, with their modules: kprobes and trampolines attach there |
//! | `/proc/kallsyms` | how many functions have a name: a kprobe needs one that is unique (Linux 6.7) |
//! | BTF | functions whose types are known: the targets of fentry and fexit |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::btf_folder;
use super::perf::Pmu;
use super::probe::{Probe, probe_for};
use super::tracefs::{Tracefs, TracefsError};
use crate::btf::{Btf, Kind};
use crate::spec::{AttachType, ProgType};
use crate::util::nearest_first;

/// The file with the functions that ftrace can trace.
const LISTED: &str = "available_filter_functions";
/// How many names a suggestion has.
const SIMILAR: usize = 3;

/// A function of the kernel or of a module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    /// Its name, with the suffix that the compiler gave it: `tcp_v4_rcv`, `vfs_open.part.0`.
    pub(crate) name: String,
    /// Its module; none for the kernel itself.
    pub(crate) module: Option<String>,
    /// How many functions have this name.
    pub(crate) count: usize,
    /// Whether kprobes can attach, in a kernel that has kprobes.
    pub(crate) kprobe: bool,
    /// Whether fentry and fexit can attach.
    pub(crate) fentry: bool,
}

/// The functions of the running kernel.
#[derive(Debug)]
pub(crate) struct Functions {
    all: Vec<Function>,
}

impl Functions {
    /// Reads the functions of the running kernel.
    ///
    /// # Errors
    /// Tracefs is missing, or has no list of functions.
    pub(crate) fn of_this_kernel() -> Result<Self, TracefsError> {
        let listed = Tracefs::open()?.read(LISTED)?;
        let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let fentry = match probe_for(ProgType::Tracing, Some(AttachType::TraceFentry)) {
            Probe::Refused(_) => BTreeSet::new(),
            Probe::Loads | Probe::Known => in_btf(Path::new(btf_folder::FOLDER)),
        };
        let kprobes = Pmu::find("kprobe").is_some();
        Ok(Self::new(&listed, &symbols, &fentry, kprobes))
    }

    /// The functions in the texts of the two files, and their names in BTF.
    fn new(
        listed: &str,
        symbols: &str,
        in_btf: &BTreeSet<(Option<String>, String)>,
        kprobes: bool,
    ) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for name in symbols.lines().filter_map(text_symbol) {
            *counts.entry(name).or_default() += 1;
        }
        let all: BTreeSet<(Option<&str>, &str)> = listed.lines().filter_map(entry).collect();
        let function = |(module, name): (Option<&str>, &str)| {
            let key = (module.map(str::to_owned), name.to_owned());
            Function {
                fentry: in_btf.contains(&key),
                count: counts.get(name).copied().unwrap_or_default().max(1),
                kprobe: kprobes,
                module: key.0,
                name: key.1,
            }
        };
        let mut all: Vec<_> = all.into_iter().map(function).collect();
        all.sort();
        Self { all }
    }

    /// The functions whose names fit, sorted by name.
    pub(crate) fn matching(&self, fits: impl Fn(&str) -> bool) -> Vec<&Function> {
        self.all.iter().filter(|it| fits(&it.name)).collect()
    }

    /// What may be meant by a name that no function has.
    pub(crate) fn hint(&self, asked: &str) -> Option<String> {
        suggestion(asked, self.all.iter().map(|it| it.name.as_str()))
    }
}

/// The names of the functions that ftrace can trace, each once.
///
/// # Errors
/// Tracefs is missing, or has no list of functions.
pub(super) fn traceable() -> Result<Vec<String>, TracefsError> {
    let listed = Tracefs::open()?.read(LISTED)?;
    let names: BTreeSet<_> = listed.lines().filter_map(entry).map(|(_, it)| it).collect();
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// What may be meant by a name that no function has: the name with a suffix of the compiler's,
/// or else similar ones.
pub(super) fn suggestion<'a>(
    asked: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let copies: BTreeSet<&str> = names.clone().filter(|name| is_copy(name, asked)).collect();
    if !copies.is_empty() {
        let copies: Vec<_> = copies.into_iter().map(|name| format!("`{name}`")).collect();
        return Some(format!("did you mean {}?", copies.join(" or ")));
    }
    let asked: String = asked.chars().filter(|c| !matches!(c, '*' | '?')).collect();
    if asked.is_empty() {
        return None;
    }
    // Names of quite another length are far away; the distance to all would take long.
    let near = |name: &&str| name.len().abs_diff(asked.len()) <= 3 || name.contains(&*asked);
    let near: BTreeSet<&str> = names.filter(near).collect();
    let mut near = nearest_first(&asked, near.into_iter().map(str::to_owned).collect());
    near.truncate(SIMILAR);
    (!near.is_empty()).then(|| format!("similar are {}", near.join(", ")))
}

/// Whether the compiler made a function from the one of this name: `.constprop.0`, `.isra.0`;
/// not a piece of it (`.part.0`, `.cold`).
fn is_copy(name: &str, of: &str) -> bool {
    let suffix = name
        .strip_prefix(of)
        .and_then(|rest| rest.strip_prefix('.'));
    suffix.is_some_and(|suffix| {
        let mut words = suffix.split('.');
        !words.any(|word| matches!(word, "part" | "cold"))
    })
}

/// The module and the name in a line `name [module]`.
fn entry(line: &str) -> Option<(Option<&str>, &str)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let module = words.next().and_then(|word| word.strip_prefix('['));
    // Weak functions that others override: there is no such function.
    let is_gone = name.starts_with("__ftrace_invalid_address__");
    let module = module.and_then(|word| word.strip_suffix(']'));
    (!is_gone).then_some((module, name))
}

/// The name in a line `address type name [module]`, if it is a function.
fn text_symbol(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(1);
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W");
    words.next().filter(|_| is_text)
}

/// The functions in BTF, with their modules; none if there is no BTF.
fn in_btf(folder: &Path) -> BTreeSet<(Option<String>, String)> {
    let mut found = BTreeSet::new();
    let kernel = fs::read(folder.join(btf_folder::KERNEL)).ok();
    let Some(kernel) = kernel.and_then(|bytes| Btf::parse(&bytes).ok()) else {
        return found;
    };
    let mut add = |btf: &Btf, module: Option<&str>| {
        let functions = btf.own_types().filter(|ty| ty.kind() == Kind::Func);
        found.extend(functions.map(|ty| (module.map(str::to_owned), ty.name().to_owned())));
    };
    add(&kernel, None);
    for (name, btf) in btf_folder::modules(folder, &kernel) {
        add(&btf, Some(&name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "vfs_read\ncore.constprop.0\ncore.cold\nnft_do [nf_tables]\n\
                          __ftrace_invalid_address___72\nreset\nreset [fpu]\n";
    const SYMBOLS: &str = "0 T vfs_read\n0 t core.constprop.0\n0 t reset\n0 t reset\t[fpu]\n\
                           0 d reset\n0 t nft_do\t[nf_tables]\n";

    fn functions() -> Functions {
        let names = [
            (None, "vfs_read"),
            (None, "reset"),
            (Some("nf_tables"), "nft_do"),
        ];
        let names = names.map(|(module, name)| (module.map(str::to_owned), name.to_owned()));
        Functions::new(LISTED, SYMBOLS, &names.into(), true)
    }

    #[test]
    fn three_sources_make_one_list() {
        let functions = functions();
        let lines: Vec<String> = functions
            .matching(|_| true)
            .into_iter()
            .map(|it| {
                let module = it.module.as_deref().unwrap_or("-");
                format!("{} {module} {} {}", it.name, it.count, it.fentry)
            })
            .collect();
        let expected = [
            "core.cold - 1 false",
            "core.constprop.0 - 1 false",
            "nft_do nf_tables 1 true",
            "reset - 2 true",
            "reset fpu 2 false",
            "vfs_read - 1 true",
        ];
        assert_eq!(lines, expected);
        assert!(functions.matching(|_| true).iter().all(|it| it.kprobe));
    }

    #[test]
    fn a_suffix_is_suggested_before_similar_names() {
        let functions = functions();
        let hint = |asked| functions.hint(asked);
        assert_eq!(hint("core").unwrap(), "did you mean `core.constprop.0`?");
        assert!(
            hint("vfs_raed")
                .unwrap()
                .starts_with("similar are vfs_read,")
        );
        assert_eq!(hint("*"), None);
        assert!(is_copy("a.isra.0", "a") && !is_copy("a.part.0", "a") && !is_copy("ab.0", "a"));
    }
}
