//! What generated programs use of a kernel: its functions and structures, as its BTF has them.

use std::collections::BTreeMap;

use crate::btf::{Btf, Kind, Type};
use crate::isa::Size;
use crate::spec::call::IteratorStep;
use crate::spec::kfuncs::{self, KfuncFlags, KfuncResult, ParameterKind};
use crate::spec::{AttachType, ProgType};
use crate::util::TypeId;

/// The most structures, and how deep structures in structures are entered.
const MOST: usize = 400;
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
    /// The bits of r0 that its result has, if it is narrower than four bytes: the others are what
    /// the kernel's code left there.
    pub narrow: Option<i32>,
}

/// See [`Kfunc::narrow`].
fn narrow_result(function: Type<'_>) -> Option<i32> {
    let btf = function.btf();
    let prototype = btf.resolve(function.target_id()?).ok()?;
    let result = btf.resolve(prototype.target_id()?).ok()?;
    match result.size()? {
        1 if result.name() == "_Bool" => Some(1),
        1 => Some(0xff),
        2 => Some(0xffff),
        _ => None,
    }
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

/// An attach point.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub prog_type: ProgType,
    /// `None` for a member of a structure of operations.
    pub attach_type: Option<AttachType>,
    /// `sched_switch`, `tcp_congestion_ops.ssthresh`; empty without an id.
    pub target: String,
    /// The function, the tracepoint's type, or the structure of operations; `None` if the program
    /// type has a single attach point.
    pub id: Option<TypeId>,
    /// Each is eight bytes of the context.
    pub arguments: Vec<Argument>,
    /// What its programs may write, besides what all may.
    pub writable: Vec<(StructIndex, Member)>,
    pub may_sleep: bool,
    /// Whether its programs return a pointer.
    pub returns_pointer: bool,
}

/// An argument of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    pub at: Member,
    /// Whether a pointer may be null.
    pub nullable: bool,
    /// Whether the program has to release it.
    pub is_reference: bool,
}

impl Hook {
    /// The structure of operations, if it is a member of one, and the member.
    pub(super) fn member(&self) -> Option<(&str, &str)> {
        self.target.split_once('.')
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
                    narrow: narrow_result(found),
                });
            }
        }
        types.iterators = types.find_iterators();
        types.hooks = types.find_hooks();
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

    /// The structure that this type points to.
    pub(super) fn pointee(&mut self, ty: Option<Type<'_>>) -> Option<StructIndex> {
        let ty = ty.filter(|ty| ty.kind() == Kind::Ptr)?;
        let btf = self.btf.clone();
        let to = btf.resolve(ty.target_id()?).ok()?;
        (to.kind() == Kind::Struct).then(|| self.index(to.id()))?
    }

    pub(super) fn named(&mut self, base: &str) -> Option<StructIndex> {
        let found = self.btf.find(base.strip_prefix("struct ")?, Kind::Struct)?;
        self.index(found.id())
    }

    /// The index of a structure, which is added if there is room.
    pub(super) fn index(&mut self, id: TypeId) -> Option<StructIndex> {
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
