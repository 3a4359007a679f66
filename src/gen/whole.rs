//! A whole program: its functions, types and maps, the targets of its tail calls, and an
//! input.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::body::{Body, Steps};
use super::choices::Choices;
use super::code::Code;
use super::function::{OBJECTS, STEPS, TAIL_CALLS, write};
use super::kernel::Hook;
use super::maps;
use super::options::Options;
use super::setting::{Function, Role, Setting};
use super::state::{Area, BUFFER, Holds, MemoryKind};
use crate::btf::{Btf, Builder, Encoding, FuncInfo, Kind, Linkage, Member, Param};
use crate::program::{MapDef, Program, Subprogram};
use crate::spec::{ProgFlags, ProgType};
use crate::util::TypeId;

/// The types of generated programs.
pub const TYPES: &[ProgType] = &[
    ProgType::Xdp,
    ProgType::SchedCls,
    ProgType::SocketFilter,
    ProgType::Syscall,
    ProgType::CgroupSkb,
    ProgType::RawTracepoint,
    ProgType::Kprobe,
    ProgType::Tracepoint,
    ProgType::PerfEvent,
];

/// A generated program.
#[derive(Debug, Clone)]
pub struct Made {
    /// The program to run.
    pub program: Arc<Program>,
    /// The programs in its prog array. All share their maps.
    pub others: Vec<Arc<Program>>,
    /// The input: a packet for types that get one, else the context, as `data_in` or
    /// `ctx_in` of `BPF_PROG_TEST_RUN`.
    pub input: Vec<u8>,
    /// How many machine-dependent results were dropped.
    pub masked: usize,
}

/// The most functions besides the main function.
const MOST_FUNCTIONS: usize = 5;
/// The most targets of tail calls.
const MOST_TARGETS: usize = 2;
/// Packet lengths: the kernel requires at least 14 bytes.
const PACKETS: [usize; 8] = [64, 14, 15, 20, 34, 61, 100, 300];

/// Generates a program from a sequence of bytes; the same bytes give the same program.
pub fn make(choices: &mut Choices, options: Options) -> Made {
    let mut types = Types::new(options.kernel.is_some());
    let made = make_with(choices, options, &mut types);
    typed(made, types.builder.build().ok())
}

/// Generates a program from each sequence of bytes, the same ones as [`make`]. All have the
/// same BTF, so that they can be loaded as if they came from one object.
pub fn make_all<'a>(
    rows: impl IntoIterator<Item = &'a mut Choices>,
    options: Options,
) -> Vec<Made> {
    let mut types = Types::new(options.kernel.is_some());
    let rows = rows.into_iter();
    let made: Vec<_> = rows
        .map(|choices| make_with(choices, options, &mut types))
        .collect();
    let btf = types.builder.build().ok();
    made.into_iter()
        .map(|made| typed(made, btf.clone()))
        .collect()
}

/// Generates a program without its BTF.
fn make_with<'a>(choices: &mut Choices, options: Options<'a>, types: &'a mut Types) -> Made {
    let hooks = options.kernel.map_or(&[][..], |kernel| &kernel.hooks[..]);
    let struct_ops = options.prog_type == Some(ProgType::StructOps);
    let wanted = hooks.iter();
    let wanted = wanted.filter(|hook| struct_ops == (hook.prog_type == ProgType::StructOps));
    let wanted: Vec<&Hook> = wanted.collect();
    let wants_hook = struct_ops || options.prog_type.is_none() && choices.chance(40);
    let hook = choices.any(&wanted).filter(|_| wants_hook);
    let sleeps = hook.is_some_and(|hook| hook.may_sleep) && choices.chance(25);
    let prog_type = match (hook, options.prog_type) {
        (Some(hook), _) => hook.prog_type,
        (None, Some(prog_type)) => prog_type,
        (None, None) => choices.pick(TYPES),
    };
    let targets = choices.below(2 * MOST_TARGETS).saturating_sub(1);
    let names: Vec<String> = (1..=targets).map(|n| format!("made{n}")).collect();
    let first = options.tail_calls.then(|| "made0".to_owned());
    let jumps: Vec<String> = names.iter().cloned().chain(first).collect();
    let mut maker = Maker {
        prog_type,
        options,
        hook,
        sleeps,
        maps: maps::definitions(choices, &jumps, options.kernel.is_some()),
        types,
        masked: 0,
    };
    let program = maker.program(choices, "made0");
    let others: Vec<_> = names
        .iter()
        .map(|name| Arc::new(maker.program(choices, name)))
        .collect();
    let setting = Setting::new(prog_type, options, hook, sleeps);
    let len = if setting.context.packet.is_some() || setting.loads_packets() {
        choices.pick(&PACKETS)
    } else {
        setting.context.len
    };
    Made {
        program: Arc::new(program),
        others,
        input: choices.contents(len),
        masked: maker.masked,
    }
}

