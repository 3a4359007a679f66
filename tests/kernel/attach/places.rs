//! The kinds of attach targets: what programs see there, and the errors for those that this
//! kernel lacks.

use crate::shared::{Need, skip, skip_part};
use std::time::{Duration, Instant};

use bpflab::Object;
use bpflab::btf::{Btf, Kind};
use bpflab::kernel::attach::{AttachError, AttachPoint, Way, attach};
use bpflab::kernel::perf::{EventSource, Hardware, Sampling, Software};
use bpflab::kernel::{Kernel, LoadOptions, LoadedMaps, NoVerdictKind, TestRun, load};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{AttachType, MapType, ProgType};
use bpflab::util::{Errno, MapId};

use super::rig::{attached, counting, fire, is_there, loaded, point, program, returning};

const SEEN: MapId = MapId(0);

/// A count, and the values seen last.
fn seen() -> [MapDef; 1] {
    [MapDef::new("seen", MapType::Array, 4, 32, 1)]
}

/// Stores r7, r8 and r9, and counts.
fn remember() -> String {
    let put = "*(u64 *)(r0 + 8) = r7
         *(u64 *)(r0 + 16) = r8
         *(u64 *)(r0 + 24) = r9";
    format!("{}\nr0 = 1", counting(put))
}

fn words(maps: &LoadedMaps) -> [u64; 4] {
    let value = maps.lookup(SEEN, &[0; 4]).unwrap().unwrap();
    std::array::from_fn(|at| {
        let word = value[at * 8..][..8].try_into().unwrap();
        u64::from_ne_bytes(word)
    })
}

/// The number of chown on x86-64.
const CHOWN: u64 = 92;

/// A program body for the arguments of `sys_enter` (the registers, the number): it only acts on
/// a chown, whose second argument is in `si`.
const ARGUMENTS: &str = "
    r8 = *(u64 *)(r6 + 8)
    r0 = 1
    if r8 != 92 goto others
    r7 = *(u64 *)(r6 + 0)
    r1 = r10
    r1 += -16
    r2 = 8
    r3 = r7
    r3 += 104
    call bpf_probe_read_kernel
    r9 = *(u64 *)(r10 - 16)
    r7 = 0";

#[test]
#[cfg(target_arch = "x86_64")]
fn raw_tracepoints_have_the_arguments() {
    if !is_there() {
        return;
    }
    let body = format!("{ARGUMENTS}\n{}", remember());
    let raw = Program::clone(&program("raw", ProgType::RawTracepoint, &seen(), &body));
    let mut typed = raw.clone();
    typed.prog_type = ProgType::Tracing;
    typed.expected_attach_type = Some(AttachType::TraceRawTp);
    typed.section = "tp_btf/sys_enter".to_owned();
    typed.attach_target = Some("sys_enter".to_owned());
    let btf = Btf::parse(&std::fs::read("/sys/kernel/btf/vmlinux").unwrap()).unwrap();
    let target = btf.find("btf_trace_sys_enter", Kind::Typedef).unwrap();
    typed.attach_btf_id = Some(target.id());
    // Programs of this type return 0.
    for insn in &mut typed.insns {
        if insn.opcode == 0xb7 && insn.dst() == 0 && insn.imm == 1 {
            insn.imm = 0;
        }
    }
    let raw_point = AttachPoint::raw_tracepoint("sys_enter");
    let typed_point = AttachPoint::of(&typed).unwrap();
    assert_eq!(typed_point.to_string(), "tp_btf/sys_enter");
    for (program, point, way) in [
        (&raw, &raw_point, Way::Classic),
        (&typed, &typed_point, Way::Classic),
        (&typed, &typed_point, Way::Link),
    ] {
        let maps = LoadedMaps::create(&program.maps, None).unwrap();
        let loaded = loaded(program, &maps);
        let attachment = attach(&loaded, &point.clone().with_way(way)).unwrap();
        (0..10).for_each(|uid| fire(4700 + uid, 9));
        drop(attachment);
        fire(1, 9);
        assert_eq!(words(&maps), [10, 0, CHOWN, 4709], "{point} {way:?}");
    }
}

/// A cookie distinguishes a program's attachments.
#[test]
fn a_program_reads_its_cookie() {
    if !is_there() {
        return;
    }
    let body = format!(
        "r1 = r6
         call bpf_get_attach_cookie
         r7 = r0
         r8 = 0
         r9 = 0
         {}",
        remember()
    );
    let program = program("cookie", ProgType::Tracepoint, &seen(), &body);
    let maps = LoadedMaps::create(&program.maps, None).unwrap();
    let loaded = loaded(&program, &maps);
    let attachment = attach(&loaded, &point().with_cookie(0xc00_c1e)).unwrap();
    assert_eq!(
        attachment.describe(),
        "cookie at tp/syscalls/sys_enter_chown"
    );
    fire(1, 1);
    assert_eq!(words(&maps)[..2], [1, 0xc00_c1e]);
}

