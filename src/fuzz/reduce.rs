//! The reducer: removes what a failure does not need.

use std::sync::Arc;

use super::listing::Listing;
use crate::isa::RawInsn;
use crate::program::Program;

/// `dst = imm`, 64 bits.
const MOVE: u8 = 0xb7;

/// Removes the parts of a program that a failure does not need, in at most `tries` attempts:
/// runs of instructions, then single ones, which become constants where they can't be removed.
/// `fails` says whether a program still fails; the program itself must.
pub fn reduce(
    program: &Arc<Program>,
    tries: usize,
    mut fails: impl FnMut(&Arc<Program>) -> bool,
) -> Arc<Program> {
    let mut reducer = Reducer {
        original: program,
        best: Arc::clone(program),
        listing: Listing::of(program),
        tries,
        fails: &mut fails,
    };
    loop {
        let before = reducer.best.insns.clone();
        reducer.remove();
        reducer.simplify();
        if reducer.tries == 0 || reducer.best.insns == before {
            return reducer.best;
        }
    }
}

struct Reducer<'a> {
    original: &'a Arc<Program>,
    best: Arc<Program>,
    /// The listing of `best`.
    listing: Listing,
    tries: usize,
    fails: &'a mut dyn FnMut(&Arc<Program>) -> bool,
}

impl Reducer<'_> {
    /// Takes a listing if it still fails.
    fn take(&mut self, listing: Listing) -> bool {
        let Some(left) = self.tries.checked_sub(1) else {
            return false;
        };
        self.tries = left;
        let Some(made) = listing.program(self.original).map(Arc::new) else {
            return false;
        };
        let fails = (self.fails)(&made);
        if fails {
            self.best = made;
            self.listing = listing;
        }
        fails
    }

    /// Removes runs of instructions: half of them, a quarter, and so on.
    fn remove(&mut self) {
        let mut size = self.listing.items.len() / 2;
        while size > 0 {
            let (mut at, mut smaller) = (0, false);
            while at + size <= self.listing.items.len() && self.listing.items.len() > size {
                let mut without = self.listing.clone();
                without.remove(at, size);
                if self.take(without) {
                    smaller = true;
                } else if self.tries == 0 {
                    return;
                } else {
                    at += size;
                }
            }
            if !smaller || size > 1 {
                size /= 2;
            }
        }
    }

    /// Replaces instructions by constants in the register that they write, and constants by
    /// zero and one.
    fn simplify(&mut self) {
        for at in 0..self.listing.items.len() {
            let Some(item) = self.listing.items.get(at).copied() else {
                return;
            };
            // Arithmetic, and loads: others have no register that they write.
            let writes = matches!(item.insn.opcode & 7, 0 | 1 | 4 | 7);
            if !writes || item.insn.dst() >= 10 {
                continue;
            }
            for imm in [0, 1] {
                let constant = RawInsn::new(MOVE, item.insn.dst(), 0, 0, imm);
                let is_simple = item.insn.opcode == MOVE && (0..=imm).contains(&item.insn.imm);
                if is_simple {
                    break;
                }
                let mut simpler = self.listing.clone();
                if let Some(item) = simpler.items.get_mut(at) {
                    item.insn = constant;
                    item.second = None;
                    item.to = None;
                }
                if self.take(simpler) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::assemble;
    use crate::spec::ProgType;

    #[test]
    fn what_is_not_needed_goes() {
        let text = "r6 = 5\nr7 = 9\nif r6 > 3 goto +1\nr7 = 2\nr7 *= 3\nr0 = r7\nr0 /= 7\nexit";
        let insns = assemble(text).unwrap();
        let program = Arc::new(Program::new("long", ProgType::Xdp, insns));
        let divides = |program: &Arc<Program>| program.insns.iter().any(|it| it.opcode == 0x37);
        let reduced = reduce(&program, 1000, divides);
        assert_eq!(reduced.insns, assemble("r0 /= 7").unwrap());
        assert_eq!(reduce(&program, 0, divides).insns, program.insns);
    }
}
