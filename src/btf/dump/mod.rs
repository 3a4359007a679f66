//! C declarations from BTF: a `vmlinux.h`.
//!
//! Every named type is defined once, after what its definition needs: complete types for
//! members and array elements, forward declarations for pointer targets, and the typedefs
//! and enums it uses. The frame (guard, `preserve_access_index`) and the renaming of
//! duplicate names (`x___2`) are those of `bpftool btf dump … format c`.

mod body;
mod decl;
mod names;

use std::fmt;

use thiserror::Error;

use super::blob::Btf;
use super::kind::Kind;
use super::layout::{Alignments, LayoutError};
use super::types::{Encoding, Type};
use crate::util::TypeId;
use names::{Names, identifier, is_basic};

/// Maximum nesting of definitions that wait for others.
const MAX_NESTING: usize = 256;
/// Bytes of text for each byte of the table: the kernel's needs one. Anonymous structs are
/// written at each use, which hostile BTF can make exponential.
const TEXT_PER_BYTE: u64 = 12;
/// Bytes of text allowed for any table.
const LEAST_TEXT: u64 = 1 << 20;
/// Cost of a declaration in addition to its name.
const PUNCTUATION: usize = 8;

/// Why a table can't be printed as C.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DumpError {
    /// A type contains itself by value, or nests beyond the limit.
    #[error("type {0} contains itself, or is nested too deeply for C")]
    TooDeep(TypeId),
    /// Nested anonymous structs, each used several times.
    #[error("type {0} expands to too much C: nested anonymous structs")]
    TooLong(TypeId),
    /// A member has no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The writer failed.
    #[error("the text could not be written")]
    Write(#[from] fmt::Error),
}

/// The one typedef that clang refuses to see defined: it is built in.
const BUILTIN_VA_LIST: &str = "__builtin_va_list";

/// Whether this is the compiler's own typedef. Its underlying type on the machine that the
/// BTF describes is written instead: BPF's own has another size.
fn is_builtin(ty: Type<'_>) -> bool {
    ty.kind() == Kind::Typedef && ty.name() == BUILTIN_VA_LIST
}

/// How much of a type has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing.
    Unseen,
    /// `struct x;`.
    Declared,
    /// Being defined: its dependencies are being written.
    Open,
    /// Its definition.
    Defined,
}

impl Btf {
    /// Writes C declarations of all types, and prototypes of the kfuncs.
    ///
    /// # Errors
    /// [`DumpError`]; the text is then incomplete.
    pub fn write_c(&self, out: &mut impl fmt::Write) -> Result<(), DumpError> {
        Dumper::new(self, Names::new(self), out).all()
    }

    /// A declaration of `name` with this type, anonymous structs written out; for a named
    /// struct or enum see [`Btf::c_definition`]. Duplicate names are not renamed.
    ///
    /// # Errors
    /// [`DumpError`].
    pub fn c_declaration(&self, id: TypeId, name: &str) -> Result<String, DumpError> {
        Dumper::new(self, Names::default(), &mut String::new()).declaration(id, name, 0)
    }

    /// The definition of a struct, union or enum, without a semicolon.
    ///
    /// # Errors
    /// [`DumpError`].
    pub fn c_definition(&self, id: TypeId) -> Result<String, DumpError> {
        Dumper::new(self, Names::default(), &mut String::new()).body(self.ty(id), 0)
    }
}

/// The state of a dump.
struct Dumper<'a> {
    btf: &'a Btf,
    out: &'a mut dyn fmt::Write,
    names: Names,
    alignments: Alignments,
    states: Vec<State>,
    depth: usize,
    /// Remaining bytes of text and steps of work.
    budget: u64,
}

impl<'a> Dumper<'a> {
    fn new(btf: &'a Btf, names: Names, out: &'a mut dyn fmt::Write) -> Self {
        Self {
            btf,
            out,
            names,
            alignments: Alignments::default(),
            states: vec![State::Unseen; btf.count() as usize],
            depth: 0,
            budget: (btf.len() as u64)
                .saturating_mul(TEXT_PER_BYTE)
                .saturating_add(LEAST_TEXT),
        }
    }

