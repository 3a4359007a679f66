//! Plain data that the stages exchange: `object` produces it, the verifier judges it, the
//! engines run it, the kernel loads it. The methods only look things up.

mod attach;
mod exception;
mod records;

use std::borrow::Cow;
use std::sync::Arc;

use crate::btf::{Btf, FuncInfo, Kind, LineInfo, SourceLine, SpecialFields, Type};
use crate::isa::{Names, Pseudo, PseudoKind, RawInsn};
use crate::spec::context::Arch;
use crate::spec::{
    AttachType, EntriesRule, KeyRule, MapFlags, MapType, ProgFlags, ProgType, ValueField,
    ValueRule, helpers, limits,
};
use crate::util::{HelperId, MapId, Pc, TypeId, with};

pub use attach::{AttachProgram, TargetFunction, TargetProgram};
pub(crate) use exception::exception_callbacks;
#[doc(hidden)]
pub use records::RecordTypes;

/// One BPF program after relocation: the input of `bpf(BPF_PROG_LOAD)`, with map
/// definitions in place of file descriptors.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Program {
    /// Full name of the C function (the kernel keeps 15 bytes of it).
    pub name: String,
    /// The ELF section of the program, such as `tp/syscalls/sys_enter_write`.
    pub section: String,
    /// Program type.
    pub prog_type: ProgType,
    /// `expected_attach_type` of the load, where the type has one.
    pub expected_attach_type: Option<AttachType>,
    /// The section name after the prefix: `syscalls/sys_enter_write`.
    pub attach_target: Option<String>,
    /// Kernel function, tracepoint or hook for types that attach through BTF.
    pub attach_btf_id: Option<TypeId>,
    /// The program to attach to; `attach_btf_id` is then a type in that program's BTF.
    pub attach_prog: AttachProgram,
    /// `prog_flags` of the load.
    pub flags: ProgFlags,
    /// The architecture it was compiled for, where contexts differ: that of the registers
    /// in its BTF, otherwise the host's.
    pub arch: Arch,
    /// License string; GPL-only helpers require a GPL-compatible one.
    pub license: String,
    /// The slots of the main program, then those of each subprogram that it reaches. A
    /// 64-bit immediate that refers to a map has the pseudo source `BPF_PSEUDO_MAP_IDX` or
    /// `BPF_PSEUDO_MAP_IDX_VALUE`, and its `imm` is a [`MapId`]: `maps` acts as the
    /// kernel's `fd_array`.
    pub insns: Vec<RawInsn>,
    /// Start of each function, the main program first, in ascending order.
    pub subprograms: Vec<Subprogram>,
    /// All maps of the object, so that a [`MapId`] means the same in each of its programs.
    pub maps: Arc<[MapDef]>,
    /// The program's BTF, to which types in `maps`, `subprograms` and `lines` refer.
    pub btf: Option<Btf>,
    /// The kernel BTF that the program was relocated for: `attach_btf_id`, kfunc calls and
    /// addresses of kernel variables refer to it.
    pub kernel_btf: Option<Btf>,
    /// `func_info` records as the kernel takes them: offsets in slots, not bytes.
    pub func_info: Vec<FuncInfo>,
    /// `line_info` records in ascending order, offsets in slots, not bytes.
    pub lines: Vec<LineInfo>,
    /// The C accesses that CO-RE relocated, in ascending order.
    pub accesses: Vec<CoreAccess>,
    /// Whether the kernel refuses [`btf`](Self::btf) as a whole
    /// ([`Btf::refusal`](crate::btf::Btf::refusal)). libbpf then loads the program without
    /// it ([`without_types`](Self::without_types)), and the verifier judges that.
    pub btf_refused: bool,
}

/// A function of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subprogram {
    /// Name of the C function.
    pub name: String,
    /// Its first instruction.
    pub start: Pc,
    /// Its `BTF_KIND_FUNC`.
    pub type_id: Option<TypeId>,
    /// Whether it has global linkage: a global function is verified on its own, a static
    /// one in the context of each call.
    pub global: bool,
}

impl Subprogram {
    /// A global function without a type.
    #[must_use]
    pub fn new(name: impl Into<String>, start: Pc) -> Self {
        Self {
            name: name.into(),
            start,
            type_id: None,
            global: true,
        }
    }

    with! {
        with_start(start: Pc);
        with_type_id(type_id: impl Into<Option<TypeId>>);
        with_global(global: bool);
    }
}

/// An instruction that CO-RE relocated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreAccess {
    /// The instruction.
    pub pc: Pc,
    /// The access as in C: `task_struct.real_parent.tgid`.
    pub path: String,
    /// Whether the target's BTF lacks this field or type. The instruction is then poisoned
    /// as libbpf does it, and fails when it is verified or run.
    pub poisoned: bool,
}

