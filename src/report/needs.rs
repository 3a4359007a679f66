//! The features of the kernel that the programs of an object use, and since when it has them:
//! `bpflab needs`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::table::Table;
use crate::analysis::{Cfg, loop_numbers};
use crate::isa::{CallTarget, Code, Insn, IsaVersion, Pseudo, Width};
use crate::object::Object;
use crate::program::{MapDef, MapOrigin, Program};
use crate::spec::since::{FeatureKind, Release, since};
use crate::spec::{ProgFlags, helpers};
use crate::util::Pc;
use crate::vm::kfuncs::Callee;

/// Instructions of a program before Linux 5.2 (`BPF_MAXINSNS`).
const FORMER_LIMIT: usize = 4096;

/// Attach types that the kernel ignores before it knows them: the program attaches in an older way
/// (`bpf_prog_load_check_attach_type`, `kernel/bpf/syscall.c`).
const OPTIONAL: &[&str] = &["xdp", "sk_reuseport_select", "struct_ops"];

/// The features of the kernel that an object uses. Its fields are the keys of
/// `bpflab needs --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Needs {
    /// Path or name of the file.
    pub object: String,
    /// The first Linux release that has all features of which the release is known; none if there
    /// is no such feature.
    pub oldest: Option<Release>,
    /// Whether `oldest` is the answer: the release of each feature is known, and each program was
    /// relocated.
    pub complete: bool,
    /// Whether CO-RE reads the kernel's types.
    pub kernel_types: bool,
    /// The features, newest first.
    pub features: Vec<UsedFeature>,
    /// Programs that can't be relocated, with the reasons: nothing is known of their features.
    pub failed: Vec<String>,
}

/// A feature of the kernel, and who uses it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct UsedFeature {
    /// Its kind.
    pub kind: FeatureKind,
    /// Its name.
    pub name: String,
    /// The first Linux release that has it; none if it is not known.
    pub since: Option<Release>,
    /// The programs that use it; empty for that of a map.
    pub programs: Vec<String>,
    /// Where it is first used: a section, a map, or a line of C as `file:line: text`.
    pub place: String,
}

impl Needs {
    /// Finds the features that each program and map of an object uses.
    #[must_use]
    pub fn new(object: &Object) -> Self {
        let mut found = Found::default();
        let mut failed = Vec::new();
        let mut kernel_types = false;
        let mut maps = None;
        for entry in object.entries() {
            match object.program(entry.name()) {
                Ok(program) => {
                    kernel_types |= !program.accesses.is_empty();
                    found.program(&program);
                    maps.get_or_insert(program.maps);
                }
                Err(error) => failed.push(format!("{}: {error}", entry.name())),
            }
        }
        for def in maps.iter().flat_map(|maps| maps.iter()) {
            // libbpf does not create the others.
            if def.autocreate {
                found.map(def, &def.name);
            }
        }
        let mut features: Vec<_> = found.features.into_values().collect();
        features.sort_by_key(|feature| (feature.since.is_some(), std::cmp::Reverse(feature.since)));
        Self {
            object: object.file().to_owned(),
            oldest: features.iter().filter_map(|feature| feature.since).max(),
            complete: failed.is_empty() && features.iter().all(|it| it.since.is_some()),
            kernel_types,
            features,
            failed,
        }
    }

    /// Whether the release of each feature is known, and each program was relocated.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }
}

/// Features by kind and name.
#[derive(Default)]
struct Found {
    features: BTreeMap<(FeatureKind, String), UsedFeature>,
}

impl Found {
    fn add(&mut self, kind: FeatureKind, name: &str, program: Option<&Program>, place: String) {
        let key = (kind, name.to_owned());
        let feature = self.features.entry(key).or_insert_with(|| UsedFeature {
            kind,
            name: name.to_owned(),
            since: since(kind, name),
            programs: Vec::new(),
            place,
        });
        let program = program.map(|program| &program.name);
        if let Some(name) = program.filter(|name| feature.programs.last() != Some(name)) {
            feature.programs.push(name.clone());
        }
    }

    fn map(&mut self, def: &MapDef, name: &str) {
        let place = || format!("map {name}");
        self.add(FeatureKind::MapType, def.map_type.name(), None, place());
        // libbpf sets the flags of global variables to what the kernel supports.
        if def.origin == MapOrigin::Declared {
            for (flag, _) in def.flags.iter_names() {
                self.add(
                    FeatureKind::MapFlag,
                    &format!("BPF_F_{flag}"),
                    None,
                    place(),
                );
            }
        }
        if let Some(inner) = &def.inner {
            self.map(inner, name);
        }
    }

