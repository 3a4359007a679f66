//! Programs whose work is done in a callback, which gets the keys and values of a map.

use std::sync::LazyLock;

use super::definitions::HASH;
use super::functions::add_function;
use super::{FP, Maker};
use crate::btf::{Btf, Builder, Encoding, Linkage, Param};
use crate::program::Program;
use crate::spec::helpers::id;
use crate::util::{Pc, TypeId};

/// The types of the two functions.
struct Types {
    btf: Option<Btf>,
    main: TypeId,
    callback: TypeId,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let mut b = Builder::new();
    let long = b.int("long", 8, Encoding::Signed);
    let pointer = b.ptr(TypeId(0));
    let param = |name| Param { name, ty: pointer };
    let prototype = b.prototype(long, &[param("ctx")]);
    let main = b.function("main_program", prototype, Linkage::Global);
    let params = ["map", "key", "value", "data"].map(param);
    let prototype = b.prototype(long, &params);
    let callback = b.function("each", prototype, Linkage::Static);
    Types {
        btf: b.build().ok(),
        main,
        callback,
    }
});

impl Maker {
    /// The main function: the hash gets an element of the key in `slot`, whose address the callback
    /// gets, too. The callback follows; returns where it starts.
    pub(super) fn begin_with_callback(&mut self, slot: i16) -> usize {
        self.load_value();
        self.emit(0x7a, FP, 0, slot, 0);
        self.update_element(slot);
        self.map(HASH);
        let callback = self.insns.len();
        self.emit(0x18, 2, 4, 0, 0);
        self.emit(0, 0, 0, 0, 0);
        self.address(3, slot);
        self.emit(0xb7, 4, 0, 0, 0);
        self.helper(id::for_each_map_elem);
        self.emit(0xb7, 0, 0, 0, 0);
        self.emit(0x95, 0, 0, 0, 0);
        let start = self.insns.len();
        if let Some(insn) = self.insns.get_mut(callback) {
            insn.imm = i32::try_from(start - callback - 1).unwrap_or_default();
        }
        start
    }
}

/// Gives the functions of such a program their types; the callback starts there.
pub(super) fn set_types(program: &mut Program, callback: usize) {
    program.btf.clone_from(&TYPES.btf);
    program.subprograms.clear();
    let callback = Pc::from_index(callback);
    add_function(program, "main_program", Pc(0), TYPES.main, true);
    add_function(program, "each", callback, TYPES.callback, false);
}