/// Samples of a clock, of this process's threads and of all CPUs.
#[test]
fn a_clock_is_sampled() {
    if !is_there() {
        return;
    }
    let body = format!(
        "r7 = *(u64 *)(r6 + {})
         r8 = 0
         r9 = 0
         {}",
        // sample_period follows the registers.
        if cfg!(target_arch = "x86_64") {
            168
        } else {
            272
        },
        remember()
    );
    let program = program("sampler", ProgType::PerfEvent, &seen(), &body);
    let point = AttachPoint::of(&program).unwrap();
    let clock = EventSource::Software(Software::TaskClock);
    let own = point.clone().with_pid(std::process::id());
    for point in [
        point.clone().with_frequency(1000),
        point.clone().with_period(1_000_000),
        own.with_source(clock).with_period(1_000_000),
    ] {
        let maps = LoadedMaps::create(&program.maps, None).unwrap();
        let loaded = loaded(&program, &maps);
        let attachment = attach(&loaded, &point).unwrap();
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until && words(&maps)[0] < 5 {
            std::hint::spin_loop();
        }
        let [count, period, ..] = words(&maps);
        assert!(count >= 5, "{point}: {count} samples");
        assert!(period > 0, "{point}");
        drop(attachment);
        let after = words(&maps)[0];
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(words(&maps)[0], after, "{point}");
    }
}