    fn program(&mut self, program: &Program) {
        let section = || format!("SEC(\"{}\")", program.section);
        let mut add = |kind, name: &str| self.add(kind, name, Some(program), section());
        add(FeatureKind::ProgramType, program.prog_type.name());
        if let Some(attach_type) = program.expected_attach_type.map(|it| it.name())
            && !OPTIONAL.contains(&attach_type)
            && (!attach_type.starts_with("tcx_") || program.section.starts_with("tcx"))
        {
            add(FeatureKind::AttachType, attach_type);
        }
        for (flag, name) in [
            (ProgFlags::SLEEPABLE, "BPF_F_SLEEPABLE"),
            (ProgFlags::XDP_HAS_FRAGS, "BPF_F_XDP_HAS_FRAGS"),
        ] {
            if program.flags.contains(flag) {
                add(FeatureKind::ProgramFlag, name);
            }
        }
        if program.insns.len() > FORMER_LIMIT {
            add(FeatureKind::Code, "more than 4096 instructions");
        }
        let code = Code::new(&program.insns);
        for (pc, insn) in code.insns() {
            // Poisoned instructions are never reached: the kernel's types lack the access.
            let poisoned = program.core_access(pc).is_some_and(|it| it.poisoned);
            if !poisoned && let Some((kind, name)) = feature(program, insn) {
                self.add(kind, &name, Some(program), place(program, pc));
            }
            if matches!(insn, Insn::Call(CallTarget::Helper(id)) if id == helpers::id::tail_call)
                && program.subprograms.len() > 1
            {
                let name = "tail call in a program with functions";
                self.add(FeatureKind::Code, name, Some(program), place(program, pc));
            }
        }
        if let Some(pc) = first_loop(&code) {
            self.add(FeatureKind::Code, "loop", Some(program), place(program, pc));
        }
    }
}

/// The first instruction of a loop.
fn first_loop(code: &Code) -> Option<Pc> {
    let cfg = Cfg::new(code).ok()?;
    let graph = cfg.graph();
    let loops = loop_numbers(graph);
    code.iter().map(|(pc, _)| pc).find(|pc| {
        let block = graph.block_of(pc.0) as usize;
        loops.get(block).is_some_and(|number| *number != 0)
    })
}

/// The feature that an instruction uses.
fn feature(program: &Program, insn: Insn) -> Option<(FeatureKind, String)> {
    let code = |name: &str| Some((FeatureKind::Code, name.to_owned()));
    match insn {
        Insn::Call(CallTarget::Helper(id)) => {
            let name = match helpers::helper(id) {
                Some(helper) => helper.kernel_name.to_owned(),
                None => format!("number {id}"),
            };
            Some((FeatureKind::Helper, name))
        }
        Insn::Call(CallTarget::Kfunc { id, fd_index }) => {
            let name = match Callee::of(program, id, fd_index) {
                Some(callee) => callee.name().to_string(),
                None => format!("BTF id {id}"),
            };
            Some((FeatureKind::Kfunc, name))
        }
        Insn::Call(CallTarget::Subprogram { .. }) => code("call of a function"),
        Insn::LoadPseudo { source, .. } => match source {
            Pseudo::Func { .. } => code("function as a callback"),
            Pseudo::BtfId { .. } => code("address of a kernel variable"),
            Pseudo::MapIdxValue { .. } | Pseudo::MapValue { .. } => code("global variable"),
            Pseudo::MapIdx { .. } | Pseudo::MapFd { .. } => None,
        },
        Insn::LoadAcquire { .. } | Insn::StoreRelease { .. } => {
            code("load-acquire or store-release")
        }
        Insn::MayGoto { .. } => code("may_goto"),
        Insn::AddrSpaceCast { .. } => code("address space cast"),
        Insn::Atomic { .. } if insn.since() >= IsaVersion::V3 => {
            code("atomic operation with result, or other than add")
        }
        _ if insn.since() == IsaVersion::V4 => code("instruction of version 4"),
        Insn::JumpIf {
            width: Width::W32, ..
        } => code("32-bit jump"),
        Insn::JumpIf { op, .. } if op.since() == IsaVersion::V2 => code("jump by less than"),
        _ => None,
    }
}

/// The line of C of an instruction.
fn place(program: &Program, pc: Pc) -> String {
    match program.source(pc) {
        Some(source) if source.line > 0 => {
            format!("{}:{}: {}", source.file, source.line, source.text.trim())
        }
        _ => format!("{}: instruction {pc}", program.name),
    }
}

impl UsedFeature {
    /// The kind and the name, as people say it.
    fn title(&self) -> String {
        match self.kind {
            FeatureKind::Code => self.name.clone(),
            kind => format!("{} {}", kind.name().replace('_', " "), self.name),
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "object {}", self.object)?;
        let mut table = Table::default().flush();
        table.row(["since", "feature", "first use"]);
        for feature in &self.features {
            let since = feature.since.map_or("?".to_owned(), |it| it.to_string());
            table.row([since, feature.title(), feature.place.clone()]);
        }
        write!(f, "{table}")?;
        for failed in &self.failed {
            writeln!(f, "not known: {failed}")?;
        }
        match self.oldest {
            Some(oldest) if self.complete => {
                writeln!(f, "oldest kernel that has them all: {oldest}")?;
            }
            Some(oldest) => writeln!(
                f,
                "oldest kernel that has them all: not known; not older than {oldest}"
            )?,
            None => writeln!(f, "oldest kernel that has them all: not known")?,
        }
        if self.kernel_types {
            f.write_str(
                "CO-RE reads the kernel's types: /sys/kernel/btf/vmlinux since 5.4; before, give \
                 libbpf a file\n",
            )?;
        }
        Ok(())
    }
}
