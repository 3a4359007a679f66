//! Tests the structure of the library: which module may import from which, which crate is
//! imported where, no import cycles, no file above 800 lines.

mod graph;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use graph::rust_files;
use graph::{Crate, Target};

/// What a module may import from.
enum Imports {
    /// All modules above it but these.
    AllBut(&'static [&'static str]),
    /// These, which are above it.
    Only(&'static [&'static str]),
}
use Imports::{AllBut, Only};

/// Modules in the order of their layers, each with what it may import from.
type Layers = &'static [(&'static str, Imports)];

/// The modules of the library.
const LAYERS: Layers = &[
    ("util", AllBut(&[])),
    ("isa", AllBut(&[])),
    ("btf", AllBut(&[])),
    ("spec", AllBut(&[])),
    ("program", AllBut(&[])),
    ("analysis", Only(&["util", "isa", "program"])),
    ("object", AllBut(&["analysis"])),
    // From here to `harness`, nothing imports `object`: `program` is what they share.
    ("verifier", AllBut(&["object"])),
    // Only what a log says, and what the verifier's reports need.
    (
        "explain",
        Only(&["util", "isa", "btf", "spec", "program", "verifier"]),
    ),
    ("instrument", AllBut(&["object"])),
    ("vm", AllBut(&["object", "instrument", "analysis"])),
    // What is counted in a run, for the engines, and the files with it.
    (
        "coverage",
        Only(&["util", "isa", "btf", "program", "verifier"]),
    ),
    ("lower", AllBut(&["object", "instrument"])),
    ("engine", AllBut(&["object", "instrument", "analysis"])),
    // Two compilers that don't know each other.
    ("interp", Only(&["util", "isa", "lower", "vm", "engine"])),
    (
        "jit",
        Only(&["util", "isa", "spec", "lower", "vm", "engine"]),
    ),
    // No engine in it.
    ("gen", Only(&["util", "isa", "btf", "spec", "program"])),
    (
        "kernel",
        AllBut(&[
            "object", "analysis", "lower", "engine", "interp", "jit", "gen",
        ]),
    ),
    ("harness", AllBut(&["gen"])),
    ("compare", AllBut(&[])),
    // Campaigns: programs and oracles.
    (
        "fuzz",
        AllBut(&["instrument", "analysis", "lower", "jit", "interp"]),
    ),
    ("report", AllBut(&[])),
    // Other kernels, in virtual machines.
    ("guest", Only(&["util", "kernel"])),
    ("cli", AllBut(&[])),
    // The binary only starts the command line.
    ("main", Only(&["cli"])),
];

/// The modules of `vm`.
const ROOMS: Layers = &[
    ("memory", AllBut(&[])),
    ("fields", AllBut(&["memory"])),
    ("maps", AllBut(&["fields"])),
    ("world", AllBut(&["maps"])),
    ("events", AllBut(&[])),
    ("machine", AllBut(&["fields"])),
    ("calls", AllBut(&["fields"])),
];

/// Where a crate may be imported.
enum Where {
    /// In any module.
    Anywhere,
    /// Only in these.
    In(&'static [&'static str]),
    /// Only in one file of this module, whichever it is.
    OneFileOf(&'static str),
}

/// Every dependency of the library and where it belongs.
const CRATES: &[(&str, Where)] = &[
    ("annotate-snippets", Where::In(&["verifier"])),
    ("anstream", Where::In(&["cli"])),
    ("anstyle", Where::In(&["cli", "report"])),
    ("bitflags", Where::Anywhere),
    ("clap", Where::In(&["cli"])),
    ("clap_complete", Where::OneFileOf("cli")),
    ("clap_mangen", Where::OneFileOf("cli")),
    ("comfy-table", Where::In(&["cli"])),
    ("crc32fast", Where::OneFileOf("compare")),
    ("dynasmrt", Where::In(&["jit"])),
    ("etherparse", Where::OneFileOf("vm")),
    ("flate2", Where::OneFileOf("util")),
    ("goblin", Where::OneFileOf("object")),
    ("hashbrown", Where::Anywhere),
    ("iced-x86", Where::In(&["jit"])),
    ("indicatif", Where::In(&["cli"])),
    ("libc", Where::In(&["kernel", "jit"])),
    ("lz4_flex", Where::In(&["compare", "guest"])),
    ("lzma-rust2", Where::OneFileOf("util")),
    ("pcap-parser", Where::OneFileOf("vm")),
    ("rustc-hash", Where::Anywhere),
    ("quick-junit", Where::OneFileOf("cli")),
    ("ruzstd", Where::OneFileOf("util")),
    ("serde", Where::Anywhere),
    ("serde_json", Where::Anywhere),
    ("serde-saphyr", Where::OneFileOf("cli")),
    ("smallvec", Where::Anywhere),
    ("tar", Where::OneFileOf("guest")),
    ("thiserror", Where::Anywhere),
    ("toml", Where::OneFileOf("cli")),
    ("yaxpeax-arch", Where::In(&["jit"])),
    ("yaxpeax-arm", Where::In(&["jit"])),
    ("zerocopy", Where::In(&["vm", "harness", "kernel"])),
];

