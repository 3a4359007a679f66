//! What generated programs use of a kernel: its functions, structures, and attach points
//! with typed arguments, as its BTF has them.

use std::collections::BTreeMap;

use crate::btf::{Btf, Kind, Type};
use crate::isa::Size;
use crate::spec::call::IteratorStep;
use crate::spec::kfuncs::{self, KfuncFlags, KfuncResult, ParameterKind};
use crate::spec::{AttachType, ProgType};
use crate::util::TypeId;

/// The attach points whose arguments are typed pointers, by the attach type and the name.
const HOOKS: &[(AttachType, &str)] = &[
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

/// The most structures, and how deep structures in structures are entered.
const MOST: usize = 250;
const DEPTH: usize = 2;

/// The index of a structure in [`KernelTypes`].
pub(super) type StructIndex = u16;

/// What programs can use of a kernel.
#[derive(Debug)]
pub struct KernelTypes {
    pub(super) btf: Btf,
    pub(super) functions: Vec<Kfunc>,
    pub(super) iterators: Vec<Iterator>,
    pub(super) hooks: Vec<Hook>,
    pub(super) structs: Vec<Struct>,
    by_id: BTreeMap<TypeId, StructIndex>,
}

/// A kfunc that the kernel has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kfunc {
    pub row: &'static kfuncs::Kfunc,
    pub id: TypeId,
}

impl Kfunc {
    pub(super) fn has(&self, flags: KfuncFlags) -> bool {
        self.row.flags.contains(flags)
    }
}

/// The functions of an iterator, and the bytes that it takes on the stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iterator {
    pub new: Kfunc,
    pub next: Kfunc,
    pub destroy: Kfunc,
    pub size: i16,
}

/// An attach point: each argument is eight bytes of the context.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub attach_type: AttachType,
    pub name: &'static str,
    pub id: TypeId,
    pub arguments: Vec<Member>,
}

impl Hook {
    pub(super) const PROG_TYPE: ProgType = ProgType::Tracing;

    /// Whether an argument may be null: an iterator's element at the end.
    pub(super) fn may_be_null(&self, argument: Member) -> bool {
        self.attach_type == AttachType::TraceIter && argument.off > 0
    }
}

/// A structure of the kernel.
#[derive(Debug, Clone)]
pub(super) struct Struct {
    pub id: TypeId,
    pub members: Vec<Member>,
}

/// Bytes at an offset that a program can load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub off: i16,
    pub size: Size,
    /// The structure that it points to; `None` for a number.
    pub to: Option<StructIndex>,
}

impl KernelTypes {
    /// Collects what programs can use from a kernel's BTF.
    #[must_use]
    pub fn new(btf: &Btf) -> Self {
        let mut types = Self {
            btf: btf.clone(),
            functions: Vec::new(),
            iterators: Vec::new(),
            hooks: Vec::new(),
            structs: Vec::new(),
            by_id: BTreeMap::new(),
        };
        for row in kfuncs::kfuncs() {
            if let Some(found) = btf.find(row.name, Kind::Func) {
                types.functions.push(Kfunc {
                    row,
                    id: found.id(),
                });
            }
        }
        types.iterators = types.find_iterators();
        let hooks = HOOKS.iter().filter_map(|hook| types.hook(hook.0, hook.1));
        types.hooks = hooks.collect();
        for at in 0..types.functions.len() {
            let row = types.functions[at].row;
            let passed = row.parameters.iter();
            let passed = passed.filter(|parameter| parameter.kind == ParameterKind::Object);
            let returned = match row.result {
                KfuncResult::Pointer(base) => Some(base),
                _ => None,
            };
            for base in passed.map(|parameter| parameter.base).chain(returned) {
                types.named(base);
            }
        }
        let mut at = 0;
        while at < types.structs.len() {
            types.structs[at].members = types.members(types.structs[at].id);
            at += 1;
        }
        types
    }

    /// The function of this name.
    pub(super) fn function(&self, name: &str) -> Option<Kfunc> {
        self.functions
            .iter()
            .copied()
            .find(|it| it.row.name == name)
    }

    /// Its types.
    pub(crate) const fn btf(&self) -> &Btf {
        &self.btf
    }

    /// The id of a kfunc of this name.
    pub(crate) fn kfunc(&self, name: &str) -> Option<TypeId> {
        self.btf.find(name, Kind::Func).map(|ty| ty.id())
    }

