//! A whole program: its functions, its types, its maps, the programs that it jumps to,
//! and something to run on.

use std::sync::Arc;

use super::body::Body;
use super::choices::Choices;
use super::code::Code;
use super::function::{STEPS, write};
use super::maps;
use super::options::Options;
use super::setting::{Function, Role, Setting};
use super::state::{Area, BUFFER, Holds, Place};
use crate::btf::{Builder, Encoding, FuncInfo, Linkage, Param};
use crate::program::{MapDef, Program, Subprogram};
use crate::spec::{ProgFlags, ProgType};
use crate::util::TypeId;

/// The types of programs that are made.
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

/// What was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// The program that is to run, and those that its prog array holds. They share
    /// their maps.
    pub programs: Vec<Arc<Program>>,
    /// What it is to run on: a packet for types that get one, else the context. As
    /// `data_in` of `BPF_PROG_TEST_RUN` or its `ctx_in`.
    pub input: Vec<u8>,
    /// How many results were forgotten because they depend on the machine.
    pub masked: usize,
}

/// The most functions beside the program itself.
const MOST_FUNCTIONS: usize = 5;
/// The most programs to jump to.
const MOST_TARGETS: usize = 2;
/// Bytes of packets: the kernel takes 14 at least.
const PACKETS: [usize; 8] = [64, 14, 15, 20, 34, 61, 100, 300];

/// Makes a program from a row of bytes; the same one from the same row.
pub fn make(choices: &mut Choices, options: Options) -> Made {
    let prog_type = match options.prog_type {
        Some(prog_type) => prog_type,
        None => choices.pick(TYPES),
    };
    let targets = choices.below(2 * MOST_TARGETS).saturating_sub(1);
    let names: Vec<String> = (0..=targets).map(|n| format!("made{n}")).collect();
    let others = names.get(1..).unwrap_or_default();
    let maps = maps::definitions(choices, others);
    let mut masked = 0;
    let mut types = Types::new();
    let mut programs = Vec::with_capacity(names.len());
    for name in &names {
        let mut setting = Setting::new(prog_type, options);
        let mut code = Code::default();
        setting.functions = functions(choices, &mut code, name);
        // Functions call those behind them only; nobody calls the others.
        let mut called = vec![0];
        for number in 0..setting.functions.len() {
            if called.contains(&number) {
                let body = Body::new(choices, &mut code, &setting, number, STEPS);
                let (more, calls) = write(body);
                masked += more;
                called.extend(calls);
            }
        }
        let called = |number| called.contains(&number);
        programs.push(program(&setting, code, &maps, &mut types, called));
    }
    let btf = types.builder.build().ok();
    for program in &mut programs {
        program.btf.clone_from(&btf);
    }
    let len = match Setting::new(prog_type, options) {
        setting if setting.packet.is_some() || setting.loads_packets() => choices.pick(&PACKETS),
        setting => setting.context_len,
    };
    let input = choices.contents(len);
    Made {
        programs: programs.into_iter().map(Arc::new).collect(),
        input,
        masked,
    }
}

/// The outside of a program's functions.
fn functions(choices: &mut Choices, code: &mut Code, program: &str) -> Vec<Function> {
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
            _ => Role::Element(choices.pick(&[maps::ARRAY, maps::HASH, maps::PER_CPU_ARRAY])),
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

/// What a static function may be given.
fn argument(choices: &mut Choices) -> Holds {
    match choices.below(6) {
        3 => Holds::Context,
        4 => Holds::Pointer(Area::new(Place::Stack, BUFFER)),
        5 => {
            let map = choices.pick(&maps::VALUES);
            Holds::Pointer(Area::new(Place::Value(map), maps::value_size(map)))
        }
        _ => Holds::Number,
    }
}

/// The types of the functions of all programs in one table, as the kernel asks for.
struct Types {
    builder: Builder,
    int: TypeId,
    long: TypeId,
}

impl Types {
    fn new() -> Self {
        let mut builder = Builder::new();
        let int = builder.int("int", 4, Encoding::Signed);
        let long = builder.int("unsigned long long", 8, Encoding::Unsigned);
        Self { builder, int, long }
    }

    /// A function that takes numbers and returns one. (Only of global ones does the
    /// kernel look at what they take.)
    fn function(&mut self, function: &Function, is_global: bool) -> TypeId {
        let count = match function.role {
            Role::Main => 0,
            _ => function.arguments.len(),
        };
        let names = ["a", "b", "c", "d", "e"].into_iter().take(count);
        let params: Vec<_> = names
            .map(|name| Param {
                name,
                ty: self.long,
            })
            .collect();
        let prototype = self.builder.prototype(self.int, &params);
        let linkage = if is_global {
            Linkage::Global
        } else {
            Linkage::Static
        };
        self.builder.function(&function.name, prototype, linkage)
    }
}

/// The program of this code, with the functions that are called.
fn program(
    setting: &Setting,
    code: Code,
    maps: &Arc<[MapDef]>,
    types: &mut Types,
    is_called: impl Fn(usize) -> bool,
) -> Program {
    let prog_type = setting.prog_type;
    let name = setting.functions[0].name.clone();
    let mut program = Program::new(name, prog_type, Vec::new());
    program.subprograms.clear();
    let functions = setting.functions.iter().enumerate();
    for (_, function) in functions.filter(|(number, _)| is_called(*number)) {
        let start = code.pc(function.label);
        let global = matches!(function.role, Role::Main | Role::Global);
        let ty = types.function(function, global);
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
    program.maps = maps.clone();
    if prog_type == ProgType::Syscall {
        program.flags = ProgFlags::SLEEPABLE;
    }
    program.insns = code.finish();
    program
}
