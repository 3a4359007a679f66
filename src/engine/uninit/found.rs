//! The undefined bytes that left a program, until the end of the run.

use std::sync::Arc;

use super::names;
use crate::btf::Btf;
use crate::engine::watch::Step;
use crate::program::{MapDef, Program, RecordTypes};
use crate::util::{Pc, TypeId};
use crate::vm::memory::{Address, Body, Region};
use crate::vm::{Leak, LeakTarget, SourceLine};

/// The most that one run keeps.
const KEPT: usize = 64;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<Draft>);

/// Undefined bytes that left the program, without their names.
#[derive(Debug)]
pub(super) struct Draft {
    program: Arc<Program>,
    pc: Pc,
    by: Option<&'static str>,
    to: LeakTarget,
    map: Option<String>,
    ty: Option<TypeId>,
    /// The undefined bits of each byte that was sent.
    mask: Vec<u8>,
    reserved: Option<SourceLine>,
    times: u64,
}

impl Draft {
    /// Bytes that the instruction of this step sends.
    pub fn new(step: &Step<'_>, to: LeakTarget, mask: Vec<u8>) -> Self {
        Self {
            program: step.program().clone(),
            pc: step.pc,
            by: None,
            to,
            map: None,
            ty: None,
            mask,
            reserved: None,
            times: 1,
        }
    }

    /// Sets the function that sends them.
    pub fn by(self, function: &'static str) -> Self {
        Self {
            by: Some(function),
            ..self
        }
    }

    /// Sets the map that they go to.
    pub fn in_map(self, def: Option<&MapDef>) -> Self {
        Self {
            map: def.map(|def| def.name.clone()),
            ..self
        }
    }

    /// Sets their type in the program's BTF.
    pub fn of(self, ty: Option<TypeId>) -> Self {
        Self { ty, ..self }
    }

    /// Sets the line that reserved the record.
    pub fn reserved_at(self, line: Option<SourceLine>) -> Self {
        Self {
            reserved: line,
            ..self
        }
    }

    /// Sets the map that has a value at an address; the bytes become a part of that value.
    pub fn in_map_at(self, step: &Step<'_>, address: u64) -> Self {
        let Some((def, offset)) = value_at(step, address) else {
            return self;
        };
        let mut mask = vec![0; def.value_size as usize];
        for (to, from) in mask.iter_mut().skip(offset).zip(&self.mask) {
            *to = *from;
        }
        let ty = type_in(step, self.to, &def.name, mask.len());
        Self { mask, ty, ..self }.in_map(Some(def))
    }

    /// Whether another was found at the same line, on the way to the same place: a copy of a
    /// structure is several stores.
    fn is_beside(&self, other: &Self) -> bool {
        let line = |draft: &Self| draft.program.source(draft.pc).map(|line| line.line);
        let same_place = self.pc == other.pc || line(self).is_some() && line(self) == line(other);
        same_place
            && Arc::ptr_eq(&self.program, &other.program)
            && (self.to, self.by, self.mask.len()) == (other.to, other.by, other.mask.len())
            && self.map == other.map
    }

    fn leak(self) -> Leak {
        let types = self.program.btf.as_ref().zip(self.ty);
        let function = self.program.subprogram(self.pc);
        Leak {
            program: self.program.name.clone(),
            function: function.map(|function| function.name.clone()),
            pc: self.pc,
            source: SourceLine::at(&self.program, self.pc),
            by: self.by.map(str::to_owned),
            to: self.to,
            map: self.map,
            size: self.mask.len(),
            bytes: names::name(types, &self.mask),
            reserved: self.reserved,
            times: self.times,
        }
    }
}

impl Found {
    /// Adds what was found, to a former one at the same line if there is one.
    pub fn add(&mut self, draft: Draft) {
        if let Some(known) = self.0.iter_mut().find(|known| known.is_beside(&draft)) {
            for (to, from) in known.mask.iter_mut().zip(&draft.mask) {
                *to |= from;
            }
            known.times += u64::from(known.pc == draft.pc);
        } else if self.0.len() < KEPT {
            self.0.push(draft);
        }
    }

    /// All that was found, with names.
    pub fn finish(self) -> Vec<Leak> {
        self.0.into_iter().map(Draft::leak).collect()
    }
}

/// The type of what goes to a map of the running program, in the program's BTF.
pub(super) fn type_in(step: &Step<'_>, to: LeakTarget, map: &str, len: usize) -> Option<TypeId> {
    let program = step.program();
    let btf: &Btf = program.btf.as_ref()?;
    let def = program.maps.iter().find(|def| def.name == map)?;
    let size = |ty: &TypeId| btf.size_of(*ty).is_ok_and(|size| size as usize == len);
    match to {
        LeakTarget::MapKey => def.key_type.filter(size),
        LeakTarget::MapValue => def.value_type.filter(size),
        LeakTarget::RingBuffer | LeakTarget::PerfBuffer => {
            RecordTypes::new(Some(btf), &program.maps).type_of(map, len)
        }
        _ => None,
    }
}

/// The map whose value is at an address, and the offset in the value; 0 in an arena.
pub(super) fn value_at<'s>(step: &Step<'s>, address: u64) -> Option<(&'s MapDef, usize)> {
    let machine = step.machine;
    let at = Address::from_register(address)?;
    let Body::Elements(slab) = &machine.space.region(at)?.body else {
        return None;
    };
    let span = Region::element_span(slab.value_size());
    let (map, first) = machine.maps().find_map(|(handle, map)| {
        let first = Address::from_register(machine.value_address(handle, 0)?)?;
        (first.region() == at.region()).then_some((map, first))
    })?;
    let distance = address.checked_sub(first.register())?;
    let offset = usize::try_from(distance.checked_rem(span)?).ok()?;
    Some((map.def(), offset))
}
