//! Calls of every helper with good and bad arguments, judged by us and by the running
//! kernel: the verdict, the error number, the error line and the number of processed
//! instructions have to be the same.
//!
//! Each prototype of each helper is tested with a program type that has it. Each argument
//! in turn takes every value in [`ACTORS`], while the others are valid.
//!
//! `BPFLAB_SHOW=1` lists every difference, the most frequent first.

#![cfg(all(feature = "kernel", target_os = "linux"))]

use crate::shared::{here, sample};

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::btf::{Btf, Kind};
use bpflab::isa::{RawInsn, assemble};
use bpflab::kernel::{LoadOptions, LoadedMaps, load, running_config};
use bpflab::object::Target;
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::helpers::{Arg, ArgKind, Caller, Detail, Helper, Prototype, helpers};
use bpflab::spec::{
    AttachRule, AttachType, MapFlags, MapType, PacketAccess, ProgFlags, ProgType, Traits,
};
use bpflab::util::{HelperId, MapId, TypeId};
use bpflab::verifier::{Options, verify};

/// The maps of every program; the first has a type that the helper takes.
const FITTING: MapId = MapId(0);
const ARRAY: MapId = MapId(1);
const HASH: MapId = MapId(2);
const TEXT: MapId = MapId(3);
const RING: MapId = MapId(4);
const READ_ONLY: MapId = MapId(5);

