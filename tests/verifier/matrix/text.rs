//! Programs as text: assembly with labels, map addresses, functions with BTF.

use std::sync::Arc;

use bpflab::btf::{Btf, Builder, Encoding, FuncInfo, Linkage, Param};
use bpflab::isa::{NoNames, assemble_with};
use bpflab::program::{MapDef, Program};
use bpflab::spec::ProgType;
use bpflab::util::TypeId;

/// The BTF of the programs, and of the functions that they may have.
pub struct Types {
    pub btf: Btf,
    functions: Vec<(&'static str, TypeId)>,
}

impl Types {
    /// The types of the builder, and functions: name, linkage, parameter types.
    pub fn new(mut types: Builder, functions: &[(&'static str, Linkage, &[TypeId])]) -> Self {
        let int = types.int("int", 4, Encoding::Signed);
        let main = ("main", Linkage::Global, &[] as &[TypeId]);
        let functions = std::iter::once(&main).chain(functions);
        let functions = functions.map(|(name, linkage, params)| {
            let params: Vec<_> = params
                .iter()
                .map(|ty| Param { name: "x", ty: *ty })
                .collect();
            let prototype = types.prototype(int, &params);
            (*name, types.function(name, prototype, *linkage))
        });
        let functions = functions.collect();
        Self {
            btf: types.build().unwrap(),
            functions,
        }
    }

    /// The record of the main function.
    pub fn main(&self) -> FuncInfo {
        FuncInfo {
            insn_off: 0,
            ty: self.functions[0].1,
        }
    }

    /// A program of type `sched_cls`: the main function first, each other function at the
    /// label with its name.
    pub fn program(&self, name: &str, text: &str, maps: &Arc<[MapDef]>) -> Program {
        let assembly = assemble_with(text, &NoNames);
        let assembly = assembly.unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let starts = self.functions.iter().filter_map(|(name, ty)| {
            let start = match *name {
                "main" => Some(0),
                name => assembly.labels.get(name).map(|pc| pc.0),
            };
            Some(FuncInfo {
                insn_off: start?,
                ty: *ty,
            })
        });
        let mut info: Vec<_> = starts.collect();
        info.sort_by_key(|info| info.insn_off);
        let mut program = Program::new("matrix", ProgType::SchedCls, assembly.slots);
        "GPL".clone_into(&mut program.license);
        program.maps = Arc::clone(maps);
        program.btf = Some(self.btf.clone());
        if info.len() > 1 {
            program.func_info = info;
        }
        program
    }
}

/// The line that loads the address of a map into a register.
pub fn map_address(reg: u8, map: u32) -> String {
    pseudo(reg, 5, map)
}

/// The line that loads the address of a map's first value.
pub fn value_address(reg: u8, map: u32) -> String {
    pseudo(reg, 6, map)
}

/// The line that loads the address of a function, at the label with its name.
pub fn function_address(reg: u8, name: &str) -> String {
    format!("r{reg} = {name} ll\n")
}

/// A 64-bit immediate of any kind.
fn pseudo(reg: u8, kind: u8, imm: u32) -> String {
    let first = 0x18 | u64::from(reg | kind << 4) << 8 | u64::from(imm) << 32;
    format!(".quad {first}\n.quad 0\n")
}

/// The line that calls a kfunc.
pub fn kfunc_call(id: TypeId) -> String {
    format!(".quad {}\n", 0x85 | 0x20 << 8 | u64::from(id.0) << 32)
}