/// The same with its BTF.
fn typed(mut made: Made, btf: Option<Btf>) -> Made {
    let mut maps = made.program.maps.to_vec();
    if let (Some(btf), Some(def)) = (&btf, maps.get_mut(maps::KPTRS as usize)) {
        let id = |name, kind| btf.find(name, kind).map(|ty| ty.id());
        def.key_type = id("int", Kind::Int);
        def.value_type = id(maps::KPTR_VALUE, Kind::Struct);
        def.special = def.special_fields(btf).unwrap_or_default();
    }
    let maps: Arc<[MapDef]> = maps.into();
    for program in [&mut made.program].into_iter().chain(&mut made.others) {
        let program = Arc::make_mut(program);
        program.btf.clone_from(&btf);
        program.maps = maps.clone();
    }
    made
}

/// The common state of programs that are generated together.
struct Maker<'a> {
    prog_type: ProgType,
    options: Options<'a>,
    hook: Option<&'a Hook>,
    sleeps: bool,
    maps: Arc<[MapDef]>,
    types: &'a mut Types,
    masked: usize,
}

impl Maker<'_> {
    /// Generates a program with the functions that it calls, without its BTF.
    fn program(&mut self, choices: &mut Choices, name: &str) -> Program {
        let mut setting = Setting::new(self.prog_type, self.options, self.hook, self.sleeps);
        let mut code = Code::default();
        setting.functions = match self.options.tail_calls {
            true => relays(choices, &setting, &mut code, name),
            false => functions(choices, self.options, &mut code, name),
        };
        let steps = Steps {
            plain: match self.options.tail_calls {
                true => TAIL_CALLS,
                false => STEPS,
            },
            objects: match self.options.kernel {
                Some(_) => OBJECTS,
                None => &[],
            },
        };
        // Functions call only later ones; those never called are omitted.
        let mut called = vec![0];
        for number in 0..setting.functions.len() {
            if called.contains(&number) {
                let body = Body::new(choices, &mut code, &setting, number, steps);
                let (masked, calls) = write(body);
                self.masked += masked;
                called.extend(calls);
            }
        }
        let mut program = Program::new(name, self.prog_type, Vec::new());
        program.subprograms.clear();
        for (number, function) in setting.functions.iter().enumerate() {
            if !called.contains(&number) {
                continue;
            }
            let start = code.pc(function.label);
            let global = matches!(function.role, Role::Main | Role::Global);
            let ty = self
                .types
                .function(function, global, setting.context_name());
            let insn_off = start.0;
            program.func_info.push(FuncInfo { insn_off, ty });
            program.subprograms.push(Subprogram {
                name: function.name.clone(),
                start,
                type_id: Some(ty),
                global,
            });
        }
        program.license = "GPL".into();
        program.kernel_btf = self.options.kernel.map(|kernel| kernel.btf.clone());
        if let Some(hook) = self.hook {
            program.expected_attach_type = hook.attach_type;
            program.attach_target = hook.id.map(|_| hook.target.clone());
            program.attach_btf_id = hook.id;
        }
        program.maps = self.maps.clone();
        if setting.sleeps {
            program.flags = ProgFlags::SLEEPABLE;
        }
        program.insns = code.finish();
        program
    }
}

/// The interfaces of a program's functions.
fn functions(
    choices: &mut Choices,
    options: Options,
    code: &mut Code,
    program: &str,
) -> Vec<Function> {
    let walks_hashes = !options.recorded || choices.chance(5);
    let hash = if walks_hashes {
        maps::HASH
    } else {
        maps::ARRAY
    };
    let mut functions = vec![Function {
        name: program.to_owned(),
        role: Role::Main,
        arguments: vec![Holds::Context],
        label: code.label(),
    }];
    for number in 0..choices.below(MOST_FUNCTIONS + 1) {
        let role = match choices.below(5) {
            0 | 1 => Role::Static,
            2 => Role::Global,
            3 => Role::Loop,
            _ => Role::Element(choices.pick(&[maps::ARRAY, hash, maps::PER_CPU_ARRAY])),
        };
        let arguments = match role {
            Role::Static => (0..choices.below(5)).map(|_| argument(choices)).collect(),
            Role::Global => vec![Holds::Number; choices.below(5)],
            callback => Function::callback_arguments(callback),
        };
        functions.push(Function {
            name: format!("{program}_f{number}"),
            role,
            arguments,
            label: code.label(),
        });
    }
    functions
}

