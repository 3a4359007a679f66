//! The access of a relocation: a type, and the path from it to a field or enumerator.

use std::fmt::Write as _;

use smallvec::SmallVec;

use super::error::Fault;
use super::kind::{Group, RelocationKind};
use crate::btf::{Array, Btf, Type};
use crate::util::TypeId;

/// Longest access string, in indices (`BPF_CORE_SPEC_MAX_LEN`).
pub(super) const MAX_LEN: usize = 64;

/// A step that is written in C: a named member, an element, an enumerator. Anonymous
/// structs are not steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// The struct or union that has the member, the element's type, or the enum.
    pub ty: TypeId,
    /// Index of the member, element or enumerator.
    pub index: u32,
    /// The member's or enumerator's name; none for an element.
    pub name: Option<&'a str>,
}

/// An access in one type table.
#[derive(Debug, Clone)]
pub(super) struct Access<'a> {
    /// The table.
    pub btf: &'a Btf,
    /// The type that it starts from.
    pub root: TypeId,
    /// The kind of relocation.
    pub kind: RelocationKind,
    /// The steps.
    pub steps: SmallVec<[Step<'a>; 4]>,
    /// The indices of the access string, anonymous structs included.
    pub raw: SmallVec<[u32; 8]>,
    /// Offset of the field, in bits from the start of the root.
    pub bit_offset: u64,
}

impl<'a> Access<'a> {
    /// An access without steps.
    pub fn new(btf: &'a Btf, root: TypeId, kind: RelocationKind) -> Self {
        Self {
            btf,
            root,
            kind,
            steps: SmallVec::new(),
            raw: SmallVec::new(),
            bit_offset: 0,
        }
    }

    /// Parses an access string of the object's own BTF.
    pub fn parse(
        btf: &'a Btf,
        root: TypeId,
        kind: RelocationKind,
        string: &str,
    ) -> Result<Self, Fault> {
        let mut access = Self::new(btf, root, kind);
        let bad = || Fault::AccessString(string.to_owned());
        for index in string.split(':') {
            // The compiler writes plain decimal 31-bit numbers.
            let digits = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            let index = index.parse::<i32>().ok().filter(|_| digits);
            let index = index
                .and_then(|index| u32::try_from(index).ok())
                .ok_or_else(bad)?;
            if access.raw.len() == MAX_LEN {
                return Err(Fault::TooDeep);
            }
            access.raw.push(index);
        }
        match kind.group() {
            Group::Type if string == "0" => access.raw.clear(),
            Group::Type => return Err(bad()),
            Group::Enumerator => access.enumerator().ok_or_else(bad)?,
            Group::Field => access.field(string)?,
        }
        Ok(access)
    }

    fn enumerator(&mut self) -> Option<()> {
        let (&[index], Ok(ty)) = (self.raw.as_slice(), self.btf.resolve(self.root)) else {
            return None;
        };
        let value = ty.enumerator(index)?;
        self.steps.push(Step {
            ty: ty.id(),
            index,
            name: Some(value.name),
        });
        Some(())
    }

    fn field(&mut self, string: &str) -> Result<(), Fault> {
        let bad = || Fault::AccessString(string.to_owned());
        let raw = self.raw.clone();
        let mut indices = raw.iter().copied();
        let mut ty = self.btf.resolve(self.root)?;
        // The first index is into the array that a pointer to the root may point to.
        self.element(ty.id(), indices.next().ok_or_else(bad)?)?;
        for index in indices {
            if let Some(array) = ty.array() {
                if index >= array.len && !self.ends_in(array) {
                    return Err(bad());
                }
                ty = self.btf.resolve(array.element)?;
                self.element(ty.id(), index)?;
            } else {
                // A type without members has none at this index.
                let member = ty.member(index).ok_or_else(bad)?;
                self.bit_offset = self.bit_offset.saturating_add(u64::from(member.bit_offset));
                if !member.name.is_empty() {
                    self.steps.push(Step {
                        ty: ty.id(),
                        index,
                        name: Some(member.name),
                    });
                }
                ty = self.btf.resolve(member.ty)?;
            }
        }
        Ok(())
    }

    /// Adds a step to an element of this type.
    pub fn element(&mut self, ty: TypeId, index: u32) -> Result<(), Fault> {
        let bits = u64::from(self.btf.size_of(ty)?) * 8;
        let offset = bits.saturating_mul(u64::from(index));
        self.bit_offset = self.bit_offset.saturating_add(offset);
        self.steps.push(Step {
            ty,
            index,
            name: None,
        });
        Ok(())
    }

    /// Whether the array of the last step is a flexible one: the last member of its struct,
    /// without a length.
    pub fn ends_in(&self, array: Array) -> bool {
        self.steps.last().is_some_and(|step| {
            let members = usize::from(self.btf.ty(step.ty).vlen());
            array.len == 0 && step.name.is_some() && step.index as usize + 1 == members
        })
    }

    /// The type that the access starts from.
    pub fn root_type(&self) -> Type<'a> {
        self.btf.ty(self.root)
    }

    /// The access in C: `struct task_struct.pid`, `enum color::RED`.
    pub fn c(&self) -> String {
        let mut text = self.btf.type_name(self.root);
        for (position, step) in self.steps.iter().enumerate() {
            match (step.name, self.kind.group()) {
                (Some(name), Group::Enumerator) => text.extend(["::", name]),
                (Some(name), _) => text.extend([".", name]),
                (None, _) if position == 0 && step.index == 0 => {}
                (None, _) => {
                    let _ = write!(text, "[{}]", step.index);
                }
            }
        }
        text
    }

    /// The access in C and as in libbpf's log:
    /// `struct task_struct.pid (0:77 @ offset 2312)`.
    pub fn text(&self) -> String {
        self.with_place(self.c())
    }

    /// The same, from the access in C.
    pub fn with_place(&self, c: String) -> String {
        let mut text = c;
        if self.kind.group() == Group::Field {
            let mut separator = " (";
            for index in &self.raw {
                let _ = write!(text, "{separator}{index}");
                separator = ":";
            }
            let _ = write!(text, " @ offset {}", self.bit_offset / 8);
            if !self.bit_offset.is_multiple_of(8) {
                let _ = write!(text, ".{}", self.bit_offset % 8);
            }
            text.push(')');
        }
        text
    }
}
