//! Calls of helpers (`check_helper_call`, `kernel/bpf/verifier.c`).
//!
//! The prototypes are in a table ([`spec::helpers`](crate::spec::helpers)), which yields the
//! [preconditions](crate::spec::call::Precondition) of each argument. The checks have the
//! kernel's order, which decides the error of a program with several faults:
//!
//! | step | file |
//! |---|---|
//! | may this program call the helper here? | `permit` |
//! | the preconditions of each argument: kind of register, offset, memory, size | `argument`, `arg_type`, `object`, `memory`, `stack`, `text` |
//! | the map: writes, tail calls | `map` |
//! | filled memory, released references, callbacks, rules of single helpers | `effects`, `reference` |
//! | the value of `r0` | `result` |

mod arg_type;
mod argument;
mod call_state;
mod dynptr;
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

pub(in crate::verifier) use self::arg_type::check_type;
use self::call_state::Call;
pub(in crate::verifier) use self::reference::Exit;
use crate::isa::Reg;
use crate::spec::helpers::id;
use crate::util::{HelperId, Pc};
use crate::verifier::env::Verifier;
use crate::verifier::reject::VerifyResult;

impl Verifier<'_> {
    /// Checks a helper call. Returns where exploration continues: at `next`, except for a
    /// tail call in a subprogram.
    pub(crate) fn check_helper_call(&mut self, id: HelperId, next: Pc) -> VerifyResult<Pc> {
        self.check_call_under_lock(id)?;
        let prototype = self.helper_prototype(id)?;
        let mut call = Call::new(id, prototype);
        for (reg, arg) in std::iter::zip(Reg::ARGUMENTS, prototype.arguments) {
            self.check_argument(&mut call, reg, arg)?;
        }
        if let Some((map, _)) = call.map {
            let known = (!map.inner).then_some(map.id);
            self.facts.see_map(self.pc(), known);
        }
        self.check_map_write(&call)?;
        self.check_tail_call_key(&call)?;
        self.fill_stack(&call)?;
        self.release_argument(&call)?;
        self.check_dynptr_rules(&mut call)?;
        self.check_rules(&call)?;
        self.forget_caller_saved();
        self.set_result(&call)?;
        self.check_map_fits(&call)?;
        self.check_program_fits(id)?;
        if id == id::tail_call {
            return self.leave_by_tail_call(next);
        }
        if call.changes_packet {
            self.forget_packet_pointers();
        }
        Ok(next)
    }

    /// A successful tail call never returns to its function, but to the caller of that
    /// function. A failed one continues after the call, with the packet unchanged.
    fn leave_by_tail_call(&mut self, next: Pc) -> VerifyResult<Pc> {
        if self.state.current() == 0 {
            return Ok(next);
        }
        self.log.touch(Reg::R0);
        self.push_branch_without_limit(next, self.pc());
        self.forget_packet_pointers();
        self.set_unknown(Reg::R0);
        self.check_return()
    }
}
