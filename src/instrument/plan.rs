//! The analysis of a program for both of its forms.

use std::collections::BTreeMap;

use super::context::check_type;
use super::dataflow::{Bytes, Dataflow, Kind, Owner};
use super::entries::Entries;
use super::error::{Reason, SchemaError, Unrecordable};
use super::find::{At, Clear, Finder, Found, Jump};
use super::fit::Fitter;
use super::frame::Frame;
use super::handover::MOST_SITES;
use super::liveness::Liveness;
use super::schema::SchemaSite;
use super::site::{Moment, Site};
use super::unwritten::Unwritten;
use crate::analysis::Cfg;
use crate::isa::{Code, RegSet};
use crate::program::Program;
use crate::util::Pc;

/// The analysis of a recordable program: its sites, and what is needed to build its forms.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) program: Program,
    pub(super) code: Code,
    pub(super) sites: Vec<Site>,
    pub(super) clears: Vec<Clear>,
    pub(super) jumps: Vec<Jump>,
    pub(super) functions: Vec<Function>,
    /// The number of bytes of the context that the program reads, from its start.
    pub(super) context: u32,
}

/// A function that the program reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// Its first instruction.
    pub(super) start: Pc,
    /// The slot after its last.
    pub(super) end: Pc,
    /// Its name, for messages.
    pub(super) name: String,
    /// How it is entered.
    pub(super) called: Called,
    /// Its arguments: registers that it reads and every caller sets.
    pub(super) arguments: RegSet,
    /// Registers that it may read before it writes them.
    pub(super) reads: RegSet,
    /// Bytes of stack that the function itself uses.
    pub(super) stack: u16,
    /// Bytes of stack that it may read before it writes them.
    pub(super) unwritten: Bytes,
}

/// How a function is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// As the program.
    Main,
    /// By calls in the program, verified in the context of each call.
    Directly,
    /// By a helper, or verified on its own: only its own arguments are defined.
    OnItsOwn,
}

impl Plan {
    /// Analyses a program.
    ///
    /// # Errors
    /// [`Unrecordable`] if it does something that can't be recorded and replayed.
    pub fn new(program: &Program) -> Result<Self, Unrecordable> {
        Self::analyse(program, |_, _, _| Ok(()))
    }

    /// Analyses a program whose logs have the sites of this schema: they may differ from those
    /// of [`new`](Self::new), if another version of bpflab wrote the logs.
    ///
    /// # Errors
    /// [`SchemaError`] if the schema does not fit the program, or if this version can't replay
    /// such logs.
    pub fn with_schema(program: &Program, schema: &[SchemaSite]) -> Result<Self, SchemaError> {
        let mut fitter = Fitter::new(schema)?;
        let mut plan = Self::analyse(program, |finder, at, own| fitter.see(finder, at, own))?;
        plan.sites = fitter.finish(&plan.code)?;
        Ok(plan)
    }

    /// The schema of the program's logs.
    #[must_use]
    pub fn schema(&self) -> Vec<SchemaSite> {
        self.sites.iter().map(SchemaSite::from).collect()
    }

