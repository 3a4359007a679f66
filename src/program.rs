//! The plain data that travels between the stages: what `object` makes, the
//! verifier judges, the engines run and the kernel loads. No behaviour beyond
//! looking things up in it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::btf::{Btf, FuncInfo, Kind, LineInfo, SourceLine, SpecialFields};
use crate::isa::{Names, Pseudo, RawInsn};
use crate::spec::context::Arch;
use crate::spec::{
    AttachType, EntriesRule, KeyRule, MapFlags, MapType, ProgFlags, ProgType, ValueField,
    ValueRule, helpers, limits,
};
use crate::util::{HelperId, MapId, Pc, TypeId};

/// One BPF program after relocation: what `bpf(BPF_PROG_LOAD)` would be given,
/// with maps as definitions in place of file descriptors.
#[derive(Debug, Clone)]
pub struct Program {
    /// Name of the C function, whole (the kernel keeps 15 bytes of it).
    pub name: String,
    /// The ELF section it stands in, such as `tp/syscalls/sys_enter_write`.
    pub section: String,
    /// Program type.
    pub prog_type: ProgType,
    /// `expected_attach_type` of the load, where the type has one.
    pub expected_attach_type: Option<AttachType>,
    /// What follows the prefix in the section name: `syscalls/sys_enter_write`.
    pub attach_target: Option<String>,
    /// Kernel function, tracepoint or hook for types that attach through BTF.
    pub attach_btf_id: Option<TypeId>,
    /// Whether the load names a program, or a module's BTF, to attach to
    /// (`attach_prog_fd`). Which one is not known here.
    pub attach_prog: bool,
    /// `prog_flags` of the load.
    pub flags: ProgFlags,
    /// The machine that it was compiled for, where contexts differ: whose registers its
    /// BTF has, otherwise the host.
    pub arch: Arch,
    /// License string; GPL-only helpers ask for a GPL-compatible one.
    pub license: String,
    /// The slots of the main program, then those of each subprogram that it
    /// reaches. A 64-bit immediate that names a map carries the pseudo source
    /// `BPF_PSEUDO_MAP_IDX` or `BPF_PSEUDO_MAP_IDX_VALUE`, and its `imm` is a
    /// [`MapId`] (the kernel's `fd_array`, of which `maps` is ours).
    pub insns: Vec<RawInsn>,
    /// Where each function begins, the main program first, in rising order.
    pub subprograms: Vec<Subprogram>,
    /// The maps of the object that this program comes from, all of them, so that
    /// a [`MapId`] means the same in each of the object's programs.
    pub maps: Arc<[MapDef]>,
    /// The program's BTF, to which types in `maps`, `subprograms` and `lines` refer.
    pub btf: Option<Btf>,
    /// The BTF to which `attach_btf_id`, calls of kernel functions and addresses of
    /// kernel variables refer: the kernel's that the program was relocated for.
    pub kernel_btf: Option<Btf>,
    /// `func_info` records as the kernel takes them: offsets in slots, not bytes.
    pub func_info: Vec<FuncInfo>,
    /// `line_info` records in rising order, offsets in slots, not bytes.
    pub lines: Vec<LineInfo>,
    /// The C accesses that CO-RE relocated, in rising order.
    pub accesses: Vec<CoreAccess>,
    /// Whether the kernel refuses [`btf`](Self::btf) as a whole
    /// ([`Btf::refusal`](crate::btf::Btf::refusal)): libbpf then loads the program without
    /// it ([`without_types`](Self::without_types)), which is what the verifier judges.
    pub btf_refused: bool,
}

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subprogram {
    /// Name of the C function.
    pub name: String,
    /// Its first instruction.
    pub start: Pc,
    /// Its `BTF_KIND_FUNC`.
    pub type_id: Option<TypeId>,
    /// A function with global linkage is verified on its own, a static one in
    /// the context of each call.
    pub global: bool,
}

/// An instruction that a CO-RE relocation touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreAccess {
    /// The instruction.
    pub pc: Pc,
    /// The access as in C: `task_struct.real_parent.tgid`.
    pub path: String,
    /// Whether the target's BTF has no such thing: the instruction is then
    /// poisoned, as libbpf does, and fails when it is verified or run.
    pub poisoned: bool,
}

