//! The body of the BTF fuzz target: no input may panic, hang or take excessive memory.

use super::{Btf, BtfExt, Builder};
use crate::util::TypeId;

/// Number of types to inspect: the traversals are bounded each, but a table can have many
/// types.
const LOOKED_AT: usize = 64;

/// Parses `bytes` as BTF and, if that succeeds, exercises all operations on it. The bytes
/// are then also read as `.BTF.ext` and decoded as values.
#[doc(hidden)]
pub fn exercise(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else { return };
    let _ = BtfExt::parse(bytes, &btf);
    let mut text = String::new();
    let _ = btf.write_c(&mut text);
    let _ = btf.deduplicate();
    let mut copy = Builder::split(&btf);
    copy.append(&btf);
    let _ = copy.build();
    for ty in btf.types().take(LOOKED_AT) {
        look(&btf, ty.id(), bytes);
    }
    // Again through a base, and with missing ids.
    if let Ok(split) = Btf::parse_split(bytes, &btf) {
        for ty in split.own_types().take(LOOKED_AT) {
            look(&split, ty.id(), bytes);
        }
    }
    look(&btf, TypeId(u32::MAX), bytes);
}

fn look(btf: &Btf, id: TypeId, bytes: &[u8]) {
    let ty = btf.ty(id);
    let _ = (
        ty.int(),
        ty.array(),
        ty.linkage(),
        ty.component(),
        ty.target().map(|t| t.name()),
    );
    let _ = btf.named(ty.name()).count();
    let _ = (btf.size_of(id), btf.align_of(id), btf.type_name(id));
    let _ = btf.c_definition(id);
    for name in ty.members().map(|member| member.name).take(4) {
        let _ = btf.field(id, &format!("{name}[1].{name}"));
    }
    if let Ok(value) = btf.decode(id, bytes) {
        let _ = value.to_string();
        if btf.size_of(id).is_ok_and(|size| size < 1 << 20) {
            let _ = btf.encode(id, &value.to_json());
        }
    }
}