/// A value of a register, as instructions that load it into `r0`. `r6` is the context, `r7`
/// any number, `r8` a number below 32; the stack below `fp-128` is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    /// Assembly.
    Code(&'static str),
    /// The address of a map.
    Map(MapId),
    /// A value of a map: looked up with a constant key, maybe null, or by its address.
    Found(MapId, Null),
    Value(MapId, i32),
    /// Packet bytes, with or without a check of the end.
    Packet(&'static str),
    /// A record of a ring buffer.
    Record(Null),
    /// A socket.
    Socket(Null),
    /// A task, and the kernel's struct of a socket.
    Task,
    TcpSock(Null),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Null {
    Checked,
    Maybe,
}

/// The values tried for an argument.
const ACTORS: &[Actor] = &[
    Actor::Code("r0 = r6"),
    Actor::Code("r0 = r6\nr0 += 8"),
    Actor::Code("r0 = r6\nr0 += r8"),
    Actor::Code("r0 = 0"),
    Actor::Code("r0 = 1"),
    Actor::Code("r0 = 8"),
    Actor::Code("r0 = 24"),
    Actor::Code("r0 = 4096"),
    Actor::Code("r0 = -8"),
    Actor::Code("r0 = 0x30000000"),
    Actor::Code("r0 = r7"),
    Actor::Code("r0 = r8"),
    Actor::Code("r0 = r8\nr0 += 1"),
    Actor::Code("r0 = r8\nr0 += -4"),
    Actor::Code("r0 = r7\nw0 &= 0x3fffffff"),
    Actor::Code("r0 = r10"),
    Actor::Code("r0 = r10\nr0 += -4"),
    Actor::Code("r0 = r10\nr0 += -64"),
    Actor::Code("r0 = r10\nr0 += -61"),
    Actor::Code("r0 = r10\nr0 += -512"),
    Actor::Code("r0 = r10\nr0 += -516"),
    Actor::Code("r0 = r10\nr0 += 8"),
    Actor::Code("r0 = r10\nr0 += -64\nr0 += r8"),
    Actor::Code("r0 = r10\nr0 += -16\nr0 += r8"),
    Actor::Map(FITTING),
    Actor::Map(ARRAY),
    Actor::Map(HASH),
    Actor::Map(READ_ONLY),
    Actor::Found(ARRAY, Null::Checked),
    Actor::Found(HASH, Null::Checked),
    Actor::Found(HASH, Null::Maybe),
    Actor::Value(ARRAY, 0),
    Actor::Value(ARRAY, 40),
    Actor::Value(TEXT, 0),
    Actor::Value(TEXT, 32),
    Actor::Value(READ_ONLY, 0),
    Actor::Packet("r0 = r2"),
    Actor::Packet("r0 = r2\nr0 += 40"),
    Actor::Packet("r0 = r2\nr0 += r8"),
    Actor::Packet("r0 = r3"),
    Actor::Record(Null::Checked),
    Actor::Record(Null::Maybe),
    Actor::Socket(Null::Checked),
    Actor::Socket(Null::Maybe),
    Actor::Task,
    Actor::TcpSock(Null::Checked),
    Actor::TcpSock(Null::Maybe),
];

/// A valid value for an argument.
fn good(arg: &Arg, at: usize, prototype: &Prototype) -> Actor {
    let scalar = |n| match n {
        0 => Actor::Code("r0 = 0"),
        4 => Actor::Code("r0 = 4"),
        _ => Actor::Code("r0 = 24"),
    };
    match arg.kind {
        ArgKind::ConstMapPtr => Actor::Map(FITTING),
        ArgKind::PtrToCtx => Actor::Code("r0 = r6"),
        ArgKind::PtrToMapKey => Actor::Code("r0 = r10\nr0 += -64"),
        ArgKind::PtrToMapValue | ArgKind::PtrToStack => Actor::Code("r0 = r10\nr0 += -64"),
        ArgKind::PtrToMem if matches!(arg.detail, Detail::Size(_)) => {
            Actor::Code("r0 = r10\nr0 += -64")
        }
        // Two regions that don't overlap.
        ArgKind::PtrToMem if at > 1 => Actor::Code("r0 = r10\nr0 += -32"),
        ArgKind::PtrToMem => Actor::Code("r0 = r10\nr0 += -64"),
        ArgKind::ConstSize | ArgKind::ConstSizeOrZero | ArgKind::ConstAllocSizeOrZero => scalar(24),
        ArgKind::PtrToSockCommon | ArgKind::PtrToSocket | ArgKind::PtrToBtfIdSockCommon => {
            Actor::Socket(Null::Checked)
        }
        ArgKind::PtrToRingbufMem => Actor::Record(Null::Checked),
        ArgKind::PtrToConstStr => Actor::Value(TEXT, 0),
        ArgKind::PtrToBtfId => Actor::Task,
        _ if prototype.args.len() > 4 => scalar(4),
        _ => scalar(0),
    }
}

/// The two slots that load a map's address.
fn address(pseudo: u8, dst: u8, map: MapId, off: i32) -> Vec<RawInsn> {
    let id = i32::try_from(map.0).unwrap();
    vec![
        RawInsn::new(0x18, dst, pseudo, 0, id),
        RawInsn::new(0, 0, 0, 0, off),
    ]
}

fn asm(text: &str) -> Vec<RawInsn> {
    assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks `r0` for null if `null` says so, and returns early if it is.
fn checked(insns: &mut Vec<RawInsn>, null: Null) {
    if null == Null::Checked {
        insns.extend(asm("if r0 != 0 goto +2\nr0 = 1\nexit"));
    }
}

impl Actor {
    /// The instructions; `None` if the program's type can't produce the value.
    fn code(self, caller: &Caller<'_>) -> Option<Vec<RawInsn>> {
        let mut insns = Vec::new();
        match self {
            Self::Code(text) => insns = asm(text),
            Self::Map(map) => insns = address(5, 0, map, 0),
            Self::Value(map, off) => insns = address(6, 0, map, off),
            Self::Found(map, null) => {
                insns.extend(asm("*(u64 *)(r10 -136) = 1\nr2 = r10\nr2 += -136"));
                insns.extend(address(5, 1, map, 0));
                insns.extend(asm("call 1"));
                checked(&mut insns, null);
            }
            Self::Packet(text) => {
                let (data, end) = match caller.prog_type {
                    ProgType::Xdp => (0, 4),
                    ProgType::SchedCls | ProgType::SkSkb | ProgType::LwtXmit => (76, 80),
                    _ => return None,
                };
                insns.extend(asm(&format!(
                    "r2 = *(u32 *)(r6 +{data})\nr3 = *(u32 *)(r6 +{end})\nr4 = r2\nr4 += 48\n\
                     if r4 <= r3 goto +2\nr0 = 1\nexit\n{text}"
                )));
            }
            Self::Record(null) => {
                can_call(131, caller)?;
                insns.extend(address(5, 1, RING, 0));
                insns.extend(asm("r2 = 24\nr3 = 0\ncall 131"));
                checked(&mut insns, null);
            }
            Self::Socket(null) => {
                can_call(84, caller)?;
                insns.extend(asm(
                    "*(u64 *)(r10 -192) = 0\n*(u32 *)(r10 -184) = 0\nr1 = r6\nr2 = r10\n\
                     r2 += -192\nr3 = 12\nr4 = -1\nr5 = 0\ncall 84",
                ));
                checked(&mut insns, null);
            }
            Self::Task => {
                can_call(158, caller)?;
                insns.extend(asm("call 158"));
            }
            Self::TcpSock(null) => {
                can_call(137, caller)?;
                insns.extend(Self::Socket(Null::Checked).code(caller)?);
                insns.extend(asm("r9 = r0\nr1 = r0\ncall 137"));
                if null == Null::Checked {
                    // The reference must be released on the null branch, too.
                    insns.extend(asm("if r0 != 0 goto +4\nr1 = r9\ncall 86\nr0 = 1\nexit"));
                }
            }
        }
        Some(insns)
    }
}

fn can_call(number: u32, caller: &Caller<'_>) -> Option<()> {
    bpflab::spec::helpers::helper(HelperId(number))?.prototype(caller)?;
    Some(())
}

/// Uses of the result of a valid call.
const USES: [&str; 9] = [
    "r9 = r0",
    "r1 = *(u64 *)(r0 +0)",
    "if r0 == 0 goto +1\nr1 = *(u64 *)(r0 +0)",
    "if r0 == 0 goto +1\nr1 = *(u32 *)(r0 +8)",
    "if r0 == 0 goto +1\n*(u32 *)(r0 +16) = 1",
    "if r0 == 0 goto +1\nr1 = *(u8 *)(r0 +47)",
    "if r0 == 0 goto +2\nr1 = 7\n*(u64 *)(r0 +44) = r1",
    "if r0 == 0 goto +2\nr1 = r0\ncall 86",
    "if r0 == 0 goto +3\nr1 = r0\nr2 = 0\ncall 132",
];

/// A call of the helper with these arguments, followed by `then`, which uses the result.
fn body(
    helper: &Helper,
    actors: &[Actor],
    then: &str,
    caller: &Caller<'_>,
) -> Option<Vec<RawInsn>> {
    let mut insns = asm(
        "r6 = r1\n*(u64 *)(r10 -64) = 1\n*(u64 *)(r10 -56) = 0\n*(u64 *)(r10 -8) = r6\ncall 7\nr7 = r0\nr8 = r0\nr8 &= 31",
    );
    for (at, actor) in actors.iter().enumerate() {
        insns.extend(actor.code(caller)?);
        insns.extend(asm(&format!("*(u64 *)(r10 -{}) = r0", 256 + 8 * at)));
    }
    for at in 0..actors.len() {
        insns.extend(asm(&format!(
            "r{} = *(u64 *)(r10 -{})",
            at + 1,
            256 + 8 * at
        )));
    }
    insns.push(RawInsn::new(0x85, 0, 0, 0, helper.id.0.cast_signed()));
    if helper.returns.trim() != "void" {
        insns.extend(asm(then));
    }
    insns.extend(asm("r0 = 0\nexit"));
    Some(insns)
}

/// A small map of this type; `None` for types that need more than sizes.
fn map_of(kind: MapType, flags: MapFlags) -> Option<MapDef> {
    let info = kind.info();
    let wants_types = matches!(
        kind,
        MapType::StructOps
            | MapType::Arena
            | MapType::SkStorage
            | MapType::InodeStorage
            | MapType::TaskStorage
            | MapType::CgrpStorage
    );
    if wants_types || !info.flags.contains(flags) {
        return None;
    }
    let size = |allows: &dyn Fn(u32) -> bool, sizes: &[u32]| {
        let found = sizes.iter().copied().find(|size| allows(*size));
        found.unwrap_or(0)
    };
    let key = size(&|size| info.key.allows(size), &[4, 0, 8]);
    let value = size(&|size| info.value.allows(size), &[48, 4, 0, 8]);
    let entries = size(&|count| info.entries.allows(count, 4096), &[4, 4096, 0]);
    let inner = MapDef::new("inner", MapType::Array, 4, 48, 1);
    let fitting = MapDef::new("fitting", kind, key, value, entries)
        .with_flags(info.flags_needed | flags)
        .with_inner(kind.holds_maps().then(|| Box::new(inner)));
    Some(fitting)
}

/// The maps to try a helper with; the first has a type that it takes.
fn fitting(helper: &Helper, caller: &Caller<'_>) -> Vec<MapDef> {
    let none = MapFlags::empty();
    let mut all: Vec<_> = [none, MapFlags::RDONLY_PROG, MapFlags::WRONLY_PROG]
        .into_iter()
        .flat_map(|flags| {
            MapType::ALL
                .iter()
                .filter_map(move |kind| map_of(*kind, flags))
        })
        .collect();
    let fits = |map: &MapDef| map.map_type.passes_to(helper.id, caller).is_ok();
    all.sort_by_key(|map| (!fits(map), map.flags.intersects(MapFlags::ACCESS)));
    all
}

/// A map, and the others that arguments use.
fn maps(first: MapDef) -> Arc<[MapDef]> {
    let text = MapDef::new("text", MapType::Array, 4, 48, 1)
        .with_flags(MapFlags::RDONLY_PROG)
        .with_frozen(true)
        .with_initial([Initial::Bytes {
            key: vec![0; 4],
            value: Arc::from(&b"%d %s\0%q\0......................%d.....no end......"[..48]),
        }]);
    let read_only =
        MapDef::new("read_only", MapType::Array, 4, 48, 1).with_flags(MapFlags::RDONLY_PROG);
    Arc::new([
        first,
        MapDef::new("array", MapType::Array, 4, 48, 1),
        MapDef::new("hash", MapType::Hash, 4, 48, 8),
        text,
        MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
        read_only,
    ])
}

/// The program types to try, those with packets first, with their attach targets.
fn callers(btf: &Btf) -> Vec<(Caller<'static>, Option<TypeId>)> {
    let mut all = Vec::new();
    for prog_type in ProgType::ALL {
        let mut caller = Caller::of(*prog_type);
        let of_btf = prog_type.info().traits.contains(Traits::ATTACH_BTF);
        if of_btf || *prog_type == ProgType::LircMode2 {
            continue;
        }
        if let AttachRule::OneOf(list) = prog_type.info().attach {
            for at in list {
                caller.attach_type = Some(*at);
                all.push((caller, None));
            }
        } else {
            all.push((caller, None));
        }
    }
    let multi = Caller::of(ProgType::Kprobe).with_attach_type(AttachType::TraceKprobeMulti);
    all.push((multi, None));
    all.sort_by_key(|(caller, _)| {
        let packet = caller.prog_type.info().packet != PacketAccess::Write;
        (caller.prog_type != ProgType::SchedCls, packet)
    });
    let hooks = [
        (ProgType::Tracing, AttachType::TraceFentry, "", "vfs_read"),
        (
            ProgType::Tracing,
            AttachType::TraceIter,
            "bpf_iter_",
            "task",
        ),
        (ProgType::Lsm, AttachType::LsmMac, "bpf_lsm_", "file_open"),
    ];
    for (prog_type, attach_type, prefix, target) in hooks {
        let hook = btf.find(&format!("{prefix}{target}"), Kind::Func);
        let caller = Caller::of(prog_type)
            .with_attach_type(attach_type)
            .with_target(target);
        all.push((caller, hook.map(|hook| hook.id())));
    }
    all
}

/// The differences found, by both verdicts.
#[derive(Default)]
struct Differences {
    seen: BTreeMap<(String, String), Vec<String>>,
    asked: usize,
    accepted: usize,
    /// Unjudged programs, by message.
    unjudged: BTreeMap<String, usize>,
}

impl Differences {
    fn ask(&mut self, name: &str, program: &Arc<Program>, loaded: &LoadedMaps) {
        let Ok(kernel) = load(program, loaded, &LoadOptions::default()) else {
            return;
        };
        let ours = verify(program, &Options::default()).verdict;
        let kernel = kernel.verdict;
        self.asked += 1;
        self.accepted += usize::from(kernel.is_accepted());
        let text = |verdict: &bpflab::verifier::Verdict| match verdict.errno {
            Some(errno) => format!("{errno} {}", verdict.message),
            None => format!("accepted {}", verdict.processed()),
        };
        if ours.is_unjudged() {
            *self.unjudged.entry(ours.message).or_default() += 1;
            return;
        }
        let (kernel, ours) = (text(&kernel), text(&ours));
        if kernel != ours {
            self.seen
                .entry((kernel, ours))
                .or_default()
                .push(name.to_owned());
        }
    }
}

/// The calls to try: valid arguments with each use of the result, each argument in turn
/// with any value, and all arguments random. With maps that the helper doesn't take, fewer
/// calls.
fn calls(prototype: &Prototype, all: bool) -> Vec<(Vec<Actor>, &'static str)> {
    let args = prototype.args.iter().enumerate();
    let goods: Vec<_> = args.map(|(at, arg)| good(arg, at, prototype)).collect();
    let mut calls: Vec<_> = USES.iter().map(|then| (goods.clone(), *then)).collect();
    for (at, arg) in prototype.args.iter().enumerate() {
        let of_map = matches!(arg.kind, ArgKind::PtrToMapKey | ArgKind::PtrToMapValue);
        if !all && !of_map {
            continue;
        }
        for actor in ACTORS {
            let mut actors = goods.clone();
            actors[at] = *actor;
            calls.push((actors, USES[0]));
        }
    }
    if all && prototype.args.len() > 1 {
        // Random choices, the same on each run.
        let mut seed = 88_172_645_463_325_252_u64;
        let mut any = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed >> 33).unwrap_or(0) % below
        };
        for _ in 0..100 {
            let pick = |good: &Actor| match any(2) {
                0 => *good,
                _ => ACTORS[any(ACTORS.len())],
            };
            calls.push((goods.iter().map(pick).collect(), USES[any(USES.len())]));
        }
    }
    calls
}

#[test]
fn calls_are_judged_as_the_kernel_does() {
    let Some(kernel) = here::kernel() else { return };
    if !kernel.release.starts_with("6.18.") {
        eprintln!(
            "skipped: the rules are those of Linux 6.18, this is {}",
            kernel.release
        );
        return;
    }
    let (mut found, mut number) = (Differences::default(), 0);
    let Ok(Target::Kernel(btf)) = Target::file("/sys/kernel/btf/vmlinux") else {
        panic!("the kernel's BTF was there before");
    };
    let callers = callers(&btf);
    let config = running_config().expect("a kernel that gives verdicts");
    for helper in helpers()
        .iter()
        .filter(|helper| config.has_helper(helper.id))
    {
        for prototype in helper.prototypes {
            let has = |(caller, _): &&(Caller<'_>, _)| {
                let its = helper.prototype(caller);
                its.is_some_and(|its| std::ptr::eq(its, prototype))
            };
            let Some((caller, hook)) = callers.iter().find(has) else {
                eprintln!("{}: a prototype of no program here", helper.name);
                continue;
            };
            let takes_map = prototype
                .args
                .iter()
                .any(|arg| arg.kind == ArgKind::ConstMapPtr);
            let tries = if takes_map { usize::MAX } else { 1 };
            let fitting = fitting(helper, caller).into_iter().take(tries);
            for (nth, map) in fitting.enumerate() {
                let what = format!("{} with {}", helper.name, map.map_type);
                let maps = maps(map);
                let Ok(loaded) = LoadedMaps::create(&maps, None) else {
                    eprintln!("{what}: the kernel does not make it");
                    continue;
                };
                for (actors, then) in calls(prototype, nth == 0) {
                    number += 1;
                    if number % sample::step() != 0 {
                        continue;
                    }
                    let Some(insns) = body(helper, &actors, then, caller) else {
                        continue;
                    };
                    let mut program = Program::new("call", caller.prog_type, insns);
                    program.expected_attach_type = caller.attach_type;
                    program.attach_btf_id = *hook;
                    program.license = "GPL".to_owned();
                    program.kernel_btf = Some(btf.clone());
                    program.maps = Arc::clone(&maps);
                    if caller.prog_type == ProgType::Syscall {
                        program.flags = ProgFlags::SLEEPABLE;
                    }
                    let name = format!("{what}{actors:?} {then:?} of {:?}", caller.prog_type);
                    found.ask(&name, &Arc::new(program), &loaded);
                }
            }
        }
    }
    let count: usize = found.seen.values().map(Vec::len).sum();
    let unjudged: usize = found.unjudged.values().sum();
    eprintln!(
        "{} programs, {} accepted, {count} judged otherwise, {unjudged} not judged",
        found.asked, found.accepted
    );
    if std::env::var_os("BPFLAB_SHOW").is_some() {
        for (text, times) in &found.unjudged {
            eprintln!("{times} x {text}");
        }
        let mut all: Vec<_> = found.seen.iter().collect();
        all.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        for ((kernel, ours), names) in all {
            eprintln!(
                "{} x\n  kernel {kernel}\n  ours   {ours}\n  {}",
                names.len(),
                names[0]
            );
        }
    }
    let (judged, step) = (found.asked - unjudged, sample::step());
    assert!(judged > 10_000 / step && found.accepted > 1000 / step);
    assert_eq!(count, 0);
}
