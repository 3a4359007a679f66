//! The structures of operations that struct_ops programs implement, and their rules
//! (`struct bpf_struct_ops`, `include/linux/bpf.h`).

use crate::btf::{Btf, Kind, Type};
use crate::util::TypeId;

/// A structure of operations.
#[derive(Debug)]
pub struct Operations {
    /// The structure, in the kernel's BTF.
    pub name: &'static str,
    /// The members that programs may implement (those with a stub, `cfi_stubs`).
    pub members: &'static [&'static str],
    /// The members in which programs may sleep (`check_member`); `None` for all.
    pub sleepable: Option<&'static [&'static str]>,
    /// A structure in whose place the programs get another, which begins with it: both names.
    pub promoted: Option<(&'static str, &'static str)>,
    /// Arguments in whose place the programs get a pointer to a structure.
    pub retyped: &'static [Retyped],
    /// What programs may write (`btf_struct_access`).
    pub writable: Writable,
    /// Whether programs may call helpers (`get_func_proto`).
    pub helpers: bool,
}

/// An argument that programs get as another type (`is_valid_access`).
#[derive(Debug)]
pub struct Retyped {
    /// The member of the structure of operations.
    pub member: &'static str,
    /// The argument's number, from 0.
    pub argument: usize,
    /// The structure that the argument points to for programs.
    pub structure: &'static str,
}

/// Bytes of a structure: structures and paths in them. Each begins at the place that the one
/// before ends with; the first structure begins the whole.
pub type Place = &'static [(&'static str, &'static str)];

/// The kernel objects that programs may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writable {
    /// Any byte of this structure.
    Whole(&'static str),
    /// Places in these structures, each from its first byte; arrays and structures from any.
    Members(&'static [(&'static str, &'static [Place])]),
    /// Any bytes of these members.
    Spans {
        /// The members.
        spans: &'static [Span],
        /// Whether the kernel refuses other writes without a message.
        silent: bool,
    },
}

/// A member of a kernel object that programs may write in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The structure.
    pub structure: &'static str,
    /// The member, as a path.
    pub path: &'static str,
    /// Whether the member is a string, whose last byte has to stay.
    pub is_string: bool,
}

impl Span {
    const fn new(structure: &'static str, path: &'static str) -> Self {
        Self {
            structure,
            path,
            is_string: false,
        }
    }

    const fn string(structure: &'static str, path: &'static str) -> Self {
        Self {
            is_string: true,
            ..Self::new(structure, path)
        }
    }
}

/// The prefix of the structure that a kernel has for each structure of operations that
/// programs may implement (`VALUE_PREFIX`, `kernel/bpf/bpf_struct_ops.c`).
pub const VALUE_PREFIX: &str = "bpf_struct_ops_";

/// The end of the name of a stub's parameter that may be null (`MAYBE_NULL_SUFFIX`).
pub const NULLABLE: &str = "__nullable";
/// The end of the name of a stub's parameter that is a reference (`REFCOUNTED_SUFFIX`).
pub const REFERENCE: &str = "__ref";

/// The prototype of the stub for a member, whose parameters have names, which may end with
/// [`NULLABLE`] or [`REFERENCE`] (`prepare_arg_info`). Stubs with such parameters are named after
/// structure and member, others not always.
#[must_use]
pub fn stub<'b>(btf: &'b Btf, structure: &str, member: &str) -> Option<Type<'b>> {
    let function = btf.find(&format!("{structure}__{member}"), Kind::Func)?;
    function.target().filter(|ty| ty.kind() == Kind::FuncProto)
}

/// Whether the name of a parameter of a stub, numbered from 0, ends with [`NULLABLE`] or
/// [`REFERENCE`].
#[must_use]
pub fn is_marked(stub: Option<Type<'_>>, parameter: usize, mark: &str) -> bool {
    let found = stub.and_then(|stub| stub.params().nth(parameter));
    found.is_some_and(|parameter| parameter.name.ends_with(mark))
}