/// A map as an object declares it: what `bpf(BPF_MAP_CREATE)` would be given.
#[derive(Debug, Clone, PartialEq)]
pub struct MapDef {
    /// Name, whole (the kernel keeps 15 bytes of it).
    pub name: String,
    /// Map type.
    pub map_type: MapType,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value (of one CPU's, for per-CPU types).
    pub value_size: u32,
    /// The most entries; bytes of data for ring buffers.
    pub max_entries: u32,
    /// `map_flags`.
    pub flags: MapFlags,
    /// `map_extra`: number of hash functions of a bloom filter, address of an arena.
    pub extra: u64,
    /// NUMA node of its memory, where `flags` has `NUMA_NODE`.
    pub numa_node: u32,
    /// Type of the key in the object's BTF.
    pub key_type: Option<TypeId>,
    /// Type of the value in the object's BTF.
    pub value_type: Option<TypeId>,
    /// Fields of a value that the kernel watches over, as its type has them: filled in
    /// when the map is made ([`with_special_fields`](Self::with_special_fields)).
    pub special: SpecialFields,
    /// Type of the value in the kernel's BTF, for `struct_ops`.
    pub kernel_value_type: Option<TypeId>,
    /// The shape of the maps that a map of maps holds.
    pub inner: Option<Box<MapDef>>,
    /// What the map holds at the start.
    pub initial: Vec<Initial>,
    /// Whether user space can't change it after loading (`BPF_MAP_FREEZE`).
    pub frozen: bool,
    /// Where it is pinned when loaded.
    pub pinning: Pinning,
    /// What in the object it comes from.
    pub origin: MapOrigin,
    /// Whether it is made when the object is loaded. Instructions that refer to one
    /// that isn't are poisoned, as libbpf does.
    pub autocreate: bool,
    /// The map that it stands for, where objects share one.
    pub shared: Option<SharedMap>,
}

/// One map of several objects: definitions with the same token stand for it.
#[derive(Debug, Clone)]
pub struct SharedMap(Arc<()>);

impl SharedMap {
    /// A token that no other map has.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(()))
    }
}

impl Default for SharedMap {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for SharedMap {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedMap {}

/// An entry that a map holds before the first program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Initial {
    /// A key and a value in bytes.
    Bytes {
        /// `key_size` bytes.
        key: Vec<u8>,
        /// `value_size` bytes, or as many as differ from zero: the rest is zero.
        value: Arc<[u8]>,
    },
    /// A map of the same object, in a map of maps.
    Map {
        /// Index in the outer map.
        index: u32,
        /// The inner map.
        map: MapId,
    },
    /// A program of the same object, in a prog array or in a `struct_ops` value.
    Program {
        /// Index in the array, or number of the struct's member.
        index: u32,
        /// The program's name.
        name: String,
    },
}

/// Whether and how a map outlives the process that loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// `LIBBPF_PIN_NONE`.
    #[default]
    None,
    /// `LIBBPF_PIN_BY_NAME`, iproute2's `PIN_GLOBAL_NS`: shared by name below the pin path.
    ByName,
    /// iproute2's `PIN_OBJECT_NS`: shared by name among loads of the same object file.
    ByObject,
    /// Another number, which means something to the object's own loader alone (Cilium's 16
    /// replaces the map that is pinned). libbpf refuses it; here the map is not shared.
    Other(u32),
}

/// What in an object a map stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MapOrigin {
    /// A declaration in `.maps` or the legacy `maps` section.
    #[default]
    Declared,
    /// Global data: the whole section of this name (`.rodata.str`, `.bss`).
    Section(String),
    /// The values of `__kconfig` externs.
    Kconfig,
    /// A `struct_ops` definition in the section of this name.
    StructOps(String),
}

