//! Kfuncs: kernel functions that programs may call, with C declarations, flags, and the
//! programs that each is registered for.
//!
//! All facts are in one table (`for_each_kfunc`). This module expands the columns with
//! declarations and rules, the virtual machine the column with implementations. A program
//! refers to a kfunc by its number in the kernel's BTF, which differs between kernel
//! builds; the name is stable.

mod argument;
mod flags;
mod parameter;
mod sets;
mod table;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::call::{ArgSpec, CallSpec, Callers, Effects, Precondition, ResultKind, ResultSpec};
use super::helpers::Caller;
use super::replay::{CallReplayRule, column};
pub use flags::KfuncFlags;
pub use parameter::{KfuncResult, Parameter, ParameterKind};
pub use sets::{Filter, Hooks, Set};
pub(crate) use table::for_each_kfunc;

/// The kfunc that ends all functions of a program.
pub const THROW: &str = "bpf_throw";
/// Prefix of the BTF declaration tag of a main function that names its exception callback
/// (`__exception_cb(name)`, `bpf_find_exception_callback_insn_off`).
pub const EXCEPTION_CALLBACK: &str = "exception_callback:";

/// A kfunc.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Kfunc {
    /// Its name.
    pub name: &'static str,
    /// The C type of the result, with a trailing space or star before the name: `"void *"`.
    pub c_result: &'static str,
    /// The parameters in C, without parentheses.
    pub c_parameters: &'static str,
    /// The result, in `r0`.
    pub result: KfuncResult,
    /// The parameters, in `r1` and following.
    ///
    /// ```
    /// use bpflab::spec::kfuncs::{self, ParameterKind};
    ///
    /// let populate = kfuncs::by_name("bpf_cpumask_populate").unwrap().row();
    /// let kinds: Vec<_> = populate.parameters.iter().map(|parameter| parameter.kind).collect();
    /// let (object, memory) = (ParameterKind::Object, ParameterKind::Memory);
    /// assert_eq!(kinds, [object, memory, ParameterKind::Size]);
    /// ```
    pub parameters: &'static [Parameter],
    /// What a call demands of the arguments.
    pub arguments: &'static [ArgSpec],
    /// Its registration flags.
    pub flags: KfuncFlags,
    /// Effects of a call.
    pub effects: Effects,
    /// How a recording treats a call.
    pub replay: CallReplayRule,
    /// The set that it is registered with.
    pub set: Set,
}

impl Kfunc {
    /// The declaration in C, without a semicolon:
    /// `struct task_struct *bpf_task_from_pid(s32 pid)`.
    #[must_use]
    pub fn declaration(&self) -> String {
        format!("{}{}({})", self.c_result, self.name, self.c_parameters)
    }

    /// Whether a program may call it.
    #[must_use]
    pub fn allows(&self, caller: &Caller<'_>) -> bool {
        self.set.covers(caller)
    }

    /// A call.
    #[must_use]
    pub fn call(&self) -> CallSpec {
        let all = || {
            self.arguments
                .iter()
                .flat_map(|argument| argument.preconditions)
        };
        let iterator = all().find_map(|one| match one {
            Precondition::Iterator(kind) => *kind,
            _ => None,
        });
        CallSpec {
            name: self.name,
            arguments: self.arguments,
            result: ResultSpec {
                kind: self.result_kind(),
                nullable: self.flags.contains(KfuncFlags::RET_NULL),
            },
            effects: self.effects,
            iterator: iterator.zip(self.flags.iterator_step()),
            callers: Callers::Set(self.set),
            replay: self.replay,
        }
    }

    fn result_kind(&self) -> ResultKind {
        let is_buffer = |argument: &ArgSpec| {
            argument.demands(Precondition::ResultSize)
                || argument.is_size() && argument.demands(Precondition::Constant)
        };
        match self.result {
            KfuncResult::Void => ResultKind::Nothing,
            KfuncResult::Signed => ResultKind::Signed,
            KfuncResult::Unsigned => ResultKind::Unsigned,
            KfuncResult::Pointer("void") if self.arguments.iter().any(is_buffer) => {
                ResultKind::Memory
            }
            // Structures belong to the kernel, numbers to the program.
            KfuncResult::Pointer(base) if base.starts_with("struct ") || base == "void" => {
                ResultKind::Kernel
            }
            KfuncResult::Pointer(_) => ResultKind::Memory,
        }
    }

    /// Whether kernels are commonly built without it.
    #[must_use]
    pub const fn is_optional(&self) -> bool {
        self.set.config.is_some()
    }
}

/// A kfunc, by its index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KfuncId(u16);

impl KfuncId {
    /// Its row of the table.
    #[must_use]
    pub fn row(self) -> &'static Kfunc {
        // Ids are only created from valid indices.
        &KFUNCS[self.index()]
    }

    /// Its index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// All kfuncs, in the order of the table.
#[must_use]
pub fn kfuncs() -> &'static [Kfunc] {
    &KFUNCS
}

/// The kfunc of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<KfuncId> {
    static BY_NAME: LazyLock<FxHashMap<&'static str, KfuncId>> = LazyLock::new(|| {
        let names = KFUNCS.iter().map(|kfunc| kfunc.name);
        names.zip((0..).map(KfuncId)).collect()
    });
    BY_NAME.get(name).copied()
}

/// A row as it is written; C text is parsed once, for [`KFUNCS`].
struct Row {
    name: &'static str,
    c_result: &'static str,
    c_parameters: &'static str,
    flags: KfuncFlags,
    effects: Effects,
    set: Set,
    replay: CallReplayRule,
}

static KFUNCS: LazyLock<Vec<Kfunc>> = LazyLock::new(|| {
    let rows = ROWS.iter().map(|row| {
        let parameters = parameter::parse(row.c_parameters).leak();
        Kfunc {
            name: row.name,
            c_result: row.c_result,
            c_parameters: row.c_parameters,
            result: KfuncResult::parse(row.c_result),
            parameters,
            arguments: argument::arguments(parameters, row.flags).leak(),
            flags: row.flags,
            effects: row.effects | row.flags.effects(),
            replay: row.replay,
            set: row.set,
        }
    });
    rows.collect()
});

macro_rules! or_skip {
    () => {
        column::SKIP
    };
    ($replay:ident) => {
        column::$replay
    };
}

macro_rules! define {
    ($(for $set:ident {$(
        $name:ident = $($body:ident)::+, $returns:literal $parameters:literal [$($flag:ident)*]
        $(does $effect:ident)? $(as $replay:ident)?;
    )*})*) => {
        /// Number of kfuncs in the table.
        pub(crate) const COUNT: usize = [$($(stringify!($name)),*),*].len();

        static ROWS: [Row; COUNT] = [$($(Row {
            name: stringify!($name),
            c_result: $returns,
            c_parameters: $parameters,
            flags: KfuncFlags::empty()$(.union(KfuncFlags::$flag))*,
            effects: Effects::empty()$(.union(Effects::$effect))?,
            set: sets::$set,
            replay: or_skip!($($replay)?),
        }),*),*];
    };
}

for_each_kfunc!(define);

#[cfg(test)]
mod tests;
