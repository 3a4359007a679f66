//! How programs are made.

use std::sync::Arc;

use super::aimed::{self, Aim};
use super::candidate::{Candidate, context_size};
use super::inputs::Inputs;
use super::listing::Listing;
use super::mutate::{Mutant, mutate};
use super::random::Random;
use super::strategy::Strategy;
use crate::r#gen::{Choices, KernelTypes, Options, make};
use crate::program::{Initial, Program};
use crate::spec::ProgType;
use crate::vm::events::Event;

/// The random bytes that most programs are made from: at least, and how many more.
const SIZE: (usize, u64) = (40, 160);
/// Every so many programs one is made from many more.
const LARGE: (u64, usize) = (16, 700);

/// What the programs of a strategy aim at.
const fn aim(strategy: Strategy) -> Option<Aim> {
    Some(match strategy {
        Strategy::Scalars => Aim::Scalars,
        Strategy::Spills => Aim::Spills,
        Strategy::Offsets => Aim::Offsets,
        Strategy::Linked => Aim::Linked,
        Strategy::Precision => Aim::Precision,
        Strategy::Loops => Aim::Loops,
        Strategy::References => Aim::References,
        Strategy::Helpers => Aim::Helpers,
        Strategy::Idioms => Aim::Idioms,
        Strategy::Frames => Aim::Frames,
        Strategy::Unwritten => Aim::Unwritten,
        Strategy::Joins => Aim::Joins,
        Strategy::Constants => Aim::Constants,
        _ => return None,
    })
}

/// What programs are made from.
#[derive(Debug, Default)]
pub struct Seeds {
    /// The types of a kernel, for some strategies.
    pub kernel: Option<KernelTypes>,
    /// Programs to be changed, besides generated ones.
    pub programs: Vec<Arc<Program>>,
    /// Their listings.
    listings: Vec<Listing>,
}

impl Seeds {
    /// From the types of a kernel, and programs to be changed.
    #[must_use]
    pub fn new(kernel: Option<KernelTypes>, programs: Vec<Arc<Program>>) -> Self {
        let listings = programs.iter().map(|program| Listing::of(program));
        Self {
            kernel,
            listings: listings.collect(),
            programs,
        }
    }