/// The interfaces of the functions of a program that tests tail calls: all get the context,
/// which a tail call passes on.
fn relays(
    choices: &mut Choices,
    setting: &Setting<'_>,
    code: &mut Code,
    program: &str,
) -> Vec<Function> {
    let main = Function {
        name: program.to_owned(),
        role: Role::Main,
        arguments: vec![Holds::Context],
        label: code.label(),
    };
    let count = 1 + choices.below(MOST_FUNCTIONS);
    let others = (0..count).map(|number| {
        let is_global = setting.context_name().is_some() && choices.chance(50);
        let numbers = vec![Holds::Number; choices.below(4)];
        Function {
            name: format!("{program}_f{number}"),
            role: if is_global {
                Role::Global
            } else {
                Role::Static
            },
            arguments: [vec![Holds::Context], numbers].concat(),
            label: code.label(),
        }
    });
    std::iter::once(main).chain(others).collect()
}

/// A possible argument of a static function.
fn argument(choices: &mut Choices) -> Holds {
    match choices.below(6) {
        3 => Holds::Context,
        4 => Holds::Pointer(Area::new(MemoryKind::Stack, BUFFER)),
        5 => {
            let map = choices.pick(&maps::VALUES);
            Holds::Pointer(Area::new(MemoryKind::Value(map), maps::value_size(map)))
        }
        _ => Holds::Number,
    }
}

/// The types of the functions of all programs in one table, as the kernel requires.
struct Types {
    builder: Builder,
    int: TypeId,
    long: TypeId,
    /// Pointers to contexts, by the name of the structure.
    contexts: BTreeMap<&'static str, TypeId>,
}

impl Types {
    fn new(has_kernel: bool) -> Self {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let long = builder.int("unsigned long long", 8, Encoding::Unsigned);
        if has_kernel {
            let object = builder.forward(maps::KPTR_OBJECT, false);
            let tagged = builder.type_tag("kptr", object, false);
            let ty = builder.ptr(tagged);
            let member = Member {
                name: maps::KPTR_MEMBER,
                ty,
                bit_offset: 0,
                bitfield: None,
            };
            builder.structure(maps::KPTR_VALUE, 8, &[member]);
        }
        Self {
            builder,
            int,
            long,
            contexts: BTreeMap::new(),
        }
    }

    /// A function that takes numbers, and the context under the kernel's name, and returns
    /// a number. (The kernel checks parameters of global functions only.)
    fn function(
        &mut self,
        function: &Function,
        is_global: bool,
        context: Option<&'static str>,
    ) -> TypeId {
        let arguments = match function.role {
            Role::Main => &[][..],
            _ => &function.arguments,
        };
        let names = ["a", "b", "c", "d", "e"].into_iter();
        let mut params = Vec::new();
        for (name, holds) in names.zip(arguments) {
            let ty = match (holds, context) {
                (Holds::Context, Some(context)) => self.context(context),
                _ => self.long,
            };
            params.push(Param { name, ty });
        }
        let prototype = self.builder.prototype(self.int, &params);
        let linkage = if is_global {
            Linkage::Global
        } else {
            Linkage::Static
        };
        self.builder.function(&function.name, prototype, linkage)
    }

    /// A pointer to the structure of this name, without members.
    fn context(&mut self, name: &'static str) -> TypeId {
        let builder = &mut self.builder;
        *self.contexts.entry(name).or_insert_with(|| {
            let of = builder.structure(name, 0, &[]);
            builder.ptr(of)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_the_same_alone_and_together() {
        let options = Options::recorded(ProgType::Tracepoint);
        let row = |seed| Choices::seeded(seed, 400);
        let together = make_all(&mut [row(1), row(2), row(3)], options);
        let alone = make(&mut row(3), options);
        assert_eq!(together[2].program.insns, alone.program.insns);
        assert_eq!(together[2].program.maps, alone.program.maps);
        let btf = |made: &Made| made.program.btf.as_ref().unwrap().to_bytes();
        assert_eq!(btf(&together[0]), btf(&together[2]));
        assert!(btf(&alone).len() < btf(&together[0]).len());
    }
}