impl Program {
    /// A program of these instructions and nothing else: no maps, no BTF, one
    /// function. What it needs more is filled in field by field.
    ///
    /// ```
    /// use bpflab::isa::RawInsn;
    /// use bpflab::program::Program;
    /// use bpflab::spec::ProgType;
    ///
    /// let exit = [RawInsn::new(0xb7, 0, 0, 0, 2), RawInsn::new(0x95, 0, 0, 0, 0)];
    /// let program = Program::new("pass", ProgType::Xdp, exit.to_vec());
    /// assert_eq!(program.subprograms[0].name, "pass");
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>, prog_type: ProgType, insns: Vec<RawInsn>) -> Self {
        let name = name.into();
        Self {
            subprograms: vec![Subprogram {
                name: name.clone(),
                start: Pc(0),
                type_id: None,
                global: true,
            }],
            name,
            section: String::new(),
            prog_type,
            expected_attach_type: None,
            attach_target: None,
            attach_btf_id: None,
            attach_prog: false,
            flags: ProgFlags::empty(),
            arch: Arch::HOST,
            license: String::new(),
            insns,
            maps: Arc::new([]),
            btf: None,
            kernel_btf: None,
            func_info: Vec::new(),
            lines: Vec::new(),
            accesses: Vec::new(),
            btf_refused: false,
        }
    }

    /// The program as libbpf loads it where the kernel refused its BTF: no types of
    /// functions and maps, no lines, and so no global functions and no special fields.
    #[must_use]
    pub fn without_types(&self) -> Self {
        let mut bare = self.clone();
        bare.btf = None;
        bare.btf_refused = false;
        bare.func_info.clear();
        bare.lines.clear();
        for function in &mut bare.subprograms {
            function.type_id = None;
            function.global = false;
        }
        let untyped = |map: &MapDef| MapDef {
            key_type: None,
            value_type: None,
            ..map.clone()
        };
        let whole = |map: &MapDef| MapDef {
            inner: map.inner.as_deref().map(|inner| Box::new(untyped(inner))),
            ..untyped(map)
        };
        bare.maps = self.maps.iter().map(whole).collect();
        bare
    }

    /// The types of the kernel that the program was relocated for. Where there was none,
    /// its own types stand in for them ([`kernel_btf`](Self::kernel_btf)): of what a
    /// kernel has, these know nothing.
    #[must_use]
    pub fn kernel_types(&self) -> Option<&Btf> {
        let own = self.btf.as_ref();
        let kernel = self.kernel_btf.as_ref();
        kernel.filter(|kernel| !own.is_some_and(|own| own.same(kernel)))
    }

    /// The map of this id.
    #[must_use]
    pub fn map(&self, id: MapId) -> Option<&MapDef> {
        self.maps.get(id.index())
    }

    /// The C source line of the instruction at `pc`, from BTF.ext.
    #[must_use]
    pub fn source(&self, pc: Pc) -> Option<SourceLine<'_>> {
        let after = self.lines.partition_point(|line| line.insn_off <= pc.0);
        let line = self.lines.get(after.checked_sub(1)?)?;
        Some(line.source(self.btf.as_ref()?))
    }

    /// The function that holds `pc`.
    #[must_use]
    pub fn subprogram(&self, pc: Pc) -> Option<&Subprogram> {
        let after = self.subprograms.partition_point(|sub| sub.start <= pc);
        self.subprograms.get(after.checked_sub(1)?)
    }

    /// The CO-RE access that the instruction at `pc` was compiled from.
    #[must_use]
    pub fn core_access(&self, pc: Pc) -> Option<&CoreAccess> {
        let at = self.accesses.binary_search_by_key(&pc, |a| a.pc).ok()?;
        self.accesses.get(at)
    }
}

/// As much of an object's name as the kernel keeps, in the characters that it takes
/// (`bpf_obj_name_cpy`, `kernel/bpf/syscall.c`).
///
/// ```
/// assert_eq!(bpflab::program::kernel_name("a-name$longer-than-it"), "a_name_longer_t");
/// ```
#[must_use]
pub fn kernel_name(name: &str) -> String {
    let kept = name.bytes().take(limits::OBJECT_NAME_LEN - 1);
    kept.map(|byte| match byte {
        b'_' | b'.' => char::from(byte),
        _ if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '_',
    })
    .collect()
}