    /// The function that releases a pointer to this structure (`struct task_struct`).
    pub(super) fn release(&self, base: &str) -> Option<Kfunc> {
        let takes = |it: &Kfunc| match it.row.parameters {
            [only] => it.has(KfuncFlags::RELEASE) && only.base == base,
            _ => false,
        };
        self.functions.iter().copied().find(takes)
    }

    /// The structure of this name (`struct task_struct`).
    pub(super) fn structure(&self, base: &str) -> Option<StructIndex> {
        let found = self.btf.find(base.strip_prefix("struct ")?, Kind::Struct)?;
        self.by_id.get(&found.id()).copied()
    }

    fn find_iterators(&self) -> Vec<Iterator> {
        let news = self.functions.iter().copied();
        let news = news.filter(|it| it.row.flags.contains(KfuncFlags::ITER_NEW));
        let whole = |new: Kfunc| {
            let family = new.row.name.strip_suffix("_new")?;
            let step = |name: &str, step| {
                let found = self.function(&format!("{family}_{name}"))?;
                let (_, does) = found.row.call().iterator?;
                (does == step).then_some(found)
            };
            let size = self.btf.find(family, Kind::Struct)?.size()?;
            Some(Iterator {
                new,
                next: step("next", IteratorStep::Next)?,
                destroy: step("destroy", IteratorStep::Destroy)?,
                size: i16::try_from(size).ok()?,
            })
        };
        news.filter_map(whole).collect()
    }

    fn hook(&mut self, attach_type: AttachType, name: &'static str) -> Option<Hook> {
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
        let arguments = params.zip(0..).map(|(param, at)| Member {
            off: 8 * at,
            size: Size::Dw,
            to: self.pointee(btf.resolve(param.ty).ok()),
        });
        Some(Hook {
            attach_type,
            name,
            id: found.id(),
            arguments: arguments.collect(),
        })
    }

    /// The structure that this type points to.
    fn pointee(&mut self, ty: Option<Type<'_>>) -> Option<StructIndex> {
        let ty = ty.filter(|ty| ty.kind() == Kind::Ptr)?;
        let btf = self.btf.clone();
        let to = btf.resolve(ty.target_id()?).ok()?;
        (to.kind() == Kind::Struct).then(|| self.index(to.id()))?
    }

    fn named(&mut self, base: &str) -> Option<StructIndex> {
        let found = self.btf.find(base.strip_prefix("struct ")?, Kind::Struct)?;
        self.index(found.id())
    }

    /// The index of a structure, which is added if there is room.
    fn index(&mut self, id: TypeId) -> Option<StructIndex> {
        if let Some(known) = self.by_id.get(&id) {
            return Some(*known);
        }
        let next = StructIndex::try_from(self.structs.len()).ok()?;
        if self.structs.len() >= MOST {
            return None;
        }
        self.by_id.insert(id, next);
        let members = Vec::new();
        self.structs.push(Struct { id, members });
        Some(next)
    }

    fn members(&mut self, id: TypeId) -> Vec<Member> {
        let (btf, mut found) = (self.btf.clone(), Vec::new());
        self.collect(&btf, id, 0, DEPTH, &mut found);
        found
    }

    fn collect(&mut self, btf: &Btf, id: TypeId, from: u32, depth: usize, to: &mut Vec<Member>) {
        for member in btf.ty(id).members().filter(|it| it.bitfield.is_none()) {
            let at = from + member.bit_offset / 8;
            let Ok(ty) = btf.resolve(member.ty) else {
                continue;
            };
            if ty.kind().is_composite() && depth > 0 {
                self.collect(btf, ty.id(), at, depth - 1, to);
            }
            let (Ok(off), Some(size)) = (i16::try_from(at), loaded(&ty)) else {
                continue;
            };
            let pointee = self.pointee(Some(ty));
            to.push(Member {
                off,
                size,
                to: pointee,
            });
        }
    }
}

/// The size with which a member of this type is loaded.
fn loaded(ty: &Type<'_>) -> Option<Size> {
    let bytes = match ty.kind() {
        Kind::Ptr => 8,
        Kind::Int | Kind::Enum | Kind::Enum64 => ty.size()?,
        _ => return None,
    };
    let all = [Size::B, Size::H, Size::W, Size::Dw];
    all.into_iter()
        .find(|size| u32::from(size.bytes()) == bytes)
}
