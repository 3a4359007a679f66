use super::super::KernelMemory;
use super::*;
use crate::btf::{Array, Btf, Builder, Encoding, Enumerator, Member};
use crate::util::TypeId;

/// Types for every kind of part.
fn types() -> Btf {
    let member = |name, ty, bit_offset: u32| Member {
        name,
        ty,
        bit_offset,
        bitfield: None,
    };
    let mut b = Builder::new();
    let int = b.int("int", 4, Encoding::Signed);
    let byte = b.int("unsigned char", 1, Encoding::Unsigned);
    let character = b.int("char", 1, Encoding::Char);
    let wide = b.int("__int128", 16, Encoding::Signed);
    let array = |b: &mut Builder, element, len| {
        b.array(Array {
            element,
            index: int,
            len,
        })
    };
    let void = b.ptr(TypeId(0));
    let text = b.ptr(character);
    let counter = b.structure("atomic_t", 4, &[member("counter", int, 0)]);
    let refs = b.structure("refcount_t", 4, &[member("refs", counter, 0)]);
    let value = |name, bits| Enumerator {
        name,
        bits,
        signed: false,
    };
    let values = [value("RUNNING", 0), value("STOPPED", 4)];
    let state = b.enumeration("state", 4, false, &values);
    let bits = Member {
        bitfield: Some(5),
        ..member("prio", int, 3)
    };
    let inner = b.union("", 8, &[member("whole", void, 0), member("half", int, 0)]);
    let comm = array(&mut b, character, 8);
    let raw = array(&mut b, byte, 4);
    let numbers = array(&mut b, int, 3);
    let node = TypeId(b.next_id().0 + 1);
    let to_node = b.ptr(node);
    let fields = [
        member("next", to_node, 0),
        bits,
        member("refs", refs, 96),
        member("state", state, 128),
        member("", inner, 192),
        member("comm", comm, 256),
        member("raw", raw, 320),
        member("numbers", numbers, 352),
        member("name", text, 448),
        member("owner", void, 512),
    ];
    let fields = fields.map(|field| match field.name {
        "prio" => Member {
            bit_offset: 64 + 3,
            ..field
        },
        _ => field,
    });
    b.structure("node", 80, &fields);
    let hidden = b.forward("hidden", false);
    let hidden = b.ptr(hidden);
    let items = array(&mut b, int, 0);
    let holder = [
        member("head", to_node, 0),
        member("hidden", hidden, 64),
        member("wide", wide, 128),
        member("items", items, 256),
    ];
    b.structure("holder", 32, &holder);
    b.build().unwrap()
}

fn memory() -> KernelMemory {
    let memory = KernelMemory::default();
    memory.set_kernel_types(types());
    memory
}

fn node() -> KernelObject {
    memory().make("struct node").unwrap()
}

#[test]
fn parts_of_every_kind_are_set_and_read() {
    let node = node()
        .set("prio", 21)
        .and_then(|node| node.set("refs", 3))
        .and_then(|node| node.set("state", "STOPPED"))
        .and_then(|node| node.set("half", -2))
        .and_then(|node| node.set("comm", "dd"))
        .and_then(|node| node.set("raw", [1u8, 2, 3, 4]))
        .and_then(|node| node.set("numbers", [7, 8, 9]))
        .and_then(|node| node.set("numbers[1]", 80))
        .and_then(|node| node.set("name", "a name of any length"))
        .unwrap();
    let numbers = ["prio", "refs", "refs.refs.counter", "state", "half"];
    let seen = numbers.map(|path| node.get(path).unwrap());
    assert_eq!(seen, [21, 3, 3, 4, 0xffff_fffe]);
    assert_eq!(node.get("whole").unwrap(), 0xffff_fffe);
    assert_eq!(node.get("numbers[1]").unwrap(), 80);
    assert_eq!(node.get("numbers[2]").unwrap(), 9);
    assert_eq!(node.text("comm").unwrap(), "dd");
    assert_eq!(node.text("name").unwrap(), "a name of any length");
    assert_eq!(node.get("name[2]").unwrap(), u64::from(b'n'));
    assert_eq!(node.at("raw").unwrap().bytes(), [1, 2, 3, 4]);
    assert_eq!((node.size(), node.bytes().len()), (80, 80));
    // Setting a bit field leaves its neighbours unchanged.
    let node = node.set("prio", 0).unwrap();
    assert_eq!(node.bytes()[8..16], [0, 0, 0, 0, 3, 0, 0, 0]);
}

