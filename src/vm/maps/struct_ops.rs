//! `struct_ops`: kernel tables of functions that programs implement
//! (`kernel/bpf/bpf_struct_ops.c`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::base::Base;
use super::handle::ProgramHandle;
use super::{Kind, Map};
use crate::program::MapDef;
use crate::spec::{MapFlags, UpdateFlags};
use crate::util::{Errno, TypeId};

/// `BPF_MAP_TYPE_STRUCT_OPS`: one struct with its functions. A test calls them in place of the
/// kernel, by name.
#[derive(Debug)]
pub struct StructOps {
    base: Base,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    value: Vec<u8>,
    functions: Vec<Function>,
}

/// A member of the struct that a program implements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The member's name.
    pub member: String,
    /// Its index in the struct, from 0.
    pub index: u32,
    /// The program.
    pub program: ProgramHandle,
}

impl StructOps {
    pub(super) fn new(def: &MapDef, cpus: u32) -> Self {
        Self {
            base: Base::new(def, cpus),
            state: Mutex::new(State {
                value: vec![0; def.value_size as usize],
                functions: Vec::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Type of the struct in the object's BTF.
    #[must_use]
    pub const fn value_type(&self) -> Option<TypeId> {
        self.base.def().value_type
    }

    /// Sets the program that implements a member.
    pub fn set(&self, function: Function) {
        let functions = &mut self.lock().functions;
        functions.retain(|old| old.index != function.index);
        let at = functions.partition_point(|old| old.index < function.index);
        functions.insert(at, function);
    }

    /// The members that programs implement, in the order of the struct.
    #[must_use]
    pub fn functions(&self) -> Vec<Function> {
        self.lock().functions.clone()
    }

    /// The program that implements a member.
    #[must_use]
    pub fn program(&self, member: &str) -> Option<ProgramHandle> {
        let state = self.lock();
        let function = state
            .functions
            .iter()
            .find(|function| function.member == member);
        function.map(|function| function.program)
    }
}

impl Map for StructOps {
    fn base(&self) -> &Base {
        &self.base
    }

    fn kind(&self) -> Kind<'_> {
        Kind::StructOps(self)
    }

    /// The struct as the object initialised it; members with functions are 0.
    fn sys_lookup(&self, key: &[u8]) -> Result<Vec<u8>, Errno> {
        self.base.index_within(key)?.ok_or(Errno::ENOENT)?;
        Ok(self.lock().value.clone())
    }

    fn sys_update(&self, key: &[u8], value: &[u8], flags: UpdateFlags) -> Result<(), Errno> {
        if !flags.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.base.index_within(key)?.ok_or(Errno::E2BIG)?;
        self.base.check_value(value)?;
        self.lock().value.copy_from_slice(value);
        Ok(())
    }

    /// Always fails: the struct is never registered.
    fn sys_delete(&self, key: &[u8]) -> Result<(), Errno> {
        if self.base.def().flags.contains(MapFlags::LINK) {
            return Err(Errno::EOPNOTSUPP);
        }
        self.base.index_within(key)?.ok_or(Errno::EINVAL)?;
        Err(Errno::ENOENT)
    }

    fn sys_next_key(&self, key: Option<&[u8]>) -> Result<Vec<u8>, Errno> {
        self.base.next_index(key)
    }
}
