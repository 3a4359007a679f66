//! Calls of every helper with good and bad arguments, judged by us and by the running
//! kernel: the verdict, the error number, the error line and the number of instructions
//! walked have to be the same.
//!
//! For each prototype of each helper a program type is taken that has it. Each argument
//! in turn is given everything in [`ACTORS`], while the others get what they ask for.
//!
//! `BPFLAB_SHOW=1` lists every difference, the commonest first.

#![cfg(all(feature = "kernel", target_os = "linux"))]

#[path = "kernel/here.rs"]
mod here;

use std::collections::BTreeMap;
use std::sync::Arc;

use bpflab::isa::{RawInsn, assemble};
use bpflab::kernel::{LoadOptions, LoadedMaps, load};
use bpflab::program::{Initial, MapDef, Program};
use bpflab::spec::helpers::{Arg, ArgKind, Caller, Detail, Helper, Prototype, helpers};
use bpflab::spec::{AttachRule, AttachType, MapFlags, MapType, PacketAccess, ProgFlags, ProgType};
use bpflab::util::{HelperId, MapId};
use bpflab::verifier::{Options, verify};

/// The maps of every program: the first is of a kind that the helper takes.
const FITTING: MapId = MapId(0);
const ARRAY: MapId = MapId(1);
const HASH: MapId = MapId(2);
const TEXT: MapId = MapId(3);
const RING: MapId = MapId(4);
const READ_ONLY: MapId = MapId(5);

/// A value of a register, as instructions that leave it in `r0`. `r6` is the context,
/// `r7` any number, `r8` one below 32, all below `fp-128` is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    /// Assembly.
    Code(&'static str),
    /// The address of a map.
    Map(MapId),
    /// The value of a map, found under a constant key, maybe null, or by its address.
    Found(MapId, Null),
    Value(MapId, i32),
    /// Bytes of the packet, or without a check of its end.
    Packet(&'static str),
    /// A record of a ring buffer.
    Record(Null),
    /// A socket.
    Socket(Null),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Null {
    Checked,
    Maybe,
}

/// What an argument is tried with.
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
];

/// What an argument asks for.
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
        // Two stretches that don't overlap.
        ArgKind::PtrToMem if at > 1 => Actor::Code("r0 = r10\nr0 += -32"),
        ArgKind::PtrToMem => Actor::Code("r0 = r10\nr0 += -64"),
        ArgKind::ConstSize | ArgKind::ConstSizeOrZero | ArgKind::ConstAllocSizeOrZero => scalar(24),
        ArgKind::PtrToSockCommon | ArgKind::PtrToSocket | ArgKind::PtrToBtfIdSockCommon => {
            Actor::Socket(Null::Checked)
        }
        ArgKind::PtrToRingbufMem => Actor::Record(Null::Checked),
        ArgKind::PtrToConstStr => Actor::Value(TEXT, 0),
        _ if prototype.args.len() > 4 => scalar(4),
        _ => scalar(0),
    }
}

/// Slots of a map's address.
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

/// Sets the program up so that `null` leaves it early with what `r0` holds there.
fn checked(insns: &mut Vec<RawInsn>, null: Null) {
    if null == Null::Checked {
        insns.extend(asm("if r0 != 0 goto +2\nr0 = 1\nexit"));
    }
}

impl Actor {
    /// The instructions, or nothing where the program's type can't have it.
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
        }
        Some(insns)
    }
}

fn can_call(number: u32, caller: &Caller<'_>) -> Option<()> {
    bpflab::spec::helpers::helper(HelperId(number))?.prototype(caller)?;
    Some(())
}

/// A call of the helper with these arguments.
fn body(helper: &Helper, actors: &[Actor], caller: &Caller<'_>) -> Option<Vec<RawInsn>> {
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
        insns.extend(asm("r9 = r0"));
    }
    insns.extend(asm("r0 = 1\nexit"));
    Some(insns)
}

/// The maps: of a kind that the helper takes, and others.
fn maps(helper: &Helper, caller: &Caller<'_>) -> Arc<[MapDef]> {
    let fits = |map: &&MapType| map.passes_to(helper.id, caller).is_ok();
    let skipped = [
        MapType::StructOps,
        MapType::Arena,
        MapType::SkStorage,
        MapType::InodeStorage,
        MapType::TaskStorage,
        MapType::CgrpStorage,
        MapType::ArrayOfMaps,
        MapType::HashOfMaps,
        MapType::CgroupStorage,
        MapType::PercpuCgroupStorage,
    ];
    let mut kinds = MapType::ALL.iter().filter(|map| !skipped.contains(map));
    let kind = kinds.find(fits).copied().unwrap_or(MapType::Hash);
    let info = kind.info();
    let size = |allows: &dyn Fn(u32) -> bool, sizes: &[u32]| {
        sizes
            .iter()
            .copied()
            .find(|size| allows(*size))
            .unwrap_or(0)
    };
    let key = size(&|size| info.key.allows(size), &[4, 0, 8]);
    let value = size(&|size| info.value.allows(size), &[48, 4, 0, 8]);
    let entries = size(&|count| info.entries.allows(count, 4096), &[4, 4096, 0]);
    let fitting = MapDef {
        flags: info.flags_needed,
        ..MapDef::new("fitting", kind, key, value, entries)
    };
    let text = MapDef {
        flags: MapFlags::RDONLY_PROG,
        frozen: true,
        initial: vec![Initial::Bytes {
            key: vec![0; 4],
            value: Arc::from(&b"%d %s\0%q\0......................%d.....no end......"[..48]),
        }],
        ..MapDef::new("text", MapType::Array, 4, 48, 1)
    };
    let read_only = MapDef {
        flags: MapFlags::RDONLY_PROG,
        ..MapDef::new("read_only", MapType::Array, 4, 48, 1)
    };
    Arc::new([
        fitting,
        MapDef::new("array", MapType::Array, 4, 48, 1),
        MapDef::new("hash", MapType::Hash, 4, 48, 8),
        text,
        MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096),
        read_only,
    ])
}

