//! The maps that a program may use (`add_used_map` and `check_map_prog_compatibility`,
//! `kernel/bpf/verifier.c`).

use crate::btf::FieldKind;
use crate::program::{MapDef, Program};
use crate::spec::limits::MAX_USED_MAPS;
use crate::spec::{Capabilities, MapType, ProgFlags, ProgType, ValueField};
use crate::util::MapId;
use crate::verifier::Options;
use crate::verifier::reject::{VerifyResult, reject};

/// The maps referenced so far.
pub(super) struct UsedMaps<'a> {
    program: &'a Program,
    loader: Capabilities,
    used: Vec<MapId>,
}

/// Types of tracing programs, which may interrupt other programs and the kernel.
const TRACING: &[ProgType] = &[
    ProgType::Kprobe,
    ProgType::Tracepoint,
    ProgType::PerfEvent,
    ProgType::RawTracepoint,
    ProgType::RawTracepointWritable,
];

/// Special fields that tracing programs must not use, and the kernel's names for them.
const NOT_IN_TRACING: &[(ValueField, &str)] = &[
    (ValueField::Graph, "bpf_{list_head,rb_root}"),
    (ValueField::SpinLock, "bpf_spin_lock"),
    (ValueField::Timer, "bpf_timer"),
    (ValueField::Workqueue, "bpf_wq"),
];

/// What creating the maps requires to which the program refers, with their inner maps. The
/// object's other maps don't count: libbpf can be told not to create them.
pub(super) fn required(program: &Program) -> Capabilities {
    created(program)
        .map(|map| Capabilities::for_map(map.map_type, map.flags))
        .collect()
}

/// Whether the loader may create these maps.
pub(super) fn may_create(program: &Program, options: &Options) -> bool {
    created(program).all(|map| {
        let creator = options.creator_of(map.map_type);
        creator.allow(Capabilities::for_map(map.map_type, map.flags))
    })
}

/// The maps that must exist when the program is loaded.
fn created(program: &Program) -> impl Iterator<Item = &MapDef> {
    let maps = program.map_references().filter_map(|id| program.map(id));
    maps.flat_map(MapDef::and_inner)
}

impl<'a> UsedMaps<'a> {
    /// Without any maps.
    pub(super) fn new(program: &'a Program, loader: Capabilities) -> Self {
        Self {
            program,
            loader,
            used: Vec::new(),
        }
    }

    /// Adds a reference to a map.
    pub(super) fn add(&mut self, id: MapId) -> VerifyResult<&'a MapDef> {
        if self.program.maps.is_empty() {
            reject!(EPROTO, "fd_idx without fd_array is invalid");
        }
        let Some(map) = self.program.map(id) else {
            reject!(EBADF, "fd {id} is not pointing to valid bpf_map");
        };
        if self.used.contains(&id) {
            return Ok(map);
        }
        if self.used.len() >= MAX_USED_MAPS {
            reject!(
                E2BIG,
                "The total number of maps per program has reached the limit of {MAX_USED_MAPS}"
            );
        }
        self.check(map)?;
        self.used.push(id);
        Ok(map)
    }

    /// Checks that the program may use this map besides the others.
    fn check(&self, map: &MapDef) -> VerifyResult {
        let program = self.program;
        let prog_type = program.prog_type;
        let btf = program.btf.as_ref();
        let fields = btf.and_then(|btf| map.special_fields(btf));
        let holds = |wanted: ValueField| {
            let mut fields = fields.iter().flat_map(|fields| fields.iter());
            // The kernel has no such check for `bpf_task_work`.
            fields.any(|field| {
                field.kind != FieldKind::TaskWork && ValueField::of(field.kind) == Some(wanted)
            })
        };
        if prog_type == ProgType::SocketFilter && holds(ValueField::SpinLock) {
            reject!(EINVAL, "socket filter progs cannot use bpf_spin_lock yet");
        }
        if TRACING.contains(&prog_type)
            && let Some((_, name)) = NOT_IN_TRACING.iter().find(|(field, _)| holds(*field))
        {
            reject!(EINVAL, "tracing progs cannot use {name} yet");
        }
        if map.map_type == MapType::StructOps {
            reject!(EINVAL, "bpf_struct_ops map cannot be used in prog");
        }
        if program.flags.contains(ProgFlags::SLEEPABLE) && !map.map_type.in_sleepable() {
            reject!(
                EINVAL,
                "Sleepable programs can only use array, hash, ringbuf and local storage maps"
            );
        }
        let same_type_used = || {
            let mut used = self.used.iter().filter_map(|id| program.map(*id));
            used.any(|other| other.map_type == map.map_type)
        };
        match map.map_type {
            MapType::CgroupStorage | MapType::PercpuCgroupStorage if same_type_used() => {
                reject!(EBUSY, "only one cgroup storage of each type is allowed")
            }
            MapType::Arena if same_type_used() => reject!(EBUSY, "Only one arena per program"),
            MapType::Arena if !self.loader.allow(Capabilities::BPF | Capabilities::PERFMON) => {
                reject!(EPERM, "CAP_BPF and CAP_PERFMON are required to use arena")
            }
            _ => Ok(()),
        }
    }
}
