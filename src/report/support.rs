//! What the programs of an object need (contexts, helpers, kfuncs, maps), and which of it bpflab
//! has: `bpflab inspect --support`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::table::Table;
use crate::harness::{Error, Vm};
use crate::isa::{CallTarget, Insn, Pseudo, decode_all};
use crate::object::Object;
use crate::program::{MapDef, Program};
use crate::spec::{ContextKind, helpers};
use crate::util::{HelperId, TypeId};
use crate::verifier::{Options, verify};
use crate::vm::World;
use crate::vm::events::{EventError, EventKind};
use crate::vm::helpers::body;
use crate::vm::kfuncs::{self, Callee};
use crate::vm::maps;

/// How far bpflab supports something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// It works as in the kernel.
    Implemented,
    /// A test can mock or supply it.
    Mockable,
    /// It is unknown: a program can't use it.
    Unknown,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Implemented => "implemented",
            Self::Mockable => "mockable",
            Self::Unknown => "unknown",
        })
    }
}

/// What the programs of an object need. Its fields are the keys of
/// `bpflab inspect --support --json`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Support {
    /// Path or name of the file.
    pub object: String,
    /// The programs, by section and position.
    pub programs: Vec<ProgramSupport>,
    /// Their attach targets, with the contexts.
    pub contexts: Vec<Need>,
    /// The helpers that they call.
    pub helpers: Vec<Need>,
    /// The kfuncs that they call.
    pub kfuncs: Vec<Need>,
    /// The maps that they use.
    pub maps: Vec<Need>,
}

/// A program, and whether it can be run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProgramSupport {
    /// Name of the C function.
    pub name: String,
    /// Section.
    pub section: String,
    /// The worst state of what it needs.
    pub state: State,
    /// Which engines run it: `all` for an accepted program, `checked` for a rejected or unjudged
    /// one, `none` for one that can't be relocated.
    pub engine: &'static str,
    /// The reason: the verifier's message, or why the program can't be relocated.
    pub reason: Option<String>,
}

/// Something that programs need.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Need {
    /// Its name.
    pub name: String,
    /// How far it is supported.
    pub state: State,
    /// What a test has to do for it, or what is wrong.
    pub note: Option<String>,
    /// The programs that need it.
    pub programs: Vec<String>,
}

/// The engines that run a program.
const ALL: &str = "all";
const CHECKED: &str = "checked";
const NONE: &str = "none";

/// Needs of one kind, by name.
type Needs = BTreeMap<String, Need>;

impl Support {
    /// Finds what each program of an object needs.
    #[must_use]
    pub fn new(object: &Object) -> Self {
        let mut vm = Vm::with_world(World::default());
        let mut collected = Collected::default();
        let programs = object.entries().iter().map(|entry| {
            let (name, section) = (entry.name().to_owned(), entry.section().to_owned());
            match object.program(entry.name()) {
                Ok(program) => collected.program(&mut vm, &Arc::new(program)),
                Err(error) => ProgramSupport {
                    name,
                    section,
                    state: State::Unknown,
                    engine: NONE,
                    reason: Some(error.to_string()),
                },
            }
        });
        Self {
            object: object.file().to_owned(),
            programs: programs.collect(),
            contexts: collected.contexts.into_values().collect(),
            helpers: collected.helpers.into_values().collect(),
            kfuncs: collected.kfuncs.into_values().collect(),
            maps: collected.maps.into_values().collect(),
        }
    }

    /// Whether no program needs anything unknown.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.count(State::Unknown) == 0
    }

    /// Which programs need something, in words.
    fn of(&self, programs: &[String]) -> String {
        match programs.len() {
            all if all == self.programs.len() => "all programs".to_owned(),
            1 | 2 => programs.join(", "),
            some => format!("{some} programs"),
        }
    }

    fn count(&self, state: State) -> usize {
        let programs = self.programs.iter();
        programs.filter(|program| program.state == state).count()
    }
}

#[derive(Default)]
struct Collected {
    contexts: Needs,
    helpers: Needs,
    kfuncs: Needs,
    maps: Needs,
}

impl Collected {
    /// Adds what a program needs.
    fn program(&mut self, vm: &mut Vm, program: &Arc<Program>) -> ProgramSupport {
        let verification = verify(program, &Options::default());
        let (engine, reason) = match &verification.outcome {
            Ok(_) => (ALL, None),
            Err(_) => {
                let verdict = &verification.verdict;
                let why = format!("{}: {}", verdict.decision.word(), verdict.message);
                (CHECKED, Some(why))
            }
        };
        let mut worst = State::Implemented;
        let mut need = |needs: &mut Needs, name: String, found: Found| {
            worst = worst.max(found.0);
            let (state, note) = found;
            let need = needs.entry(name.clone()).or_insert_with(|| Need {
                name,
                state,
                note,
                programs: Vec::new(),
            });
            if need.programs.last() != Some(&program.name) {
                need.programs.push(program.name.clone());
            }
        };
        need(
            &mut self.contexts,
            context_name(program),
            context(vm, program),
        );
        for (pc, insn) in decode_all(&program.insns) {
            // Poisoned instructions are never reached: the kernel's types lack the access.
            if program
                .core_access(pc)
                .is_some_and(|access| access.poisoned)
            {
                continue;
            }
            match insn {
                Ok(Insn::Call(CallTarget::Helper(id))) => {
                    let (name, found) = helper(id);
                    need(&mut self.helpers, name, found);
                }
                Ok(Insn::Call(CallTarget::Kfunc { id, fd_index })) => {
                    let (name, found) = kfunc(program, id, fd_index);
                    need(&mut self.kfuncs, name, found);
                }
                Ok(Insn::LoadPseudo {
                    source: Pseudo::MapIdx { index } | Pseudo::MapIdxValue { index, .. },
                    ..
                }) => {
                    if let Some(def) = program.maps.get(index as usize) {
                        need(&mut self.maps, def.name.clone(), map(def));
                    }
                }
                _ => {}
            }
        }
        ProgramSupport {
            name: program.name.clone(),
            section: program.section.clone(),
            state: worst,
            engine,
            reason,
        }
    }
}

