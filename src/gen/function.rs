//! A whole function: its start, its steps, its end.

use super::body::{Body, Step};
use super::setting::Role;
use super::state::{BUFFER, BUFFER_AT, Holds};
use super::{branch, calls, compute, look_up, memory, objects, output, packet, scopes, tracing};
use crate::isa::{AluOp, Insn, Operand, Reg, RegSet, Size, Width};

/// All steps with their weights. The first one is the simplest, which zeros select.
pub(super) const STEPS: &[Step] = &[
    (14, compute::constant),
    (40, compute::arithmetic),
    (14, compute::unary),
    (10, compute::copy),
    (20, branch::branch),
    (12, branch::close),
    (2, branch::nowhere),
    (6, branch::count),
    (12, memory::spill),
    (12, memory::fill),
    (10, memory::context),
    (4, memory::buffer),
    (24, memory::access),
    (6, memory::move_pointer),
    (2, memory::leak),
    (8, look_up::look_up),
    (1, look_up::look_up_on_cpu),
    (2, look_up::look_up_inner),
    (3, look_up::direct),
    (3, look_up::null_check),
    (3, look_up::update),
    (1, look_up::delete),
    (2, look_up::queue),
    (7, packet::direct),
    (3, packet::load),
    (2, packet::copy),
    (1, packet::adjust),
    (3, output::environment),
    (2, tracing::task),
    (1, tracing::comm),
    (3, tracing::probe_read),
    (1, tracing::stack),
    (2, output::checksum),
    (1, output::print),
    (1, output::perf),
    (1, output::ring_output),
    (1, output::ring_query),
    (3, output::ring_reserve),
    (8, calls::function),
    (4, calls::callback),
    (2, calls::tail),
];

/// The steps with kernel objects, in programs that use them.
pub(super) const OBJECTS: &[Step] = &[
    (6, objects::current),
    (14, objects::argument),
    (3, objects::stored),
    (24, objects::load_member),
    (10, objects::write_member),
    (34, objects::any_call),
    (10, look_up::null_check),
    (8, scopes::section),
    (12, scopes::iterate),
    (14, scopes::dynptr),
    (12, scopes::use_dynptr),
];

/// The steps of programs that test tail calls: nothing that uses much stack.
pub(super) const TAIL_CALLS: &[Step] = &[
    (6, compute::constant),
    (20, compute::arithmetic),
    (6, compute::copy),
    (10, branch::branch),
    (8, branch::close),
    (8, memory::spill),
    (8, memory::fill),
    (6, memory::context),
    (3, look_up::direct),
    (6, memory::access),
    (20, calls::function),
    (20, calls::tail),
];

/// The most steps of the main function and of others, and the most instructions to which
/// one is added.
const MOST: usize = 120;
const MOST_OF_FUNCTION: usize = 12;
const LONG: usize = 400;

/// Generates a function; returns how many results were masked, and the functions that it
/// calls.
pub(super) fn write(mut body: Body<'_>) -> (usize, Vec<usize>) {
    let (label, role) = (body.function().label, body.function().role);
    body.code.bind(label);
    let start = body.code.len();
    keep_arguments(&mut body);
    let buffers = if body.setting.options.tail_calls {
        0
    } else {
        BUFFER / 8
    };
    for at in 0..buffers {
        let imm = body.choices.imm();
        let off = BUFFER_AT + 8 * at;
        body.store(Size::Dw, Reg::FP, off, Operand::Imm(imm));
    }
    if role == Role::Main {
        objects::release_arguments(&mut body);
    }
    let most = match role {
        Role::Main if body.setting.options.tail_calls => {
            1 + body.choices.below(2 * MOST_OF_FUNCTION)
        }
        Role::Main => MOST,
        _ => 1 + body.choices.below(MOST_OF_FUNCTION),
    };
    let mut steps = 0;
    while steps < most && !body.choices.is_over() && body.code.len() - start < LONG {
        body.step();
        steps += 1;
    }
    body.close_all(0);
    end(&mut body, role);
    (body.masked, body.called)
}

/// Keeps the context in r6, where packet loads expect it, and pointers over calls.
fn keep_arguments(body: &mut Body<'_>) {
    let mut homes = [Reg::R7, Reg::R8, Reg::R9].into_iter();
    for arg in Reg::ARGUMENTS {
        let holds = body.state.get(arg);
        let home = match holds {
            Holds::Context => Some(Reg::R6),
            Holds::Pointer(_) => homes.next(),
            _ => None,
        };
        if let Some(home) = home {
            body.mov(home, arg);
            body.state.set(home, holds);
            if holds == Holds::Context {
                body.pinned = body.pinned.with(home);
            }
        }
    }
}

/// Combines the numbers in registers into r0, and returns.
fn end(body: &mut Body<'_>, role: Role) {
    let numbers = body.state.with(|holds| holds == Holds::Number);
    if !numbers.contains(Reg::R0) {
        body.constant_into(Reg::R0);
    }
    for reg in numbers.minus(RegSet::of(&[Reg::R0])).iter() {
        body.alu(AluOp::Mul, Width::W64, Reg::R0, Operand::Imm(31));
        body.alu(AluOp::Xor, Width::W64, Reg::R0, Operand::Reg(reg));
    }
    if role == Role::Main {
        calls::keep_result(body);
    }
    if let Some(most) = body.returnable().filter(|_| !body.slips_often()) {
        // A callback that returns 1 is not called again.
        let most = if body.choices.chance(20) { most } else { 0 };
        body.alu(AluOp::And, Width::W64, Reg::R0, Operand::Imm(most));
    }
    body.code.emit(Insn::Exit);
}