/// A map as an object declares it: the input of `bpf(BPF_MAP_CREATE)`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MapDef {
    /// Full name (the kernel keeps 15 bytes of it).
    pub name: String,
    /// Map type.
    pub map_type: MapType,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value; for per-CPU types, of one CPU's value.
    pub value_size: u32,
    /// Maximum number of entries; bytes of data for ring buffers.
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
    /// Special fields of a value, found by its type when the map is created
    /// ([`with_special_fields`](Self::with_special_fields)).
    pub special: SpecialFields,
    /// Type of the value in the kernel's BTF, for `struct_ops`.
    pub kernel_value_type: Option<TypeId>,
    /// Definition of the inner maps of a map of maps.
    pub inner: Option<Box<MapDef>>,
    /// Initial contents.
    pub initial: Vec<Initial>,
    /// Whether user space can't change it after loading (`BPF_MAP_FREEZE`).
    pub frozen: bool,
    /// Whether and how it is pinned when loaded.
    pub pinning: Pinning,
    /// The part of the object that declares it.
    pub origin: MapOrigin,
    /// Whether it is created when the object is loaded. Instructions that refer to a map
    /// that is not created are poisoned, as in libbpf.
    pub autocreate: bool,
    /// Identity of the map, where several objects share it.
    pub shared: Option<SharedMap>,
}

/// Identity of a map of several objects: definitions with the same token are one map.
#[derive(Debug, Clone)]
pub struct SharedMap(Arc<()>);

impl SharedMap {
    /// A new token, different from all others.
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
#[non_exhaustive]
pub enum Initial {
    /// A key and a value in bytes.
    Bytes {
        /// `key_size` bytes.
        key: Vec<u8>,
        /// `value_size` bytes, or fewer: the rest is zero.
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
#[non_exhaustive]
pub enum Pinning {
    /// `LIBBPF_PIN_NONE`.
    #[default]
    None,
    /// `LIBBPF_PIN_BY_NAME`, iproute2's `PIN_GLOBAL_NS`: shared by name below the pin path.
    ByName,
    /// iproute2's `PIN_OBJECT_NS`: shared by name among loads of the same object file.
    ByObject,
    /// Another number, which only the object's own loader interprets (Cilium's 16 replaces
    /// the pinned map). libbpf refuses it; bpflab does not share the map.
    Other(u32),
}

/// The part of an object that a map comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MapOrigin {
    /// A declaration in `.maps` or the legacy `maps` section.
    #[default]
    Declared,
    /// Global data: a whole section, by name (`.rodata.str`, `.bss`).
    Section(String),
    /// The values of `__kconfig` externs.
    Kconfig,
    /// A `struct_ops` definition in the named section.
    StructOps(String),
}

impl Program {
    /// A program of these instructions: no maps, no BTF, one function. Set other fields as
    /// needed.
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
            subprograms: vec![Subprogram::new(name.clone(), Pc(0))],
            name,
            section: String::new(),
            prog_type,
            expected_attach_type: None,
            attach_target: None,
            attach_btf_id: None,
            attach_prog: AttachProgram::None,
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

    /// The number of the member that a struct_ops program implements, which a load has in place of
    /// the attach type.
    pub(crate) fn member(&self) -> Option<u32> {
        self.member_of(self.kernel_btf.as_ref()?.get(self.attach_btf_id?)?)
    }

    /// The same in another kernel's declaration of the structure.
    pub(crate) fn member_of(&self, structure: Type<'_>) -> Option<u32> {
        if self.prog_type != ProgType::StructOps {
            return None;
        }
        let (_, name) = self.attach_target.as_deref()?.split_once('.')?;
        let at = structure.members().position(|member| member.name == name);
        u32::try_from(at?).ok()
    }

    /// The program whose context it gets: the one that an extension is for, or itself.
    pub(crate) fn owner_of_context(&self) -> &Self {
        match (self.prog_type, self.attach_prog.known()) {
            (ProgType::Ext, Some(target)) => &target.program,
            _ => self,
        }
    }

    /// The program as libbpf loads it when the kernel refuses its BTF: no function and map
    /// types, no lines, and so no global functions and no special fields.
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
        bare.maps = self.maps_without_types(|_| true);
        bare
    }

    /// The maps to which instructions refer; one may come several times.
    pub(crate) fn map_references(&self) -> impl Iterator<Item = MapId> + '_ {
        let refers = |insn: &&RawInsn| {
            let kind = PseudoKind::from_src(insn.src());
            insn.is_wide() && matches!(kind, Some(PseudoKind::MapIdx | PseudoKind::MapIdxValue))
        };
        let refers = self.insns.iter().filter(refers);
        refers.map(|insn| MapId(insn.imm.cast_unsigned()))
    }

