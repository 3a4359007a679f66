//! Which accesses need no check, and how they reach their memory.

use rustc_hash::FxHashMap;

use super::bindings::Bindings;
use super::context::field_at;
use super::lowered::{BoundMap, ContextUse, Keys};
use super::op::{MemRef, Op, Order};
use super::{LowerError, Passes};
use crate::isa::{CallTarget, Code, Insn, Reg, Size};
use crate::program::MapDef;
use crate::spec::MapType;
use crate::spec::context::{self, Mode, Yield};
use crate::spec::helpers::id;
use crate::util::{HelperId, MapId, Pc};
use crate::verifier::{Through, Verified};
use crate::vm::memory::Region;

/// Computes the [`MemRef`] of each access, and collects the maps and context fields used.
pub(super) struct Accesses<'a> {
    verified: &'a Verified,
    bindings: Bindings<'a>,
    passes: Passes,
    maps: Vec<BoundMap>,
    map_index: FxHashMap<MapId, u16>,
    context: ContextUse,
    /// The result of context loads, by offset and size.
    fields: FxHashMap<(i32, Size), Yield>,
    deletes: Deletes,
    /// Accesses to values that may have been removed, and their maps; `fresh` decides them.
    deferred: Vec<(Pc, u16)>,
    /// Whether an access is a [`MemRef::Kernel`].
    reads_kernel: bool,
}

/// Whether a program may remove elements of a map.
enum Elements {
    Permanent,
    Removable,
}

/// Whether a helper deletes or replaces an element of a map.
pub(super) fn removes_elements(helper: HelperId) -> bool {
    const HELPERS: [HelperId; 6] = [
        id::map_update_elem,
        id::map_delete_elem,
        id::sk_storage_delete,
        id::inode_storage_delete,
        id::task_storage_delete,
        id::cgrp_storage_delete,
    ];
    HELPERS.contains(&helper)
}

/// The maps from which a program deletes, or in which it replaces, elements. An access to a
/// removed element is allowed but must be reported, which the checked access does.
#[derive(Debug, Default)]
struct Deletes {
    maps: Vec<MapId>,
    /// The map of some call is not known.
    any: bool,
}

impl Deletes {
    fn of(verified: &Verified, code: &Code) -> Self {
        let mut deletes = Self::default();
        for (slot, pc) in code.slots().iter().zip((0..).map(Pc)) {
            if let Some(Insn::Call(CallTarget::Helper(helper))) = slot
                && removes_elements(*helper)
                && verified.is_reachable(pc)
            {
                match verified.map_of_call(pc) {
                    Some(map) => deletes.maps.push(map),
                    None => deletes.any = true,
                }
            }
        }
        deletes
    }

    fn from(&self, map: MapId) -> bool {
        self.any || self.maps.contains(&map)
    }
}

impl<'a> Accesses<'a> {
    pub(super) fn new(
        verified: &'a Verified,
        code: &'a Code,
        bindings: Bindings<'a>,
        passes: Passes,
    ) -> Self {
        Self {
            verified,
            bindings,
            passes,
            maps: Vec::new(),
            map_index: FxHashMap::default(),
            context: ContextUse::default(),
            fields: FxHashMap::default(),
            deletes: Deletes::of(verified, code),
            deferred: Vec::new(),
            reads_kernel: false,
        }
    }

    /// The bound maps, the program's use of its context, and the accesses, with their maps,
    /// that stay checked unless the values are proved to be still in the map; whether there are
    /// accesses to kernel objects.
    pub(super) fn into_parts(self) -> (Vec<BoundMap>, ContextUse, Vec<(Pc, u16)>, bool) {
        (self.maps, self.context, self.deferred, self.reads_kernel)
    }

    /// Sets `made` to the operation of the plain or acquiring load at `pc`.
    pub(super) fn load(
        &mut self,
        pc: Pc,
        insn: &Insn,
        dst: Reg,
        order: Order,
        made: &mut Op,
    ) -> Result<(), LowerError> {
        let mem = self.mem(pc, insn)?;
        let (_, _, size) = insn.memory().ok_or(LowerError::Unsupported(pc))?;
        let yields = match self.verified.through(pc) {
            Some(Through::Context { off }) => self.field(pc, off, size)?,
            _ => Yield::Scalar,
        };
        match (mem, yields) {
            (_, Yield::Scalar | Yield::Argument(_) | Yield::Kernel(_))
            | (MemRef::Checked { .. }, _) => {
                *made = Op::Load {
                    size,
                    dst,
                    mem,
                    order,
                };
            }
            (MemRef::Context { off }, _) => *made = Op::LoadPointer { size, dst, off },
            _ => return Err(LowerError::Unsupported(pc)),
        }
        Ok(())
    }

    /// The result of a context load at `off`; records the fields that must load as
    /// pointers.
    fn field(&mut self, pc: Pc, off: i32, size: Size) -> Result<Yield, LowerError> {
        if let Some(yields) = self.fields.get(&(off, size)) {
            return Ok(*yields);
        }
        let field = field_at(self.verified.program(), off, size, Mode::Read);
        let (at, yields) = field.ok_or(LowerError::Unsupported(pc))?;
        match yields {
            // Loads through kernel pointers are checked, whatever the context holds.
            Yield::Scalar | Yield::Argument(_) | Yield::Kernel(_) => {}
            pointer => {
                let or_null = matches!(pointer, Yield::SocketOrNull | Yield::SockCommonOrNull);
                let field = (at, u32::from(size.bytes()), or_null);
                self.context.pointers.push(field);
            }
        }
        self.fields.insert((off, size), yields);
        Ok(yields)
    }

