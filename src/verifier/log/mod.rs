//! The kernel's log (`kernel/bpf/log.c`): the buffer (`text`), instructions (`insn`),
//! states (`state`) and scalars (`number`).

mod insn;
mod number;
mod state;
mod text;
mod touched;

pub(crate) use self::insn::{Loaded, RegMask, SlotMask};
pub(crate) use self::state::{RegText, StateText, dynptr_name, type_name};
pub(crate) use self::text::{Log, log};
pub(crate) use self::touched::Touched;
