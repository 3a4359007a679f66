//! A program to be judged, with its inputs.

use std::sync::Arc;

use super::strategy::Strategy;
use crate::compare::Subject;
use crate::isa::{disassemble, low32};
use crate::program::{Program, TargetProgram};
use crate::spec::ProgType;
use crate::vm::events::Event;

/// The size of a context without layout: larger than those of all program types. A syscall
/// program may read at every offset of 16 bits (`check_ctx_access`, `kernel/bpf/verifier.c`).
pub(super) const fn context_size(prog_type: ProgType) -> usize {
    match prog_type {
        ProgType::Syscall => (1 << 16) + 8,
        _ => 8192,
    }
}

/// A program to be judged. Inputs other than the first are drawn from a seed.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its number in the campaign.
    pub number: u64,
    /// How it was made; `None` for one from a file.
    pub strategy: Option<Strategy>,
    /// The program.
    pub program: Arc<Program>,
    /// Programs that it may jump to by tail calls; they share its maps.
    pub others: Vec<Arc<Program>>,
    /// The first input: a packet, or the context's bytes.
    pub input: Vec<u8>,
    /// The seed of the other inputs.
    pub seed: u64,
    /// Whether its results don't depend on the machine, so that a kernel has the same.
    pub defined: bool,
}

impl Candidate {
    /// A program by itself.
    #[must_use]
    pub const fn new(program: Arc<Program>, input: Vec<u8>, seed: u64) -> Self {
        Self {
            number: 0,
            strategy: None,
            program,
            others: Vec::new(),
            input,
            seed,
            defined: false,
        }
    }

    /// A program of a file: its first input is zeros, enough of them for its context.
    #[must_use]
    pub fn of_file(program: Arc<Program>, seed: u64) -> Self {
        let is_packet = Event::packet([0; 64]).accepts(program.prog_type);
        let len = if is_packet {
            64
        } else {
            context_size(program.prog_type)
        };
        Self::new(program, vec![0; len], seed)
    }

    /// The same with another program.
    #[must_use]
    pub fn with_program(&self, program: Arc<Program>) -> Self {
        Self {
            program,
            ..self.clone()
        }
    }

    /// The program that it extends, if it is an extension.
    #[must_use]
    pub fn target(&self) -> Option<&TargetProgram> {
        let is_extension = self.program.prog_type == ProgType::Ext;
        self.program.attach_prog.known().filter(|_| is_extension)
    }

    /// The program that runs: itself, or the one that it extends.
    #[must_use]
    pub fn entry(&self) -> &Arc<Program> {
        self.target()
            .map_or(&self.program, |target| &target.program)
    }

    /// Whether the arguments of the program that runs are pointers to objects, which each machine
    /// has to make.
    #[must_use]
    pub fn takes_objects(&self) -> bool {
        let entry = self.entry();
        entry.attach_btf_id.is_some() || entry.prog_type == ProgType::Netfilter
    }

    /// The CPU of its runs on a machine with so many.
    pub(super) fn cpu_of(&self, cpus: u32) -> u32 {
        low32(self.seed % u64::from(cpus.max(1)))
    }

    /// Its first input as an event.
    #[must_use]
    pub fn event(&self) -> Event {
        Event::input(self.entry().prog_type, self.input.clone())
    }

    /// The subject of a comparison of engines.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject::new(self.entry().clone(), self.event())
            .with_others(self.others.clone())
            .with_extensions(self.extensions().cloned().collect())
    }

    /// The program if it is an extension.
    fn extensions(&self) -> impl Iterator<Item = &Arc<Program>> {
        self.target().map(|_| &self.program).into_iter()
    }

    /// All programs, in the order of [`Subject::programs`]: the one that runs, those that it may
    /// jump to, its extension.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        [self.entry()]
            .into_iter()
            .chain(&self.others)
            .chain(self.extensions())
    }

    /// The listing of its programs.
    #[must_use]
    pub fn listing(&self) -> String {
        let texts = self.programs().map(|program| {
            let kind = program.prog_type.name();
            format!("{kind}\n{}", disassemble(&program.insns, &**program))
        });
        texts.collect::<Vec<_>>().join("---\n")
    }
}