    /// The memory reference of an access, the instruction at `pc`.
    pub(super) fn mem(&mut self, pc: Pc, insn: &Insn) -> Result<MemRef, LowerError> {
        let (base, off, size) = insn.memory().ok_or(LowerError::Unsupported(pc))?;
        let checked = MemRef::Checked { base, off };
        let has = |pass| self.passes.contains(pass);
        Ok(match self.verified.through(pc) {
            Some(Through::Stack { off }) if has(Passes::STACK) => {
                i16::try_from(off).map_or(checked, |off| MemRef::Stack { off })
            }
            Some(Through::Context { off }) => {
                let end = usize::try_from(off).ok();
                let end = end.and_then(|off| off.checked_add(usize::from(size.bytes())));
                let end = end.ok_or(LowerError::Unsupported(pc))?;
                self.context.len = self.context.len.max(end);
                match u16::try_from(off) {
                    Ok(off) if has(Passes::CONTEXT) && self.is_plain(insn, off, size) => {
                        MemRef::Context { off }
                    }
                    _ => checked,
                }
            }
            Some(Through::MapValue { map }) if has(Passes::MAP_VALUE) => match self.map(map) {
                Some((map, Elements::Permanent)) => MemRef::MapValue { base, off, map },
                Some((map, Elements::Removable)) => {
                    self.deferred.push((pc, map));
                    checked
                }
                None => checked,
            },
            Some(Through::Packet) if has(Passes::TABLE) => MemRef::Packet { base, off },
            // The access may be to a value of any map, of an inner one at least, or to user memory.
            Some(through @ (Through::Values | Through::Other))
                if has(Passes::TABLE)
                    && !self.deletes.any
                    && (through == Through::Other || self.deletes.maps.is_empty())
                    && !self.verified.has_user_pointers() =>
            {
                MemRef::Table { base, off }
            }
            Some(Through::Kernel) if has(Passes::KERNEL) && is_plain_load(insn) => {
                self.reads_kernel = true;
                MemRef::Kernel { base, off, size }
            }
            Some(Through::Arena) => MemRef::Arena { base, off, size },
            _ => checked,
        })
    }

    /// Whether an access to the context reads or writes exactly the bytes that it names.
    fn is_plain(&self, insn: &Insn, off: u16, size: Size) -> bool {
        let program = self.verified.program().owner_of_context();
        let kind = program.prog_type.info().context;
        let (off, size) = (u32::from(off), u32::from(size.bytes()));
        match insn {
            Insn::Load { .. } | Insn::LoadAcquire { .. } | Insn::LoadSx { .. } => {
                context::loaded_as(kind, off, size) == (off, size)
            }
            _ => !context::is_stored_apart(kind, off),
        }
    }

    /// The index of a map whose values can be accessed directly, and whether the program
    /// may remove them.
    fn map(&mut self, id: MapId) -> Option<(u16, Elements)> {
        let index = self.bind(id)?;
        let slab = self.maps.get(usize::from(index))?.map.slab()?;
        let elements = if slab.is_keyed() && self.deletes.from(id) {
            Elements::Removable
        } else {
            Elements::Permanent
        };
        slab.is_spread().then_some((index, elements))
    }

    /// The index of the map in which the call at `pc` looks up a value, if it is always the
    /// same map, and how its keys map to elements.
    pub(super) fn look_up(&mut self, pc: Pc) -> Option<(u16, Keys)> {
        let index = self.bind(self.verified.map_of_call(pc)?)?;
        let keys = self.maps.get(usize::from(index))?.keys;
        Some((index, keys))
    }

    /// The index of a map that has values.
    fn bind(&mut self, id: MapId) -> Option<u16> {
        if let Some(index) = self.map_index.get(&id) {
            return Some(*index);
        }
        let machine = self.bindings.machine;
        let handle = *self.bindings.maps.get(id.index())?;
        let map = machine.map(handle)?;
        let slab = map.slab()?;
        let first = machine.value_address(handle, 0)?;
        let index = u16::try_from(self.maps.len()).ok()?;
        self.maps.push(BoundMap {
            handle,
            map: map.clone(),
            delta: slab.values().host_address().wrapping_sub(first),
            first,
            span: Region::element_span(slab.value_size()),
            keys: keys_of(map.def()),
        });
        self.map_index.insert(id, index);
        Some(index)
    }
}

/// Whether an instruction only loads, in no particular order.
const fn is_plain_load(insn: &Insn) -> bool {
    matches!(insn, Insn::Load { .. } | Insn::LoadSx { .. })
}

/// How the keys of a map of this definition map to elements.
fn keys_of(def: &MapDef) -> Keys {
    let count = def.max_entries;
    match def.map_type {
        MapType::Array => Keys::Index { count },
        MapType::PercpuArray => Keys::PerCpuIndex { count },
        _ => Keys::Other { size: def.key_size },
    }
}