/// The longest file.
const MAX_LINES: usize = 800;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn library() -> Crate {
    let krate = Crate::read(&root().join("src"));
    assert!(krate.len() > 3, "src/ was not read");
    krate
}

fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// The modules above a module and its own rule; none for one that is no layer.
fn rule_of(
    layers: Layers,
    module: &str,
) -> Option<(impl Iterator<Item = &'static str> + Clone, &'static Imports)> {
    let at = layers.iter().position(|(name, _)| *name == module)?;
    let above = layers.iter().take(at).map(|(name, _)| *name);
    Some((above, &layers.get(at)?.1))
}

/// Whether a module may import from another; none for one that is no layer.
fn may_import(layers: Layers, from: &str, to: &str) -> Option<bool> {
    let (mut above, rule) = rule_of(layers, from)?;
    Some(match rule {
        AllBut(not) => above.any(|name| name == to) && !not.contains(&to),
        Only(these) => these.contains(&to),
    })
}

/// The imports between the modules of `within` that their table of layers does not allow.
fn forbidden_imports(krate: &Crate, within: &[&str], layers: Layers) -> Vec<String> {
    let inside = |module: &[String]| {
        module.len() >= within.len() && module.iter().zip(within).all(|(own, name)| own == name)
    };
    let mut found = BTreeSet::new();
    for import in krate.imports() {
        let Target::Module(to) = &import.target else {
            continue;
        };
        if !inside(&import.from) || !inside(to) {
            continue;
        }
        let Some(from) = import.from.get(within.len()) else {
            continue; // lib.rs or the folder's mod.rs: the signposts to everything
        };
        let problem = match to.get(within.len()) {
            Some(to) if to == from => continue,
            _ if rule_of(layers, from).is_none() => {
                format!("src/{}: no layer", krate.file(&import.from))
            }
            None => format!("{} (defined in {})", import.place, krate.file(to)),
            Some(to) if may_import(layers, from, to) == Some(true) => continue,
            Some(to) => format!("{} ({from} may not import {to})", import.place),
        };
        found.insert(problem);
    }
    found.into_iter().collect()
}

/// The imports of crates in `krate` where `crates` does not allow them.
fn misplaced_crates(krate: &Crate, crates: &[(&str, Where)]) -> Vec<String> {
    let imports = krate.imports();
    let mut found = Vec::new();
    for (name, place) in crates {
        let ident = name.replace('-', "_");
        let users = imports
            .iter()
            .filter(|i| i.target == Target::Elsewhere(ident.clone()));
        let mut files = BTreeSet::new();
        for import in users {
            let module = import.from.first().map_or("lib", String::as_str);
            let allowed = match place {
                Where::Anywhere => true,
                Where::In(modules) => modules.contains(&module),
                Where::OneFileOf(only) => {
                    files.insert(krate.file(&import.from));
                    module == *only && files.len() == 1
                }
            };
            if !allowed {
                found.push(format!("{} (not here)", import.place));
            }
        }
    }
    found
}

/// The names under `[dependencies]` in a manifest.
fn dependencies(manifest: &str, table: &str) -> Vec<String> {
    manifest
        .lines()
        .skip_while(|line| *line != format!("[{table}]"))
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(['=', '.'])?.0.trim().to_owned()))
        .collect()
}

#[test]
fn modules_import_only_from_those_above() {
    let library = library();
    none(
        "imports against the layers",
        &forbidden_imports(&library, &[], LAYERS),
    );
    none(
        "imports against the layers of vm",
        &forbidden_imports(&library, &["vm"], ROOMS),
    );
}

#[test]
fn the_tables_of_layers_are_ordered() {
    for layers in [LAYERS, ROOMS] {
        for (module, AllBut(listed) | Only(listed)) in layers {
            for import in *listed {
                let (mut above, _) = rule_of(layers, module).expect("a layer");
                assert!(
                    above.any(|name| name == *import),
                    "{module} lists {import}, which is not above it"
                );
            }
        }
    }
}

#[test]
fn crates_are_imported_where_they_belong() {
    none("crates out of place", &misplaced_crates(&library(), CRATES));
}

#[test]
fn every_dependency_has_a_place_and_a_reason() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let reasons =
        std::fs::read_to_string(root().join("docs/dependencies.md")).expect("the document");
    let library = dependencies(&manifest, "dependencies");
    assert!(library.len() > 3, "{library:?}");
    for name in &library {
        assert!(
            CRATES.iter().any(|(known, _)| known == name),
            "{name}: where may it be imported?"
        );
    }
    let benches =
        std::fs::read_to_string(root().join("benches/Cargo.toml")).expect("the benchmarks");
    let mut others = dependencies(&manifest, "dev-dependencies");
    others.extend(dependencies(&benches, "dependencies"));
    others.retain(|name| name != "bpflab");
    for name in library.iter().chain(&others) {
        assert!(
            reasons.contains(&format!("| `{name}`")),
            "docs/dependencies.md has no line on {name}"
        );
    }
}