    /// Its maps, created only if an instruction refers to them, or an element of such a map. A
    /// loader that may not create an object's other maps can load the program then.
    #[must_use]
    pub fn needed_maps(&self) -> Arc<[MapDef]> {
        let mut needed: Vec<MapId> = self.map_references().collect();
        let initial = |map: &MapDef| {
            let inner = map.initial.iter().filter_map(|entry| match entry {
                Initial::Map { map, .. } => Some(*map),
                _ => None,
            });
            inner.collect::<Vec<_>>()
        };
        let inner: Vec<_> = needed.iter().filter_map(|id| self.map(*id)).collect();
        needed.extend(inner.into_iter().flat_map(initial));
        let mut maps: Vec<MapDef> = self.maps.to_vec();
        for (id, map) in (0..).map(MapId).zip(&mut maps) {
            map.autocreate &= needed.contains(&id);
        }
        maps.into()
    }

    /// Its maps, without the types of keys and values where the kernel refuses them.
    pub(crate) fn maps_without_types(&self, refused: impl Fn(&MapDef) -> bool) -> Arc<[MapDef]> {
        let created = |map: &MapDef| {
            let mut map = map.clone();
            if refused(&map) {
                (map.key_type, map.value_type) = (None, None);
            }
            map
        };
        let whole = |map: &MapDef| MapDef {
            inner: map.inner.as_deref().map(|inner| Box::new(created(inner))),
            ..created(map)
        };
        self.maps.iter().map(whole).collect()
    }

    /// The BTF of the kernel that the program was relocated for. `None` if it was relocated
    /// without a kernel: [`kernel_btf`](Self::kernel_btf) is then its own BTF.
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

    /// The function that contains `pc`.
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

/// A name as the kernel stores it: cut to 15 bytes, invalid characters replaced by `_`
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
    with! {
        with_flags(flags: MapFlags);
        with_key_type(key_type: impl Into<Option<TypeId>>);
        with_value_type(value_type: impl Into<Option<TypeId>>);
        with_inner(inner: impl Into<Option<Box<Self>>>);
        with_initial(initial: impl Into<Vec<Initial>>);
        with_frozen(frozen: bool);
    }

    /// The definition, and that of its inner maps: the kernel creates both.
    pub(crate) fn and_inner(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.inner.as_deref())
    }

    /// A map of this type and these sizes, everything else empty.
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

    /// A minimal valid map of a type: sizes and flags that the type's
    /// [table](crate::spec::MapTypeInfo) allows; a map of maps holds arrays.
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

    /// The special fields of its value, whose type is in `btf`. `None` if the map has no
    /// types in the kernel: its declaration has none, or the kernel refuses this map with
    /// such types or fields (`map_check_btf`, `kernel/bpf/syscall.c`), and libbpf then
    /// creates it without types.
    #[must_use]
    pub fn special_fields(&self, btf: &Btf) -> Option<SpecialFields> {
        let value_type = self.value_type?;
        let fields = SpecialFields::of_map_value(btf, value_type);
        let fits = btf.size_of(value_type) == Ok(self.value_size);
        let taken = fits && self.takes_key_type(btf, value_type) && self.takes_fields(&fields);
        taken.then_some(fields)
    }

    /// Whether the kernel creates a map like this with its key's type: the type has the
    /// key's size, and is a 32-bit integer where the key is an index. Only an array of
    /// global variables needs no key type (`array_map_check_btf`,
    /// `bpf_local_storage_map_check_btf`).
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

    /// Whether the kernel creates a map like this with such fields in its values.
    pub(crate) fn takes_fields(&self, fields: &SpecialFields) -> bool {
        let access = MapFlags::RDONLY_PROG.union(MapFlags::WRONLY_PROG);
        let held = |field| self.map_type.may_hold(field);
        let mut kinds = fields.iter().filter_map(|field| ValueField::of(field.kind));
        fields.is_empty() || kinds.all(held) && !self.flags.intersects(access)
    }

    /// The definition with the special fields of its value, and of its inner maps' values,
    /// found by their types in `btf`.
    #[must_use]
    pub fn with_special_fields(mut self, btf: &Btf) -> Self {
        self.special = self.special_fields(btf).unwrap_or_default();
        let inner = self.inner.take();
        self.inner = inner.map(|inner| Box::new(inner.with_special_fields(btf)));
        self
    }

    /// The flags of the map once created: the requested ones and those that every map of
    /// its type has.
    #[must_use]
    pub fn flags_made(&self) -> MapFlags {
        self.flags | self.map_type.info().flags_given
    }

    /// The initial value under `key`, if there is one.
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