impl MapDef {
    /// A map of a type and its sizes, everything else empty.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        map_type: MapType,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    ) -> Self {
        Self {
            name: name.into(),
            map_type,
            key_size,
            value_size,
            max_entries,
            flags: MapFlags::empty(),
            extra: 0,
            numa_node: 0,
            key_type: None,
            value_type: None,
            special: SpecialFields::default(),
            kernel_value_type: None,
            inner: None,
            initial: Vec::new(),
            frozen: false,
            pinning: Pinning::None,
            origin: MapOrigin::Declared,
            autocreate: true,
            shared: None,
        }
    }

    /// A small map of a type, of sizes and flags that the type's
    /// [table](crate::spec::MapTypeInfo) allows, for who needs any: of arrays where it
    /// holds maps.
    #[must_use]
    pub fn small(name: impl Into<String>, map_type: MapType) -> Self {
        let info = map_type.info();
        let key = match info.key {
            KeyRule::None => 0,
            KeyRule::U32 | KeyRule::Any => 4,
            KeyRule::Lpm | KeyRule::CgroupId => 8,
        };
        let value = match info.value {
            ValueRule::None => 0,
            ValueRule::U32 | ValueRule::U32OrU64 => 4,
            ValueRule::Any | ValueRule::Words | ValueRule::UpTo(_) => 8,
        };
        let entries = match info.entries {
            EntriesRule::Some => 3,
            EntriesRule::Exactly(count) => count,
            EntriesRule::Pages => 4096,
        };
        let mut def = Self::new(name, map_type, key, value, entries);
        def.flags = info.flags_needed;
        if map_type.holds_maps() {
            def.inner = Some(Box::new(Self::new("inner", MapType::Array, 4, 4, 1)));
        }
        def
    }

    /// The special fields of its value, whose type is in `btf`. None where the map has no
    /// types in the kernel: it is declared without, or the kernel refuses to make this map
    /// with such types or fields (`map_check_btf`, `kernel/bpf/syscall.c`), and libbpf then
    /// makes it without types.
    #[must_use]
    pub fn special_fields(&self, btf: &Btf) -> Option<SpecialFields> {
        let value_type = self.value_type?;
        let fields = SpecialFields::of_map_value(btf, value_type);
        let fits = btf.size_of(value_type) == Ok(self.value_size);
        let taken = fits && self.takes_key_type(btf, value_type) && self.takes_fields(&fields);
        taken.then_some(fields)
    }

    /// Whether the kernel makes a map like this with its key's type: one of the key's size,
    /// and an integer of 32 bits where the key is an index. Only an array of global
    /// variables needs none (`array_map_check_btf`, `bpf_local_storage_map_check_btf`).
    fn takes_key_type(&self, btf: &Btf, value_type: TypeId) -> bool {
        let Some(key_type) = self.key_type else {
            let is_section = btf.ty(value_type).kind() == Kind::Datasec;
            return self.map_type == MapType::Array && self.max_entries == 1 && is_section;
        };
        let is_index = self.map_type.info().key == KeyRule::U32;
        let int = btf.resolve(key_type).ok().and_then(|ty| ty.int());
        btf.size_of(key_type) == Ok(self.key_size)
            && (!is_index || int.is_some_and(|int| (int.offset, int.bits) == (0, 32)))
    }

    /// Whether the kernel makes a map like this with such fields in its values.
    pub(crate) fn takes_fields(&self, fields: &SpecialFields) -> bool {
        let access = MapFlags::RDONLY_PROG.union(MapFlags::WRONLY_PROG);
        let held = |field| self.map_type.may_hold(field);
        let mut kinds = fields.iter().filter_map(|field| ValueField::of(field.kind));
        fields.is_empty() || kinds.all(held) && !self.flags.intersects(access)
    }

    /// The definition with the special fields of its value, and of the values of the
    /// maps that it holds, found by their types in `btf`.
    #[must_use]
    pub fn with_special_fields(mut self, btf: &Btf) -> Self {
        self.special = self.special_fields(btf).unwrap_or_default();
        let inner = self.inner.take();
        self.inner = inner.map(|inner| Box::new(inner.with_special_fields(btf)));
        self
    }

    /// The flags that the map has once it is made: those that are asked for, and those
    /// of every map of its kind.
    #[must_use]
    pub fn flags_made(&self) -> MapFlags {
        self.flags | self.map_type.info().flags_given
    }

    /// What the value under `key` is at the start, if the map begins with it.
    #[must_use]
    pub fn initial_value(&self, key: &[u8]) -> Option<&[u8]> {
        self.initial.iter().rev().find_map(|entry| match entry {
            Initial::Bytes { key: at, value } if at == key => Some(&**value),
            _ => None,
        })
    }
}

/// Names of helpers, maps and kernel functions for an instruction's text.
impl Names for Program {
    fn helper(&self, id: HelperId) -> Option<Cow<'_, str>> {
        Some(format!("bpf_{}", helpers::helper(id)?.name).into())
    }

    fn kfunc(&self, id: TypeId, fd_index: i16) -> Option<Cow<'_, str>> {
        let btf = self.kernel_btf.as_ref().filter(|_| fd_index == 0)?;
        Some(btf.get(id)?.name().into())
    }

    fn pseudo(&self, source: Pseudo) -> Option<Cow<'_, str>> {
        match source {
            Pseudo::MapIdx { index } => {
                Some(format!("map[{}]", self.map(MapId(index))?.name).into())
            }
            Pseudo::MapIdxValue { index, off } => {
                Some(format!("map[{}][0]+{off}", self.map(MapId(index))?.name).into())
            }
            _ => None,
        }
    }

    fn helper_named(&self, name: &str) -> Option<HelperId> {
        Some(helpers::helper_by_name(name)?.id)
    }
}