#[test]
fn files_import_one_another_in_no_circle() {
    let cycles: Vec<_> = library()
        .cycles()
        .iter()
        .map(|cycle| cycle.join("\n  "))
        .collect();
    none("circles", &cycles);
}

#[test]
fn no_file_is_too_long() {
    let lines = |file: &Path| {
        std::fs::read_to_string(file)
            .expect("a source file")
            .lines()
            .count()
    };
    let long: Vec<_> = ["src", "tests"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .filter(|file| lines(file) > MAX_LINES)
        .map(|file| format!("{}: {} lines", file.display(), lines(&file)))
        .collect();
    none("files that are too long", &long);
}

/// The checks must be able to fail.
mod checks {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Crate {
        Crate::from_texts(
            files
                .iter()
                .map(|(f, t)| ((*f).to_owned(), (*t).to_owned())),
        )
    }

    #[test]
    fn an_import_from_below_is_named() {
        let krate = of(&[
            (
                "lib.rs",
                "pub mod isa; pub mod vm; pub use vm::Memory; pub struct Root;",
            ),
            (
                "isa/mod.rs",
                "use crate::vm::Memory;\nfn f() { super::vm::g() }",
            ),
            ("isa/more.rs", "use crate::{Memory, Root};"),
            (
                "vm/mod.rs",
                "pub struct Memory; use crate::isa::X; use crate::vm::Memory as M;",
            ),
            ("spare.rs", "use crate::isa::X;"),
        ]);
        assert_eq!(
            forbidden_imports(&krate, &[], LAYERS),
            [
                "src/isa/mod.rs:1: crate::vm::Memory (isa may not import vm)",
                "src/isa/mod.rs:2: super::vm::g (isa may not import vm)",
                "src/isa/more.rs:1: crate::Memory (isa may not import vm)",
                "src/isa/more.rs:1: crate::Root (defined in lib.rs)",
                "src/spare.rs: no layer",
            ]
        );
    }

    #[test]
    fn an_import_from_below_is_named_within_a_folder() {
        let krate = of(&[
            (
                "vm/mod.rs",
                "mod calls; mod machine; pub mod maps; pub use machine::deferred; pub struct Root;",
            ),
            ("vm/machine/mod.rs", "pub mod deferred;"),
            (
                "vm/machine/deferred.rs",
                "use super::super::maps::Map; use crate::isa::X; pub struct Due;",
            ),
            (
                "vm/maps/mod.rs",
                "pub struct Map;\nuse crate::vm::deferred::Due;\nuse super::{Root, calls};",
            ),
            ("vm/calls/mod.rs", "use crate::vm::{deferred, maps::Map};"),
            ("isa/mod.rs", "pub struct X;"),
        ]);
        assert_eq!(
            forbidden_imports(&krate, &["vm"], ROOMS),
            [
                "src/vm/maps/mod.rs:2: crate::vm::deferred::Due (maps may not import machine)",
                "src/vm/maps/mod.rs:3: super::Root (defined in vm/mod.rs)",
                "src/vm/maps/mod.rs:3: super::calls (maps may not import calls)",
            ]
        );
    }

    #[test]
    fn rules_say_which_of_the_modules_above() {
        for (from, to, expected) in [
            ("isa", "util", Some(true)),
            ("isa", "vm", Some(false)),
            ("vm", "object", Some(false)),
            ("gen", "vm", Some(false)),
            ("harness", "object", Some(true)),
            ("spare", "util", None),
        ] {
            assert_eq!(may_import(LAYERS, from, to), expected, "{to} in {from}");
        }
    }

    #[test]
    fn a_crate_out_of_place_is_named() {
        let krate = of(&[
            ("object/elf.rs", "use goblin::elf::Elf;"),
            ("object/other.rs", "fn f() { goblin::x() }"),
            ("vm/mod.rs", "use libc::c_int; use thiserror::Error;"),
            ("kernel/sys/bpf.rs", "use libc::c_int;"),
        ]);
        assert_eq!(
            misplaced_crates(&krate, CRATES),
            [
                "src/object/other.rs:1: goblin::x (not here)",
                "src/vm/mod.rs:1: libc::c_int (not here)",
            ]
        );
    }

    #[test]
    fn a_manifest_is_read() {
        let manifest = "[dependencies]\n# no\na = \"1\"\nb-c = { version = \"2\" }\nd.version = \"3\"\n\n[x]\ne = 1\n";
        assert_eq!(dependencies(manifest, "dependencies"), ["a", "b-c", "d"]);
    }
}