    /// Makes the candidate of this number with one of the strategies, of which there must be
    /// at least one.
    #[must_use]
    pub fn candidate(&self, seed: u64, number: u64, strategies: &[Strategy]) -> Candidate {
        let mut random = Random(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        random.bits();
        let weight = |strategy: &Strategy| {
            let row = Strategy::ALL.iter().find(|(known, ..)| known == strategy);
            row.map_or(1, |(.., weight)| *weight)
        };
        let chosen = random.weighted(strategies, weight);
        let strategy = chosen.copied().unwrap_or(Strategy::Whole);
        let mut candidate = self.made(strategy, &mut random);
        candidate.number = number;
        candidate.strategy = Some(strategy);
        candidate
    }

    fn made(&self, strategy: Strategy, random: &mut Random) -> Candidate {
        if strategy == Strategy::Mutants {
            return self.mutant(random);
        }
        if let Some(aim) = aim(strategy) {
            let program = Arc::new(aimed::program(random, aim));
            let input = Inputs::new(random.bits()).bytes(aimed::INPUT);
            return Candidate {
                defined: strategy != Strategy::Unwritten,
                ..Candidate::new(program, input, random.bits())
            };
        }
        let on_packets = match strategy {
            Strategy::Packets => Some(aimed::packets::program(random)),
            Strategy::Pointers => Some(aimed::pointers::program(random)),
            Strategy::Maps => Some(aimed::maps::program(random)),
            _ => None,
        };
        if let Some(program) = on_packets {
            let program = Arc::new(program);
            let len = 14 + random.index(50);
            let input = Inputs::new(random.bits()).bytes(len);
            return Candidate {
                // Pointers may show as numbers.
                defined: strategy != Strategy::Pointers,
                ..Candidate::new(program, input, random.bits())
            };
        }
        if strategy == Strategy::Extensions {
            return extension(random);
        }
        if let (Strategy::Graphs, Some(kernel)) = (strategy, &self.kernel) {
            let program = Arc::new(aimed::graphs::program(random, kernel));
            return Candidate {
                defined: true,
                ..Candidate::new(program, vec![0; 64], random.bits())
            };
        }
        if let (Strategy::Arenas, Some(kernel)) = (strategy, &self.kernel) {
            let program = Arc::new(aimed::arenas::program(random, kernel));
            let input = Inputs::new(random.bits()).bytes(aimed::INPUT);
            return Candidate {
                defined: true,
                ..Candidate::new(program, input, random.bits())
            };
        }
        let size = match random.below(LARGE.0) {
            0 => LARGE.1,
            _ => SIZE.0 + random.index(usize::try_from(SIZE.1).unwrap_or_default()),
        };
        let mut choices = Choices::seeded(random.bits(), size);
        let kernel = self
            .kernel
            .as_ref()
            .filter(|_| strategy.needs_kernel_types());
        let is_operation = strategy == Strategy::StructOps;
        let options = Options {
            prog_type: is_operation.then_some(ProgType::StructOps),
            defined: !is_operation && strategy != Strategy::Whole,
            tail_calls: strategy == Strategy::TailCalls,
            mistakes: strategy == Strategy::Mistakes || is_operation && random.chance(20),
            kernel,
            ..Options::default()
        };
        let made = make(&mut choices, options);
        Candidate {
            others: made.others,
            // Their frames are handed over with bytes that nobody wrote.
            defined: options.defined && !options.tail_calls,
            ..Candidate::new(made.program, made.input, random.bits())
        }
    }

    /// A program with changes.
    fn mutant(&self, random: &mut Random) -> Candidate {
        let from_files = !self.programs.is_empty() && random.chance(80);
        let (program, listing, mut candidate) = if from_files {
            let at = random.index(self.programs.len());
            let program = self.programs[at].clone();
            let candidate = Candidate::of_file(program.clone(), random.bits());
            (program, self.listings[at].clone(), candidate)
        } else {
            let all = Strategy::ALL.map(|(strategy, ..)| strategy);
            let mut from = random.pick(&all);
            if from == Strategy::Mutants || from.needs_kernel_types() && self.kernel.is_none() {
                from = Strategy::Scalars;
            }
            let mut candidate = self.made(from, random);
            // Its targets are not changed along with it.
            candidate.others.clear();
            let program = without_targets(&candidate.program);
            (program.clone(), Listing::of(&program), candidate)
        };
        let aims = [
            Strategy::Scalars,
            Strategy::Spills,
            Strategy::Offsets,
            Strategy::References,
        ];
        let other = random.pick(&aims);
        let other = self.made(other, random).program;
        let mut others = vec![Listing::of(&other)];
        if let Some(other) = self.listings.get(random.index(self.listings.len())) {
            others.push(other.clone());
        }
        let mut mutant = Mutant {
            program: Program::clone(&program),
            listing,
            others: &others,
        };
        mutate(&mut mutant, random, 3);
        let mut changed = mutant
            .listing
            .program(&mutant.program)
            .unwrap_or_else(|| Program::clone(&program));
        // A change may load a member of one of the kernel's structures, such as `struct bpf_map`.
        if let (None, Some(kernel)) = (&changed.kernel_btf, &self.kernel) {
            changed.kernel_btf = Some(kernel.btf().clone());
        }
        candidate.program = Arc::new(changed);
        // A change may read more of the context, or be of another type.
        let is_packet = Event::packet([0; 64]).accepts(candidate.program.prog_type);
        let size = context_size(candidate.program.prog_type);
        if !is_packet && candidate.input.len() < size {
            candidate.input.resize(size, 0);
        }
        candidate.defined = false;
        candidate
    }
}

/// An extension with its target.
fn extension(random: &mut Random) -> Candidate {
    let made = aimed::extensions::program(random);
    let len = 14 + random.index(100);
    let input = Inputs::new(random.bits()).bytes(len);
    Candidate {
        defined: made.defined,
        ..Candidate::new(Arc::new(made.program), input, random.bits())
    }
}

/// The program with empty prog arrays.
pub(super) fn without_targets(program: &Program) -> Arc<Program> {
    let mut program = program.clone();
    let mut maps = program.maps.to_vec();
    for map in &mut maps {
        map.initial
            .retain(|entry| !matches!(entry, Initial::Program { .. }));
    }
    program.maps = maps.into();
    Arc::new(program)
}