    /// Charges the budget for text or a step of work.
    fn charge(&mut self, id: TypeId, text: usize) -> Result<(), DumpError> {
        let left = self.budget.checked_sub(text as u64);
        self.budget = left.ok_or(DumpError::TooLong(id))?;
        Ok(())
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, DumpError>,
    ) -> Result<T, DumpError> {
        if self.depth >= MAX_NESTING {
            return Err(DumpError::TooDeep(TypeId(0)));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn state(&self, id: TypeId) -> State {
        self.states
            .get(id.index())
            .copied()
            .unwrap_or(State::Defined)
    }

    fn set(&mut self, id: TypeId, state: State) {
        if let Some(slot) = self.states.get_mut(id.index()) {
            *slot = state;
        }
    }

    fn all(&mut self) -> Result<(), DumpError> {
        self.out.write_str(
            "#ifndef __VMLINUX_H__\n\
             #define __VMLINUX_H__\n\n\
             #ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n\
             #pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n\
             #endif\n\n",
        )?;
        let referenced = self.referenced();
        for ty in self.btf.types() {
            match ty.kind() {
                Kind::Struct | Kind::Union | Kind::Fwd | Kind::Typedef if !ty.name().is_empty() => {
                    self.need(ty.id(), TypeId(0), true)?;
                }
                Kind::Enum | Kind::Enum64 if !ty.name().is_empty() => {
                    self.need(ty.id(), TypeId(0), true)?;
                }
                // An unused anonymous enum still defines constants.
                Kind::Enum | Kind::Enum64
                    if !referenced.get(ty.id().index()).is_some_and(|r| *r) =>
                {
                    let body = self.body(ty, 0)?;
                    write!(self.out, "{body};\n\n")?;
                }
                _ => {}
            }
        }
        self.kfuncs()?;
        self.out.write_str(
            "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n\
             #pragma clang attribute pop\n\
             #endif\n\n\
             #endif /* __VMLINUX_H__ */\n",
        )?;
        Ok(())
    }

    /// The types that other types use.
    fn referenced(&self) -> Vec<bool> {
        let mut referenced = vec![false; self.btf.count() as usize];
        for ty in self.btf.types() {
            let array = ty.array().map(|array| array.element);
            let ids = ty.target_id().into_iter().chain(array);
            let ids = ids
                .chain(ty.members().map(|m| m.ty))
                .chain(ty.params().map(|p| p.ty));
            for id in ids {
                if let Some(slot) = referenced.get_mut(id.index()) {
                    *slot = true;
                }
            }
        }
        referenced
    }

    /// Prototypes of the kfuncs.
    fn kfuncs(&mut self) -> Result<(), DumpError> {
        let tagged = |text: &'static str| {
            self.btf
                .named(text)
                .filter(|ty| ty.kind() == Kind::DeclTag && ty.component().is_none())
        };
        let functions: Vec<_> = tagged("bpf_kfunc")
            .filter_map(|tag| tag.target())
            .filter(|ty| ty.kind() == Kind::Func)
            .collect();
        if functions.is_empty() {
            return Ok(());
        }
        self.out.write_str(
            "#ifndef BPF_NO_KFUNC_PROTOTYPES\n\
             #ifndef __ksym\n\
             #define __ksym __attribute__((section(\".ksyms\")))\n\
             #endif\n\
             #ifndef __weak\n\
             #define __weak __attribute__((weak))\n\
             #endif\n\n",
        )?;
        for function in functions {
            let prototype = function.target_id().unwrap_or_default();
            self.need(prototype, TypeId(0), false)?;
            let name = identifier(function.name()).into_owned();
            let declaration = self.declaration(prototype, &name, 0)?;
            writeln!(self.out, "extern {declaration} __weak __ksym;")?;
        }
        self.out.write_str("#endif\n\n")?;
        Ok(())
    }

    /// Writes what must precede a use of `id`: with `complete` a definition, otherwise a
    /// declaration. `within` is the struct whose body contains the use: its own tag is
    /// already declared there.
    fn need(&mut self, id: TypeId, within: TypeId, complete: bool) -> Result<(), DumpError> {
        self.charge(id, 1)?;
        self.nested(|dumper| dumper.need_nested(dumper.btf.ty(id), within, complete))
            .map_err(|error| match error {
                DumpError::TooDeep(TypeId(0)) => DumpError::TooDeep(id),
                error => error,
            })
    }

    fn need_nested(
        &mut self,
        ty: Type<'a>,
        within: TypeId,
        complete: bool,
    ) -> Result<(), DumpError> {
        let id = ty.id();
        match ty.kind() {
            Kind::Int if !is_basic(ty.name()) => self.alias(ty),
            Kind::Ptr => self.need(ty.target_id().unwrap_or_default(), within, false),
            kind if kind.is_qualifier() => {
                self.need(ty.target_id().unwrap_or_default(), within, complete)
            }
            Kind::Array => self.need(
                ty.array().map_or(TypeId(0), |array| array.element),
                within,
                true,
            ),
            Kind::FuncProto => {
                self.need(ty.target_id().unwrap_or_default(), within, false)?;
                ty.params()
                    .try_for_each(|param| self.need(param.ty, within, false))
            }
            Kind::Struct | Kind::Union if ty.name().is_empty() => self.members(ty, within),
            Kind::Struct | Kind::Union if complete => self.define(ty),
            Kind::Struct | Kind::Union | Kind::Fwd => {
                if self.state(id) == State::Unseen
                    || (self.state(id) == State::Open && id != within)
                {
                    self.declare(ty)?;
                }
                Ok(())
            }
            Kind::Enum | Kind::Enum64 if !ty.name().is_empty() => {
                if self.state(id) == State::Unseen {
                    self.set(id, State::Defined);
                    let body = self.body(ty, 0)?;
                    write!(self.out, "{body};\n\n")?;
                }
                Ok(())
            }
            Kind::Typedef if is_builtin(ty) => {
                self.need(ty.target_id().unwrap_or_default(), within, complete)
            }
            Kind::Typedef => self.typedef(ty, complete),
            _ => Ok(()),
        }
    }

    fn members(&mut self, ty: Type<'a>, within: TypeId) -> Result<(), DumpError> {
        ty.members()
            .try_for_each(|member| self.need(member.ty, within, true))
    }

    /// Defines a named struct or union.
    fn define(&mut self, ty: Type<'a>) -> Result<(), DumpError> {
        let id = ty.id();
        match self.state(id) {
            State::Defined => return Ok(()),
            State::Open => return Err(DumpError::TooDeep(id)),
            State::Unseen | State::Declared => {}
        }
        self.set(id, State::Open);
        self.members(ty, id)?;
        let body = self.body(ty, 0)?;
        write!(self.out, "{body};\n\n")?;
        self.set(id, State::Defined);
        Ok(())
    }

    /// Declares a struct or union. One that is being defined may be declared again, which C
    /// allows.
    fn declare(&mut self, ty: Type<'_>) -> Result<(), DumpError> {
        if self.state(ty.id()) == State::Unseen {
            self.set(ty.id(), State::Declared);
        }
        let tag = self.tag(ty);
        Ok(write!(self.out, "{tag};\n\n")?)
    }

    fn typedef(&mut self, ty: Type<'a>, complete: bool) -> Result<(), DumpError> {
        let (id, target) = (ty.id(), ty.target_id().unwrap_or_default());
        match self.state(id) {
            State::Open => return Err(DumpError::TooDeep(id)),
            State::Unseen | State::Declared => {
                self.set(id, State::Open);
                self.need(target, TypeId(0), false)?;
                let name = self.names.of(ty).into_owned();
                let declaration = match (ty.name(), target) {
                    // Old GCC says `void` here.
                    ("__gnuc_va_list", TypeId(0)) => format!("{BUILTIN_VA_LIST} {name}"),
                    _ => self.declaration(target, &name, 0)?,
                };
                write!(self.out, "typedef {declaration};\n\n")?;
                self.set(id, State::Defined);
            }
            State::Defined => {}
        }
        if complete {
            self.need(target, TypeId(0), true)
        } else {
            Ok(())
        }
    }

    /// Defines an integer whose name is not a C type: Rust's `u32`, GCC's vector elements.
    fn alias(&mut self, ty: Type<'_>) -> Result<(), DumpError> {
        if ty.name().is_empty() || self.state(ty.id()) == State::Defined {
            return Ok(());
        }
        self.set(ty.id(), State::Defined);
        let signed = ty.int().is_some_and(|int| int.encoding == Encoding::Signed);
        let base = match (ty.size(), ty.int().map(|int| int.encoding)) {
            (Some(1), Some(Encoding::Bool)) => "_Bool",
            (Some(1), _) => "char",
            (Some(2), _) => "short",
            (Some(4), _) => "int",
            (Some(16), _) => "__int128",
            _ => "long long",
        };
        let sign = match base {
            "_Bool" => "",
            _ if signed => "signed ",
            _ => "unsigned ",
        };
        let name = self.names.of(ty);
        Ok(write!(self.out, "typedef {sign}{base} {name};\n\n")?)
    }
}

#[cfg(test)]
mod tests;
