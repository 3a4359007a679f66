//! The bundled BTF: the kernel types that tracing programs commonly name, for machines without
//! a kernel's BTF.
//!
//! It is no kernel's BTF, and no part of one: `vmlinux.c` describes the types, and
//! `examples/bpf/rebuild.sh` compiles it to `vmlinux.btf`. Kfuncs are added from bpflab's table.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::btf::{Btf, BtfError, Builder, Encoding, Kind, Linkage, Param, PartIds};
use crate::spec::kfuncs::{Hooks, Kfunc, Parameter, kfuncs};
use crate::util::TypeId;

/// The compiled description.
const DESCRIPTION: &[u8] = include_bytes!("vmlinux.btf");
/// The tag that a kernel's BTF gives to kfuncs.
const KFUNC: &str = "bpf_kfunc";

/// The bundled BTF; the same table each time.
pub(super) fn btf() -> Option<Btf> {
    static BTF: OnceLock<Option<Btf>> = OnceLock::new();
    BTF.get_or_init(|| build().ok()).clone()
}

fn build() -> Result<Btf, BtfError> {
    // Variables only make the compiler keep their types.
    let described = Btf::parse(DESCRIPTION)?;
    let types = described.own_types();
    let types = types.filter(|ty| !matches!(ty.kind(), Kind::Var | Kind::Datasec));
    let types = described.part(types.map(|ty| ty.id()), PartIds::Renumbered)?;
    let mut functions = Functions::new(&types);
    for kfunc in kfuncs() {
        // No program calls functions that are only attached to.
        let is_called = !kfunc.is_optional() && kfunc.set.hooks != Hooks::FMODRET;
        if is_called && types.find(kfunc.name, Kind::Func).is_none() {
            functions.add(kfunc);
        }
    }
    functions.builder.build()
}

/// Adds kfuncs to the types that they name.
struct Functions<'a> {
    types: &'a Btf,
    builder: Builder,
    /// Types that the description lacks.
    added: FxHashMap<&'static str, TypeId>,
}

impl<'a> Functions<'a> {
    fn new(types: &'a Btf) -> Self {
        let mut builder = Builder::new();
        builder.append(types);
        Self {
            types,
            builder,
            added: FxHashMap::default(),
        }
    }

    fn add(&mut self, kfunc: &Kfunc) {
        let (result, stars) = Parameter::split(kfunc.c_result);
        let result = self.pointer(result, stars);
        let parameters = kfunc.parameters.iter().map(|parameter| Param {
            name: parameter.name,
            ty: self.pointer(parameter.base, parameter.stars),
        });
        let parameters: Vec<_> = parameters.collect();
        let prototype = self.builder.prototype(result, &parameters);
        let function = self
            .builder
            .function(kfunc.name, prototype, Linkage::Static);
        self.builder.decl_tag(KFUNC, function, None, false);
    }

    fn pointer(&mut self, base: &'static str, stars: usize) -> TypeId {
        let base = self.named(base);
        (0..stars).fold(base, |to, _| self.builder.ptr(to))
    }

    /// The type of a C name. One that the description lacks has no members.
    fn named(&mut self, text: &'static str) -> TypeId {
        let (kind, name) = match text.split_once(' ') {
            _ if text == "void" => return TypeId(0),
            Some(("struct", name)) => (Kind::Struct, name),
            Some(("union", name)) => (Kind::Union, name),
            Some(("enum", name)) => (Kind::Enum, name),
            _ => (Kind::Int, clang_name(text)),
        };
        let known = match kind {
            Kind::Int => self.types.named(name).next(),
            kind => self.types.find(name, kind),
        };
        if let Some(known) = known {
            return known.id();
        }
        let builder = &mut self.builder;
        *self.added.entry(text).or_insert_with(|| match kind {
            Kind::Struct => builder.structure(name, 0, &[]),
            Kind::Union => builder.union(name, 0, &[]),
            Kind::Enum => builder.enumeration(name, 4, false, &[]),
            _ => builder.int(name, 8, Encoding::Unsigned),
        })
    }
}

/// clang's name of an integer type, which gcc, and so a kernel's BTF, may name otherwise.
fn clang_name(name: &str) -> &str {
    match name {
        "short int" => "short",
        "short unsigned int" => "unsigned short",
        "long int" => "long",
        "long unsigned int" => "unsigned long",
        "long long int" => "long long",
        "long long unsigned int" => "unsigned long long",
        _ => name,
    }
}

#[cfg(test)]
mod tests;