/// The state of something, and a note.
type Found = (State, Option<String>);

/// A program type's name, with the attach target.
fn context_name(program: &Program) -> String {
    let kind = program.prog_type.name();
    let kind = program.expected_attach_type.map_or_else(
        || kind.to_owned(),
        |attach| format!("{kind}/{}", attach.name()),
    );
    match &program.attach_target {
        Some(target) => format!("{kind} {target}"),
        None => kind,
    }
}

/// Whether an event can be made for a program.
fn context(vm: &mut Vm, program: &Program) -> Found {
    if let Some(btf) = program.kernel_btf.as_ref().or(program.btf.as_ref()) {
        vm.set_kernel_btf(btf.clone());
    }
    let has_fields = program.prog_type.info().context != ContextKind::Syscall;
    match vm.event_for(program, None) {
        Ok(event) if event.kind() == EventKind::Bytes && has_fields => {
            let note = "no layout: its context is given as bytes";
            (State::Mockable, Some(note.to_owned()))
        }
        Ok(_) => (State::Implemented, None),
        Err(Error::Event(EventError::NoLayout { tried, .. })) => {
            (State::Mockable, tried.last().cloned())
        }
        Err(Error::Attach { why, .. }) => (State::Mockable, Some(why)),
        Err(error) => (State::Unknown, Some(error.to_string())),
    }
}

fn helper(id: HelperId) -> (String, Found) {
    let Some(helper) = helpers::helper(id) else {
        let note = "Linux 6.18 has no helper of this number".to_owned();
        return (format!("number {id}"), (State::Unknown, Some(note)));
    };
    let name = format!("bpf_{}", helper.name);
    let found = match body(id) {
        Some(_) => (State::Implemented, None),
        None => (
            State::Mockable,
            Some(format!("vm.mock_helper(\"{name}\", |call| …)")),
        ),
    };
    (name, found)
}

/// A kfunc by its id in the BTF that the program was relocated for.
fn kfunc(program: &Program, id: TypeId, fd_index: i16) -> (String, Found) {
    let Some(callee) = Callee::of(program, id, fd_index) else {
        let note = "no BTF of the program names this function; `--btf own` finds it by its \
                    declaration"
            .to_owned();
        return (format!("BTF id {id}"), (State::Unknown, Some(note)));
    };
    let name = callee.name().to_string();
    let mock = Some(format!("vm.mock_kfunc(\"{name}\", |call| …)"));
    let found = match callee.id() {
        Some(id) if kfuncs::body(id).is_some() => (State::Implemented, None),
        // A kfunc that the table lacks, of a module perhaps, can be mocked by name, too.
        _ => (State::Mockable, mock),
    };
    (name, found)
}

/// Whether a map with this definition can be created.
fn map(def: &MapDef) -> Found {
    match maps::create(def, World::default().cpus()) {
        Ok(_) => (State::Implemented, Some(def.map_type.to_string())),
        // Loaders set the size of some maps.
        Err(error) => {
            let note = format!(
                "{error}; set it before loading: `object.map_mut(\"{}\")`",
                def.name
            );
            (State::Mockable, Some(note))
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "object {}", self.object)?;
        let mut table = Table::default();
        for program in &self.programs {
            let engine = match program.engine {
                ALL => "runs on all engines".to_owned(),
                NONE => "can't be loaded".to_owned(),
                engine => format!("runs on the {engine} engine"),
            };
            let line = match &program.reason {
                Some(reason) => format!("{engine}: {reason}"),
                None => engine,
            };
            table.row([program.name.clone(), program.state.to_string(), line]);
        }
        write!(f, "\nprograms\n{table}")?;
        for (title, needs) in [
            ("contexts", &self.contexts),
            ("helpers", &self.helpers),
            ("kfuncs", &self.kfuncs),
            ("maps", &self.maps),
        ] {
            if needs.is_empty() {
                continue;
            }
            let mut table = Table::default();
            for need in needs {
                table.row([
                    need.name.clone(),
                    need.state.to_string(),
                    self.of(&need.programs),
                    need.note.clone().unwrap_or_default(),
                ]);
            }
            write!(f, "\n{title}\n{table}")?;
        }
        writeln!(
            f,
            "\nprograms: {} with all they need, {} with mocks, {} need something unknown",
            self.count(State::Implemented),
            self.count(State::Mockable),
            self.count(State::Unknown),
        )
    }
}
