//! The types of programs on lists and trees.

use std::sync::{Arc, LazyLock};

use crate::btf::{Btf, Builder, Encoding, Linkage, Member, Param};
use crate::program::MapDef;
use crate::spec::MapType;
use crate::util::TypeId;

/// Offsets in an object.
pub(super) mod elem {
    pub const KEY: i16 = 0;
    pub const DATA: i16 = 8;
    pub const LIST: i16 = 16;
    /// With a tree: its node, then the count of references.
    pub const TREE: i16 = 40;
    pub const COUNT: i16 = 72;
}

/// Offsets in the value of the first map.
pub(super) mod value {
    pub const LOCK: i16 = 0;
    pub const LIST: i16 = 8;
    pub const STASH: i16 = 24;
    /// With a tree.
    pub const TREE: i16 = 32;
}

/// The types, and the maps of all programs with them.
pub(super) struct Layout {
    pub btf: Option<Btf>,
    pub maps: Arc<[MapDef]>,
    /// The structure of objects, and its size.
    pub elem: TypeId,
    pub size: i16,
    /// The functions.
    pub main: TypeId,
    pub less: TypeId,
    /// Whether objects can be in a tree and a list, and have several owners.
    pub has_tree: bool,
}

/// The types with a tree, or without.
pub(super) fn layout(has_tree: bool) -> &'static Layout {
    static ALL: LazyLock<[Layout; 2]> = LazyLock::new(|| [false, true].map(make));
    let [without, with] = &*ALL;
    if has_tree { with } else { without }
}

fn at(name: &str, ty: TypeId, offset: i16) -> Member<'_> {
    Member {
        name,
        ty,
        bit_offset: u32::from(offset.unsigned_abs()) * 8,
        bitfield: None,
    }
}

fn make(has_tree: bool) -> Layout {
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let long = b.int("unsigned long", 8, Encoding::Unsigned);
    // The kernel knows special fields by the names of their structures.
    let mut opaque = |name: &str, ty, size| b.structure(name, size, &[at("opaque", ty, 0)]);
    let lock = opaque("bpf_spin_lock", int, 4);
    let resilient = opaque("bpf_res_spin_lock", int, 4);
    let head = opaque("bpf_list_head", long, 16);
    let list = opaque("bpf_list_node", long, 24);
    let root = opaque("bpf_rb_root", long, 16);
    let tree = opaque("bpf_rb_node", long, 32);
    let count = opaque("bpf_refcount", int, 4);

    let mut members = vec![
        at("key", long, elem::KEY),
        at("data", long, elem::DATA),
        at("l", list, elem::LIST),
    ];
    if has_tree {
        members.extend([at("r", tree, elem::TREE), at("c", count, elem::COUNT)]);
    }
    let size: i16 = if has_tree {
        elem::COUNT + 8
    } else {
        elem::TREE
    };
    let bytes = u32::from(size.unsigned_abs());
    let elem = b.structure("elem", bytes, &members);
    let tagged = b.type_tag("kptr", elem, false);
    let stash = b.ptr(tagged);
    let mut members = vec![
        at("lock", lock, value::LOCK),
        at("list", head, value::LIST),
        at("stash", stash, value::STASH),
    ];
    if has_tree {
        members.push(at("root", root, value::TREE));
    }
    let value_size = if has_tree { 48 } else { 32 };
    let value = b.structure("graph_value", value_size, &members);
    b.decl_tag("contains:elem:l", value, Some(1), false);
    if has_tree {
        b.decl_tag("contains:elem:r", value, Some(3), false);
    }
    let guarded = [at("lock", resilient, 0), at("count", long, 8)];
    let guarded = b.structure("guarded", 16, &guarded);

    let pointer = b.ptr(TypeId(0));
    let parameter = |ty| Param { name: "", ty };
    let prototype = b.prototype(
        int,
        &[Param {
            name: "ctx",
            ty: pointer,
        }],
    );
    let main = b.function("graph", prototype, Linkage::Global);
    let node = b.ptr(tree);
    let named = |name| Param {
        name,
        ..parameter(node)
    };
    let prototype = b.prototype(int, &[named("a"), named("b")]);
    let less = b.function("less", prototype, Linkage::Static);
    let map = |name, ty, size| {
        let map = MapDef::new(name, MapType::Array, 4, size, 1);
        map.with_key_type(int).with_value_type(ty)
    };
    Layout {
        btf: b.build().ok(),
        maps: [map("graph", value, value_size), map("guarded", guarded, 16)].into(),
        elem,
        size,
        main,
        less,
        has_tree,
    }
}