    /// Analyses a program; passes each reached instruction to `see`, with its own sites.
    fn analyse<E: From<Unrecordable>>(
        program: &Program,
        mut see: impl FnMut(&Finder<'_>, &At<'_>, &[Site]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let unrecordable = |pc, reason| Unrecordable {
            program: program.name.clone(),
            pc,
            reason,
        };
        let whole = |reason| unrecordable(None, reason);
        check_type(program).map_err(whole)?;
        let code = Code::new(&program.insns);
        if let Some(error) = code.errors().first() {
            let reason = Reason::NoInstruction(error.to_string());
            return Err(unrecordable(Some(error.pc), reason).into());
        }
        let cfg = Cfg::new(&code).map_err(|error| unrecordable(error.pc(), error.into()))?;
        let flow = Dataflow::new(program, &code, &cfg)
            .map_err(|(pc, reason)| unrecordable(Some(pc), reason))?;
        let liveness = Liveness::new(program, &code, &cfg);
        let mut finder = Finder {
            program,
            liveness: &liveness,
            found: Found::default(),
        };
        let mut stack = Stack::default();
        let mut unwritten = Unwritten::default();
        flow.visit(|pc, insn, before, after| {
            let function = cfg.function_at(pc).map_or(0, |(number, _)| number);
            stack.see(function, insn, before, after);
            unwritten.see(program, function, insn, before);
            let at = At {
                pc,
                insn,
                before,
                after,
            };
            let known = finder.found.sites.len();
            finder
                .see(&at)
                .map_err(|reason| unrecordable(Some(pc), reason))?;
            let own = finder.found.sites.get(known..);
            see(&finder, &at, own.unwrap_or_default())
        })?;
        let found = finder.found;
        if found.sites.len() > MOST_SITES {
            return Err(whole(Reason::Sites(found.sites.len())).into());
        }
        for jump in &found.jumps {
            let function = cfg.function_at(jump.pc);
            if function.is_some_and(|(_, it)| flow.is_in_callback(it.start)) {
                let why = "a tail call in a callback of a helper";
                return Err(unrecordable(Some(jump.pc), Reason::Instruction(why)).into());
            }
        }
        let functions = functions(program, &cfg, &flow, &liveness, &stack, &unwritten);
        Ok(Self {
            program: program.clone(),
            sites: found.sites,
            clears: found.clears,
            jumps: found.jumps,
            context: found.context,
            functions,
            code,
        })
    }

    /// The program's sites, by number.
    #[must_use]
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The program's tail calls. If there are any, its firings may continue in other programs,
    /// so it can only be recorded [together with them](super::Relays).
    #[must_use]
    pub fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    /// The program that was analysed.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// The entries of a firing's log, or of the [segment](super::Segment) that the program
    /// wrote.
    #[must_use]
    pub fn entries<'a>(&'a self, log: &'a [u8]) -> Entries<'a> {
        Entries::new(&self.sites, log)
    }

    /// The sites of each instruction, before and after it.
    pub(super) fn sites_by_position(&self) -> BTreeMap<(Pc, Moment), Vec<&Site>> {
        let mut positions: BTreeMap<_, Vec<&Site>> = BTreeMap::new();
        for site in &self.sites {
            positions
                .entry((site.pc, site.moment))
                .or_default()
                .push(site);
        }
        positions
    }

    /// The function that an instruction belongs to, as an index into
    /// [`functions`](Self::functions).
    pub(super) fn function_at(&self, pc: Pc) -> Option<usize> {
        let after = self
            .functions
            .partition_point(|function| function.start <= pc);
        let at = after.checked_sub(1)?;
        (pc < self.functions.get(at)?.end).then_some(at)
    }

    /// New stack frames without added slots, one for each function.
    pub(super) fn frames(&self) -> Vec<Frame> {
        let functions = self.functions.iter();
        functions
            .map(|function| Frame::new(function.stack))
            .collect()
    }
}

/// The stack depth of functions, by number.
#[derive(Debug, Default)]
struct Stack(BTreeMap<usize, i16>);

impl Stack {
    /// Visits an instruction that may compute or use a stack address.
    fn see(
        &mut self,
        function: usize,
        insn: crate::isa::Insn,
        before: &super::dataflow::State,
        after: &super::dataflow::State,
    ) {
        let lowest = self.0.entry(function).or_default();
        let mut used = |kind: Kind| {
            if let Kind::Frame {
                owner: Owner::Own,
                off: Some(off),
            } = kind
            {
                *lowest = (*lowest).min(off);
            }
        };
        if let Some((base, off, _)) = insn.memory() {
            used(before.reg(base).moved_by(off));
        }
        for reg in insn.writes().iter() {
            used(after.reg(reg));
        }
    }

    fn of(&self, function: usize) -> u16 {
        self.0
            .get(&function)
            .map_or(0, |lowest| lowest.unsigned_abs())
    }
}

fn functions(
    program: &Program,
    cfg: &Cfg,
    flow: &Dataflow<'_>,
    liveness: &Liveness<'_>,
    stack: &Stack,
    unwritten: &Unwritten,
) -> Vec<Function> {
    let reached = (0..).zip(cfg.functions()).filter_map(|(number, function)| {
        let start = function.start;
        let entry = flow.entry(start)?;
        let declared = program.subprogram(start).filter(|it| it.start == start);
        let called = if start == Pc(0) {
            Called::Main
        } else if flow.is_callback(start) || declared.is_some_and(|it| it.global) {
            Called::OnItsOwn
        } else {
            Called::Directly
        };
        let reads = liveness.before(start);
        Some(Function {
            start,
            end: function.end,
            name: declared.map_or_else(|| format!("at {start}"), |it| it.name.clone()),
            called,
            arguments: reads.minus(reads.minus(entry.defined())),
            reads,
            unwritten: unwritten.of(number).minus(beyond(stack.of(number))),
            stack: stack.of(number),
        })
    });
    reached.collect()
}

/// The bytes below the stack that a function uses.
fn beyond(stack: u16) -> Bytes {
    let used = i16::try_from(stack).map_or(i16::MIN, |used| -used);
    Bytes::of(i16::MIN, None).minus(Bytes::of(used, None))
}