#[test]
fn pointers_lead_to_objects_that_are_there_or_made() {
    let memory = memory();
    let last = memory.make("node").unwrap().set("state", 4).unwrap();
    let first = memory.make("node").unwrap();
    let first = first.set("next.next", &last).unwrap();
    assert_eq!(first.get("next->next->state").unwrap(), 4);
    assert_eq!(first.at("next.next").unwrap(), last);
    assert_eq!(first.at("next").unwrap().name(), "struct node");
    assert_ne!(first.at("next").unwrap(), last);
    // A void pointer has the type of the object that it points to.
    let first = first.set("owner", &last).unwrap();
    assert_eq!(first.get("owner.state").unwrap(), 4);
    // A pointer may point to the second element.
    let array = memory.make_with_room("node", 80).unwrap();
    let first = first.set("next", array.address()).unwrap();
    let first = first.set("next[1].state", "STOPPED").unwrap();
    assert_eq!(array.bytes()[80 + 16], 4);
    assert_eq!(first.at("next[1]").unwrap().address(), array.address() + 80);
    let found = memory.object_at(array.address() + 100).unwrap();
    assert_eq!(found, array);
    let seen = memory.view(array.address() + 80, "node").unwrap();
    assert_eq!(seen.get("state").unwrap(), 4);
    assert_eq!(memory.is_a(array.address(), "node"), Some(true));
    assert_eq!(memory.is_a(array.address() + 8, "node"), Some(false));
    assert_eq!(memory.is_a(0, "node"), Some(false));
    assert_eq!(
        memory.is_a(memory.make_text("x").unwrap().address(), "node"),
        None
    );
}

#[test]
fn errors_name_the_type_the_path_and_what_there_is() {
    let holder = memory().make("holder").unwrap();
    let set = |path: &str, value: FieldValue| {
        let error = holder.clone().set(path, value).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        set("head.prioo", 1.into()),
        "struct holder: `head.prioo`: struct node has no member `prioo`; it has prio, \
         refs, raw, next, state, whole, half, comm, name, owner, numbers"
    );
    assert_eq!(
        set("hidden.x", 1.into()),
        "struct holder: `hidden.x`: `hidden` points to struct hidden, whose layout is unknown: \
         set it to an object's address"
    );
    assert_eq!(
        set("head.prio", 32.into()),
        "struct holder: field `head.prio` has 5 bits: 32 is out of range (-16 to 31)"
    );
    assert!(set("head.state", "SLEEPING".into()).contains("unknown constant `SLEEPING`"));
    assert!(set("head.comm", "too long a name".into()).contains("has room for 7 bytes"));
    assert!(set("head.numbers[3]", 1.into()).contains("index 3 is outside"));
    assert!(set("head.prio.x", 1.into()).contains("struct or union expected"));
    assert!(set("items[0]", 1.into()).contains("lies beyond the end of struct holder"));
    assert!(set("head[4294967295].prio", 1.into()).contains("lies beyond the end"));
    for path in ["head..x", "head.", "head[", "[x]"] {
        assert!(holder.get(path).is_err(), "{path}");
    }
    let get = |path: &str| holder.get(path).unwrap_err().to_string();
    assert!(get("wide").contains("__int128 is not a number"));
    let holder = holder.clone().set("head", 0).unwrap();
    let error = holder.get("head.state").unwrap_err().to_string();
    assert_eq!(
        error,
        "struct holder: `head.state`: `head` is a null pointer"
    );
    let holder = holder.set("head", 0x1234).unwrap();
    let error = holder.get("head.state").unwrap_err().to_string();
    assert!(error.contains("`head` is 0x1234, where there is no kernel object"));
    assert!(holder.text("head").is_err() && holder.text("wide").is_err());
}

#[test]
fn a_freed_object_is_no_more() {
    let memory = memory();
    let node = memory.make("node").unwrap();
    let holder = memory.make("holder").unwrap().set("head", &node).unwrap();
    assert!(node.free());
    assert!(!node.free());
    assert!(!node.is_live());
    assert_eq!(
        node.clone().set("state", 1).unwrap_err().to_string(),
        "struct node was freed"
    );
    assert!(node.get("state").is_err() && node.write(&[1]).is_err());
    let error = holder.get("head.state").unwrap_err().to_string();
    assert!(error.contains("where there is no kernel object"), "{error}");
}

#[test]
fn bytes_have_no_fields_and_a_type_may_be_given_to_them() {
    let memory = memory();
    let bytes = memory.make_bytes("packet", &[0; 80]).unwrap();
    assert_eq!(
        bytes.get("x").unwrap_err().to_string(),
        "packet has no type: only its bytes can be read and written, not fields"
    );
    let bytes = bytes.write(&[9; 4]).unwrap();
    assert_eq!(bytes.bytes()[..5], [9, 9, 9, 9, 0]);
    assert!(bytes.clone().write(&[0; 81]).is_err());
    let node = bytes.cast("node").unwrap().set("state", 7).unwrap();
    assert_eq!(bytes.bytes()[16], 7);
    assert_eq!(node.address(), bytes.address());
    assert!(bytes.cast("nodes").is_err());
    let flexible = memory.make_with_room("holder", 8).unwrap();
    let flexible = flexible.set("items[1]", 5).unwrap();
    assert_eq!(flexible.get("items[1]"), Ok(5));
    assert!(flexible.get("items[2]").is_err());
}
