//! The body of the BTF fuzz target: whatever the bytes are, nothing here panics, hangs
//! or takes memory out of proportion.

use super::{Btf, BtfExt, Builder};
use crate::util::TypeId;

/// Types that are looked at one by one: the walks behind them are bounded each, but a
/// table can have many types.
const LOOKED_AT: usize = 64;

/// Opens `bytes` as BTF, and if that goes, does everything with it that there is to
/// do. The bytes are then read as `.BTF.ext` and decoded as values, too.
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
    // Again through a base, and ids that aren't there.
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