/// The CPU's counters work, or the error says that they are missing.
#[test]
fn hardware_counters_are_there_or_not_available() {
    if !is_there() {
        return;
    }
    let program = program("sampler", ProgType::PerfEvent, &[], "r0 = 0");
    let cycles = EventSource::Hardware(Hardware::CpuCycles);
    let point = AttachPoint::perf_event(cycles, Sampling::Period(10_000_000));
    match attached(&program, &point) {
        Ok(attachment) => assert!(attachment.describe().contains("cpu-cycles")),
        Err(error) => {
            assert!(error.is_unavailable(), "{error}");
            assert!(
                error.to_string().contains("has no event cpu-cycles"),
                "{error}"
            );
        }
    }
    let clock = point.with_source(EventSource::Software(Software::CpuClock));
    for (wrong, why) in [
        (clock.clone().with_period(0), "is invalid"),
        (
            clock.clone().with_frequency(u64::MAX >> 1),
            "perf_event_max_sample_rate",
        ),
    ] {
        let error = attached(&program, &wrong).unwrap_err();
        assert!(matches!(error, AttachError::Option { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// The reasons for missing kernel features, before the load and by it.
#[test]
fn what_is_not_there_is_said() {
    if !is_there() {
        return;
    }
    let mut kprobe = Program::clone(&program("k", ProgType::Kprobe, &[], "r0 = 0"));
    for section in ["kprobe/vfs_read", "kretprobe/vfs_read", "ksyscall/chown"] {
        kprobe.section = section.to_owned();
        kprobe.attach_target = section.split_once('/').map(|(_, name)| name.to_owned());
        let point = AttachPoint::of(&kprobe).unwrap();
        match attached(&kprobe, &point) {
            Ok(attachment) => drop(attachment),
            Err(error) => {
                assert!(error.is_unavailable(), "{error}");
                let text = error.to_string();
                assert!(
                    text.contains("not available here: this kernel has no kprobes"),
                    "{text}"
                );
                assert_eq!(point.available(), Err(error));
            }
        }
    }
    kprobe.section = "kprobe.multi/vfs_read".to_owned();
    kprobe.expected_attach_type = Some(AttachType::TraceKprobeMulti);
    kprobe.attach_target = Some("vfs_read".to_owned());
    match attached(&kprobe, &AttachPoint::of(&kprobe).unwrap()) {
        Ok(attachment) => drop(attachment),
        Err(error) => assert!(error.is_unavailable(), "{error}"),
    }
    let btf = Btf::parse(&std::fs::read("/sys/kernel/btf/vmlinux").unwrap()).unwrap();
    for (section, kind, name) in [
        ("fentry", AttachType::TraceFentry, "vfs_read"),
        ("fexit", AttachType::TraceFexit, "vfs_read"),
        ("lsm", AttachType::LsmMac, "bpf_lsm_file_open"),
    ] {
        let prog_type = match kind {
            AttachType::LsmMac => ProgType::Lsm,
            _ => ProgType::Tracing,
        };
        let mut traced = Program::clone(&program("f", prog_type, &[], "r0 = 0"));
        traced.expected_attach_type = Some(kind);
        traced.section = format!("{section}/{name}");
        traced.attach_target = Some(name.to_owned());
        let Some(function) = btf.find(name, Kind::Func) else {
            skip_part(Need::Feature, format_args!("this kernel has no {name}"));
            continue;
        };
        traced.attach_btf_id = Some(function.id());
        let point = AttachPoint::of(&traced).unwrap();
        match point.available() {
            Ok(()) => drop(attached(&traced, &point).unwrap()),
            Err(error) => {
                assert!(error.is_unavailable(), "{error}");
                let text = error.to_string();
                assert!(text.starts_with(&format!("{section}/{name}: not available here: ")));
                assert!(text.contains("while others are loaded"), "{text}");
                let maps = LoadedMaps::create(&[], None).unwrap();
                let none = load(&traced, &maps, &LoadOptions::default()).unwrap_err();
                assert_eq!(none.kind, NoVerdictKind::Feature, "{none}");
                assert!(none.to_string().contains("a policy forbids them"), "{none}");
            }
        }
    }
}

#[test]
fn a_place_that_is_not_there_is_no_missing_feature() {
    if !is_there() {
        return;
    }
    let program = returning(1);
    let error = attached(
        &program,
        &AttachPoint::tracepoint("syscalls", "sys_enter_chwn"),
    );
    let error = error.unwrap_err();
    assert!(!error.is_unavailable());
    assert!(error.to_string().contains("sys_enter_chown"), "{error}");
    let mut raw = Program::clone(&program);
    raw.prog_type = ProgType::RawTracepoint;
    let error = attached(&raw, &AttachPoint::raw_tracepoint("no_such")).unwrap_err();
    assert!(matches!(error, AttachError::NoSuchPlace { .. }), "{error}");
    let error = attached(&program, &point().with_pid(1)).unwrap_err();
    assert!(matches!(error, AttachError::Option { .. }), "{error}");
}

/// A program that may write to a tracepoint's argument, which a test run then returns. It does
/// so in this thread only.
#[test]
fn a_writable_tracepoint_is_written_to() {
    if !is_there() {
        return;
    }
    let body = "r1 = *(u64 *)(r6 + 0)
         *(u32 *)(r1 + 0) = -7
         r0 = 0";
    let writer = program("writer", ProgType::RawTracepointWritable, &[], body);
    let run = Program::new(
        "run",
        ProgType::SocketFilter,
        bpflab::isa::assemble("r0 = 0\nexit").unwrap(),
    );
    let maps = LoadedMaps::create(&[], None).unwrap();
    let run = loaded(&run, &maps);
    let packet = TestRun::packet(&[0; 64]);
    let point = AttachPoint::raw_tracepoint("bpf_test_finish");
    let attachment = match attached(&writer, &point) {
        Ok(attachment) => attachment,
        Err(error) => {
            skip(Need::Feature, error);
            return;
        }
    };
    assert_eq!(run.test_run(&packet).unwrap_err().errno, Errno::E2BIG);
    drop(attachment);
    assert_eq!(run.test_run(&packet).unwrap().retval, 0);
}

/// As in a user's test: attaches an object's programs and checks the results.
#[test]
fn an_object_runs_in_the_kernel() {
    let kernel = match Kernel::available() {
        Ok(kernel) => kernel,
        Err(missing) => {
            skip(Need::Kernel, missing);
            return;
        }
    };
    assert!(kernel.offers().usable());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bpf/lo_filter.bpf.o");
    let object = Object::open(path).unwrap();
    let programs: Vec<_> = object.programs().map(Result::unwrap).collect();
    let mut running = kernel.attach(&programs).unwrap();
    assert_eq!(running.programs()[0].name(), "only_lo");
    assert_eq!(running.missed(), Ok(0));
    assert!(running.map("none").is_none());
    assert_eq!(
        running.lookup("none", &[]).unwrap_err().errno,
        Errno::ENOENT
    );
    running.detach();
    assert!(running.attachments().is_empty());

    let mut network = Program::clone(&programs[0]);
    network.section = "sk_skb/stream_parser".to_owned();
    network.prog_type = ProgType::SkSkb;
    let error = kernel.attach(&[network]).unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    let mut wrong = Program::clone(&programs[0]);
    wrong.insns = bpflab::isa::assemble("r0 = r5\nexit").unwrap();
    (wrong.btf, wrong.func_info, wrong.lines) = (None, Vec::new(), Vec::new());
    let error = kernel.attach(&[wrong]).unwrap_err();
    assert!(error.to_string().contains("R5 !read_ok"), "{error}");
}