/// The program types that are tried, those with packets first.
fn callers() -> Vec<Caller<'static>> {
    let mut all = Vec::new();
    for prog_type in ProgType::ALL {
        let mut caller = Caller::of(*prog_type);
        if matches!(
            prog_type,
            ProgType::Tracing
                | ProgType::Lsm
                | ProgType::StructOps
                | ProgType::Ext
                | ProgType::LircMode2
        ) {
            continue;
        }
        if let AttachRule::OneOf(list) = prog_type.info().attach {
            for at in list {
                caller.attach_type = Some(*at);
                all.push(caller);
            }
        } else {
            all.push(caller);
        }
    }
    all.push(Caller {
        attach_type: Some(AttachType::TraceKprobeMulti),
        ..Caller::of(ProgType::Kprobe)
    });
    all.sort_by_key(|caller| {
        let packet = caller.prog_type.info().packet != PacketAccess::Write;
        (caller.prog_type != ProgType::SchedCls, packet)
    });
    all
}

/// The differences found, by what both said.
#[derive(Default)]
struct Differences {
    seen: BTreeMap<(String, String), Vec<String>>,
    asked: usize,
    accepted: usize,
}

impl Differences {
    fn ask(&mut self, name: &str, program: &Arc<Program>, loaded: &LoadedMaps) {
        let Ok(kernel) = load(program, loaded, &LoadOptions::default()) else {
            return;
        };
        let ours = verify(program, &Options::default()).verdict;
        let kernel = kernel.verdict;
        self.asked += 1;
        self.accepted += usize::from(kernel.accepted);
        let text = |verdict: &bpflab::verifier::Verdict| match verdict.errno {
            Some(errno) => format!("{errno} {}", verdict.message),
            None => format!("accepted {}", verdict.processed()),
        };
        let (kernel, ours) = (text(&kernel), text(&ours));
        // What later steps bring is refused by name.
        if kernel != ours && !ours.contains("not supported by bpflab yet") {
            self.seen
                .entry((kernel, ours))
                .or_default()
                .push(name.to_owned());
        }
    }
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
    let callers = callers();
    let mut found = Differences::default();
    for helper in helpers() {
        for prototype in helper.prototypes {
            let has = |caller: &&Caller<'_>| {
                helper
                    .prototype(caller)
                    .is_some_and(|its| std::ptr::eq(its, prototype))
            };
            let Some(caller) = callers.iter().find(has) else {
                continue;
            };
            let maps = maps(helper, caller);
            let Ok(loaded) = LoadedMaps::create(&maps, None) else {
                eprintln!("{}: no maps: {:?}", helper.name, maps[0].map_type);
                continue;
            };
            let goods: Vec<_> = prototype
                .args
                .iter()
                .enumerate()
                .map(|(at, arg)| good(arg, at, prototype))
                .collect();
            let mut tried = vec![goods.clone()];
            for at in 0..goods.len() {
                for actor in ACTORS {
                    let mut actors = goods.clone();
                    actors[at] = *actor;
                    tried.push(actors);
                }
            }
            for actors in tried {
                let Some(insns) = body(helper, &actors, caller) else {
                    continue;
                };
                let mut program = Program::new("call", caller.prog_type, insns);
                program.expected_attach_type = caller.attach_type;
                program.license = "GPL".to_owned();
                program.maps = Arc::clone(&maps);
                if caller.prog_type == ProgType::Syscall {
                    program.flags = ProgFlags::SLEEPABLE;
                }
                let name = format!("{}{actors:?} of {:?}", helper.name, caller.prog_type);
                found.ask(&name, &Arc::new(program), &loaded);
            }
        }
    }
    let count: usize = found.seen.values().map(Vec::len).sum();
    eprintln!(
        "{} programs, {} accepted, {count} judged otherwise",
        found.asked, found.accepted
    );
    if std::env::var_os("BPFLAB_SHOW").is_some() {
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
    assert!(found.asked > 10_000 && found.accepted > 1000);
    assert_eq!(count, 0);
}
