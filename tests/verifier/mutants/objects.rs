//! Generated programs (`bpflab::gen`) that use the kernel's objects: typed pointers, kfuncs,
//! dynptrs, iterators.

use std::collections::BTreeMap;

use bpflab::btf::Btf;
use bpflab::r#gen::{Choices, KernelTypes, Made, Options, make_all};
use bpflab::isa::{CallTarget, Insn, decode_program};
use bpflab::program::Program;

use bpflab::fuzz::Random;

/// Programs that are loaded with the same maps and types.
const TOGETHER: u64 = 40;
/// The number of bytes that determine a program.
const SIZE: u64 = 700;

/// Programs of all types; some have a mistake.
pub fn programs(random: &mut Random, kernel: &KernelTypes) -> Vec<Program> {
    let options = Options {
        kernel: Some(kernel),
        mistakes: random.chance(50),
        ..Options::default()
    };
    let mut rows: Vec<_> = (0..TOGETHER)
        .map(|_| {
            let size = usize::try_from(60 + random.below(SIZE)).unwrap();
            Choices::seeded(random.below(u64::MAX), size)
        })
        .collect();
    let made = make_all(&mut rows, options).into_iter();
    // The maps have the same form.
    let program = |made: Made| std::sync::Arc::unwrap_or_clone(made.program);
    made.map(program).collect()
}

/// How often programs do what.
#[derive(Default)]
pub struct Uses(BTreeMap<String, usize>);

impl Uses {
    pub fn add(&mut self, program: &Program, kernel: &Btf) {
        let mut what = vec![program.prog_type.name().to_owned()];
        what.extend(program.attach_target.clone());
        for insn in decode_program(&program.insns).unwrap_or_default() {
            match insn {
                Insn::Call(CallTarget::Kfunc { id, .. }) => {
                    what.push(kernel.ty(id).name().to_owned());
                }
                Insn::Call(CallTarget::Helper(id)) => what.push(format!("helper {}", id.0)),
                _ => {}
            }
        }
        what.sort();
        what.dedup();
        for what in what {
            *self.0.entry(what).or_default() += 1;
        }
    }

    pub fn count(&self, what: &str) -> usize {
        self.0.get(what).copied().unwrap_or_default()
    }

    /// One line: what is used, and by how many programs.
    pub fn tell(&self) -> String {
        let words = self.0.iter().map(|(what, count)| format!("{what} {count}"));
        words.collect::<Vec<_>>().join(", ")
    }
}
