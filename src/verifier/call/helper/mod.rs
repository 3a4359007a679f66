//! Calls of helpers (`check_helper_call`, `kernel/bpf/verifier.c`).
//!
//! What a helper wants and gives stands in a table ([`spec::helpers`](crate::spec::helpers));
//! here stands what that means for the walk, in the kernel's order, which decides what a
//! program with several faults is told:
//!
//! | step | file |
//! |---|---|
//! | may this program call it, here? | `permit` |
//! | each argument: kind of register, offset, memory, size | `argument`, `arg_type`, `object`, `memory`, `stack`, `text` |
//! | the map: written, tail-called | `map` |
//! | memory that is filled, references given back, callbacks, rules of single helpers | `effects`, `reference` |
//! | what `r0` holds | `result` |

mod arg_type;
mod argument;
mod effects;
mod lock;
mod map;
mod memory;
mod object;
mod permit;
mod reference;
mod result;
mod stack;
mod text;
mod under_way;

use self::under_way::Call;
use crate::isa::Reg;
use crate::spec::helpers::{Effects, helper, id};
use crate::util::{HelperId, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::reject::Checked;

impl Verifier<'_> {
    /// The call of a helper at the instruction under way; where the walk goes on: at
    /// `next`, behind it, but for a tail call.
    pub(crate) fn check_helper_call(&mut self, id: HelperId, next: Pc) -> Checked<Pc> {
        self.check_call_under_lock(id)?;
        let prototype = self.helper_prototype(id)?;
        let mut call = Call::new(id, prototype);
        for (reg, arg) in std::iter::zip(Reg::ARGUMENTS, prototype.args) {
            self.check_argument(&mut call, reg, *arg)?;
        }
        if let Some((map, _)) = call.map {
            let known = (!map.inner).then_some(map.id);
            self.facts.see_map(self.pc, known);
        }
        self.check_map_write(&call)?;
        self.check_tail_call_key(&call)?;
        self.fill_stack(&call)?;
        self.release_argument(&call)?;
        self.check_rules(&call)?;
        self.forget_caller_saved();
        self.set_result(&call)?;
        self.check_map_fits(&call)?;
        self.check_program_fits(id)?;
        if id == id::tail_call {
            return self.leave_by_tail_call(next);
        }
        if helper(id).is_some_and(|helper| helper.effects.contains(Effects::CHANGES_PACKET)) {
            self.forget_packet_pointers();
        }
        Ok(next)
    }

    /// A tail call that succeeds never comes back to its function, but to the caller of
    /// that function; one that fails goes on behind the call, with the packet as it was.
    fn leave_by_tail_call(&mut self, next: Pc) -> Checked<Pc> {
        if self.state.current() == 0 {
            return Ok(next);
        }
        self.touch(Reg::R0);
        self.fork_without_limit(next, self.pc);
        self.forget_packet_pointers();
        self.set_unknown(Reg::R0);
        self.check_return()
    }
}
