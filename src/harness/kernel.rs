//! Shares types and symbol addresses between the mocked kernel and loaded objects.

use super::vm::Vm;
use crate::object::{ExternKind, Object};
use crate::program::Program;
use crate::vm::memory::BlockType;

impl Vm {
    /// Gives the mocked kernel the types of variables that an object declares, and gives
    /// untyped externs (`extern const void name __ksym`) the kernel's symbol addresses, or
    /// the kernel those that the test gave the object. A weak extern that the mocked kernel
    /// lacks stays unresolved.
    pub(super) fn share_symbols(&self, object: &mut Object) {
        let kernel = self.machine.world.kernel_memory();
        let untyped = object.externs().iter().filter_map(|ext| match ext.kind {
            ExternKind::KernelVariable { ty: None } => Some((ext.name.clone(), ext.weak)),
            _ => None,
        });
        let typed = object.externs().iter().filter_map(|ext| match ext.kind {
            ExternKind::KernelVariable { ty: Some(id) } => Some((&ext.name, id)),
            _ => None,
        });
        if let Some(btf) = object.btf() {
            for (name, id) in typed {
                let btf = btf.clone();
                kernel.declare(name, BlockType { btf, id });
            }
        }
        for (name, weak) in untyped.collect::<Vec<_>>() {
            if let Some(address) = object.ksym(&name) {
                kernel.place_symbol(&name, address);
            } else if let Some(address) = kernel.symbol_named(&name, !weak) {
                object.set_ksym(&name, address);
            }
        }
    }

    /// Gives kernel objects the types that programs were compiled with and relocated for.
    pub(super) fn share_types<'p>(&self, programs: impl Iterator<Item = &'p Program>) {
        let kernel = self.machine.world.kernel_memory();
        for program in programs {
            kernel.add_types(program.btf.as_ref(), program.kernel_btf.as_ref());
        }
    }
}
