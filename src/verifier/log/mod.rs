//! The log in the kernel's words (`kernel/bpf/log.c`): the `text`, and what is in it:
//! instructions (`insn`), states (`state`), the types of registers (`name`) and their
//! numbers (`number`).

mod insn;
pub(crate) mod name;
mod number;
mod state;
mod text;

pub(crate) use self::insn::{Loaded, RegMask, SlotMask};
pub(crate) use self::state::{RegText, StateText};
pub(crate) use self::text::{Log, log};