/// Structures of operations whose rules are known.
const OPERATIONS: &[Operations] = &[
    // net/bpf/bpf_dummy_struct_ops.c
    Operations {
        name: "bpf_dummy_ops",
        members: &["test_1", "test_2", "test_sleepable"],
        sleepable: Some(&["test_sleepable"]),
        promoted: None,
        retyped: &[],
        writable: Writable::Whole("bpf_dummy_ops_state"),
        helpers: false,
    },
    // net/ipv4/bpf_tcp_ca.c
    Operations {
        name: "tcp_congestion_ops",
        members: &[
            "ssthresh",
            "cong_avoid",
            "set_state",
            "cwnd_event",
            "in_ack_event",
            "pkts_acked",
            "min_tso_segs",
            "cong_control",
            "undo_cwnd",
            "sndbuf_expand",
            "init",
            "release",
        ],
        sleepable: None,
        promoted: Some(("sock", "tcp_sock")),
        retyped: &[],
        writable: Writable::Members(&[(
            "tcp_sock",
            &[
                &[("sock", "sk_pacing_rate")],
                &[("sock", "sk_pacing_status")],
                &[("inet_connection_sock", "icsk_ca_priv")],
                &[("inet_connection_sock", "icsk_ack.pending")],
                &[("tcp_sock", "snd_cwnd")],
                &[("tcp_sock", "snd_cwnd_cnt")],
                &[("tcp_sock", "snd_cwnd_stamp")],
                &[("tcp_sock", "snd_ssthresh")],
                &[("tcp_sock", "ecn_flags")],
                &[("tcp_sock", "app_limited")],
            ],
        )]),
        helpers: true,
    },
    // net/sched/bpf_qdisc.c
    Operations {
        name: "Qdisc_ops",
        members: &["enqueue", "dequeue", "init", "reset", "destroy"],
        sleepable: None,
        promoted: None,
        retyped: &[Retyped {
            member: "enqueue",
            argument: 2,
            structure: "bpf_sk_buff_ptr",
        }],
        writable: Writable::Members(&[
            (
                "sk_buff",
                &[
                    &[("sk_buff", "tstamp")],
                    &[("sk_buff", "cb"), ("qdisc_skb_cb", "data")],
                ],
            ),
            (
                "Qdisc",
                &[
                    &[("Qdisc", "limit")],
                    &[("Qdisc", "q.qlen")],
                    &[("Qdisc", "qstats")],
                ],
            ),
        ]),
        helpers: true,
    },
    // kernel/sched/ext.c
    Operations {
        name: "sched_ext_ops",
        members: &[
            "select_cpu",
            "enqueue",
            "dequeue",
            "dispatch",
            "tick",
            "runnable",
            "running",
            "stopping",
            "quiescent",
            "yield",
            "core_sched_before",
            "set_weight",
            "set_cpumask",
            "update_idle",
            "cpu_acquire",
            "cpu_release",
            "init_task",
            "exit_task",
            "enable",
            "disable",
            "dump",
            "dump_cpu",
            "dump_task",
            "cgroup_init",
            "cgroup_exit",
            "cgroup_prep_move",
            "cgroup_move",
            "cgroup_cancel_move",
            "cgroup_set_weight",
            "cgroup_set_bandwidth",
            "cpu_online",
            "cpu_offline",
            "init",
            "exit",
        ],
        sleepable: Some(&[
            "init_task",
            "cgroup_init",
            "cgroup_exit",
            "cgroup_prep_move",
            "cpu_online",
            "cpu_offline",
            "init",
            "exit",
        ]),
        promoted: None,
        retyped: &[],
        writable: Writable::Spans {
            spans: &[
                Span::new("task_struct", "scx.slice"),
                Span::new("task_struct", "scx.dsq_vtime"),
                Span::new("task_struct", "scx.disallow"),
            ],
            silent: true,
        },
        helpers: true,
    },
    // drivers/hid/bpf/hid_bpf_struct_ops.c
    Operations {
        name: "hid_bpf_ops",
        members: &[
            "hid_device_event",
            "hid_rdesc_fixup",
            "hid_hw_request",
            "hid_hw_output_report",
        ],
        sleepable: Some(&["hid_rdesc_fixup", "hid_hw_request", "hid_hw_output_report"]),
        promoted: None,
        retyped: &[],
        writable: Writable::Spans {
            spans: &[
                Span::new("hid_bpf_ctx", "retval"),
                Span::string("hid_device", "name"),
                Span::string("hid_device", "uniq"),
                Span::string("hid_device", "phys"),
            ],
            silent: false,
        },
        helpers: true,
    },
];

impl Operations {
    /// The structure that an argument of a member, numbered from 0, points to for programs; its
    /// type in the prototype is `ty`. `None` for other arguments.
    #[must_use]
    pub fn pointee<'b>(
        &self,
        btf: &'b Btf,
        (member, argument): (&str, usize),
        ty: TypeId,
    ) -> Option<Type<'b>> {
        if let Some(other) = self.other_type(member, argument) {
            return btf.find(other, Kind::Struct);
        }
        let pointer = btf.resolve(ty).ok()?;
        let pointer = (pointer.kind() == Kind::Ptr).then_some(pointer)?;
        let to = btf.resolve(pointer.target_id()?).ok()?;
        match self.promoted {
            Some((from, other)) if to.name() == from => btf.find(other, Kind::Struct),
            _ => (to.kind() == Kind::Struct).then_some(to),
        }
    }

    /// The same where it is not the structure of the prototype.
    #[must_use]
    pub fn other_type(&self, member: &str, argument: usize) -> Option<&'static str> {
        let mut all = self.retyped.iter();
        let found = all.find(|one| one.member == member && one.argument == argument);
        found.map(|one| one.structure)
    }
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Operations> {
    OPERATIONS.iter()
}

/// The prototype of a structure's member, if that is a pointer to a function.
#[must_use]
pub fn prototype<'b>(structure: Type<'b>, member: &str) -> Option<Type<'b>> {
    let btf = structure.btf();
    let member = structure.members().find(|one| one.name == member)?;
    let pointer = btf.resolve(member.ty).ok()?;
    let pointer = (pointer.kind() == Kind::Ptr).then_some(pointer)?;
    let to = btf.resolve(pointer.target_id()?).ok()?;
    (to.kind() == Kind::FuncProto).then_some(to)
}

/// The structure of operations with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Operations> {
    OPERATIONS.iter().find(|operations| operations.name == name)
}
