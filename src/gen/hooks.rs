//! Attach points whose programs get typed pointers as arguments.

use super::kernel::{Argument, Hook, KernelTypes, Member, StructIndex};
use crate::btf::{Btf, Kind};
use crate::isa::Size;
use crate::spec::struct_ops::{self, NULLABLE, Operations, REFERENCE, Writable};
use crate::spec::{AttachType, ProgType};

/// Tracepoints and iterators by the attach type and the name.
const TRACING: &[(AttachType, &str)] = &[
    (AttachType::TraceRawTp, "sched_switch"),
    (AttachType::TraceRawTp, "task_newtask"),
    (AttachType::TraceRawTp, "sched_process_exec"),
    (AttachType::TraceRawTp, "sched_pi_setprio"),
    (AttachType::TraceRawTp, "cgroup_attach_task"),
    (AttachType::TraceRawTp, "kfree_skb"),
    (AttachType::TraceRawTp, "inet_sock_set_state"),
    (AttachType::TraceIter, "task"),
    (AttachType::TraceIter, "task_file"),
    (AttachType::TraceIter, "cgroup"),
    (AttachType::TraceIter, "bpf_map"),
];

impl KernelTypes {
    /// The attach points that the kernel has.
    pub(super) fn find_hooks(&mut self) -> Vec<Hook> {
        let tracing = TRACING.iter();
        let mut hooks: Vec<Hook> = tracing
            .filter_map(|(attach_type, name)| self.tracing(*attach_type, name))
            .collect();
        hooks.extend(self.netfilter());
        for operations in struct_ops::all() {
            self.members_of(operations, &mut hooks);
        }
        hooks
    }

    fn tracing(&mut self, attach_type: AttachType, name: &'static str) -> Option<Hook> {
        let btf = self.btf.clone();
        // A tracepoint is a typedef of a pointer to its prototype, whose first parameter
        // programs don't get; an iterator is a function.
        let is_tracepoint = attach_type == AttachType::TraceRawTp;
        let (prefix, kind) = if is_tracepoint {
            ("btf_trace_", Kind::Typedef)
        } else {
            ("bpf_iter_", Kind::Func)
        };
        let found = btf.find(&format!("{prefix}{name}"), kind)?;
        let of = found.target()?;
        let prototype = if is_tracepoint { of.target()? } else { of };
        let params = prototype.params().skip(usize::from(is_tracepoint));
        let arguments = params.zip(0..).map(|(param, at)| Argument {
            at: argument(at, self.pointee(btf.resolve(param.ty).ok())),
            // An iterator's element is null at the end.
            nullable: !is_tracepoint && at > 0,
            is_reference: false,
        });
        Some(Hook {
            prog_type: ProgType::Tracing,
            attach_type: Some(attach_type),
            target: name.to_owned(),
            id: Some(found.id()),
            arguments: arguments.collect(),
            writable: Vec::new(),
            may_sleep: false,
            returns_pointer: false,
        })
    }

    /// Netfilter programs, which get the hook's state and the packet.
    fn netfilter(&mut self) -> Option<Hook> {
        let objects = ["struct nf_hook_state", "struct sk_buff"];
        let [state, packet] = objects.map(|name| self.named(name));
        let arguments = [state?, packet?].into_iter().zip(0..);
        let arguments = arguments.map(|(to, at)| Argument {
            at: argument(at, Some(to)),
            nullable: false,
            is_reference: false,
        });
        Some(Hook {
            prog_type: ProgType::Netfilter,
            attach_type: Some(AttachType::Netfilter),
            target: String::new(),
            id: None,
            arguments: arguments.collect(),
            writable: Vec::new(),
            may_sleep: false,
            returns_pointer: false,
        })
    }

    /// The members of a structure of operations that programs may implement.
    fn members_of(&mut self, operations: &Operations, hooks: &mut Vec<Hook>) {
        let btf = self.btf.clone();
        let Some(structure) = btf.find(operations.name, Kind::Struct) else {
            return;
        };
        let writable = self.writable(&btf, operations.writable);
        for member in operations.members {
            let Some(prototype) = struct_ops::prototype(structure, member) else {
                continue;
            };
            let stub = struct_ops::stub(&btf, operations.name, member);
            let arguments = prototype.params().enumerate().zip(0..);
            let arguments = arguments.map(|((number, param), at)| {
                let to = operations.pointee(&btf, (member, number), param.ty);
                Argument {
                    at: argument(at, to.and_then(|to| self.index(to.id()))),
                    nullable: struct_ops::is_marked(stub, number, NULLABLE),
                    is_reference: struct_ops::is_marked(stub, number, REFERENCE),
                }
            });
            let arguments = arguments.collect();
            let result = prototype.target_id().and_then(|id| btf.resolve(id).ok());
            let sleepable = operations.sleepable;
            hooks.push(Hook {
                prog_type: ProgType::StructOps,
                attach_type: None,
                target: format!("{}.{member}", operations.name),
                id: Some(structure.id()),
                arguments,
                writable: writable.clone(),
                may_sleep: sleepable.is_none_or(|members| members.contains(member)),
                returns_pointer: result.is_some_and(|ty| ty.kind() == Kind::Ptr),
            });
        }
    }

    /// The members that programs may write.
    fn writable(&mut self, btf: &Btf, writable: Writable) -> Vec<(StructIndex, Member)> {
        let mut found = Vec::new();
        let mut add = |kernel: &mut Self, structure: &str, place: &[(&str, &str)]| {
            let index = kernel.named(&format!("struct {structure}"));
            found.extend(index.zip(field(btf, place)));
        };
        match writable {
            Writable::Whole(structure) => {
                let ty = btf.find(structure, Kind::Struct);
                let members = ty.map(|ty| ty.members());
                let members = members.into_iter().flatten();
                for name in members.map(|member| member.name) {
                    add(self, structure, &[(structure, name)]);
                }
            }
            Writable::Members(structures) => {
                for (structure, places) in structures {
                    for place in *places {
                        add(self, structure, place);
                    }
                }
            }
            Writable::Spans { spans, .. } => {
                for span in spans {
                    add(self, span.structure, &[(span.structure, span.path)]);
                }
            }
        }
        found
    }
}

const fn argument(at: i16, to: Option<StructIndex>) -> Member {
    Member {
        off: 8 * at,
        size: Size::Dw,
        to,
    }
}

/// The first bytes of a place, as many as a store may have.
fn field(btf: &Btf, place: &[(&str, &str)]) -> Option<Member> {
    let (mut bits, mut last) = (0, None);
    for (structure, path) in place {
        let root = btf.find(structure, Kind::Struct)?;
        let found = btf.field(root.id(), path).ok()?;
        bits += found.bit_offset;
        last = Some(found.bit_size);
    }
    let size = [Size::Dw, Size::W, Size::H, Size::B];
    let fits = |size: &Size| last.is_some_and(|bits| u64::from(size.bytes()) * 8 <= bits);
    Some(Member {
        off: i16::try_from(bits / 8).ok()?,
        size: size.into_iter().find(fits)?,
        to: None,
    })
}
