//! Programs hit by an event while another program runs: which run, which are skipped, and which
//! are counted, in the kernel and in bpflab's machine (`docs/attach.md`).

use crate::shared::{Need, skip};
use std::sync::Arc;

use bpflab::Vm;
use bpflab::btf::Btf;
use bpflab::kernel::attach::{AttachPoint, AttachTarget, attach};
use bpflab::kernel::tracefs::Tracefs;
use bpflab::kernel::{LoadedMaps, RunStatistics};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapType, ProgType};
use bpflab::util::MapId;

use super::rig::{attached, counting, fire, is_there, loaded, point, program};

/// Prints once, which hits `bpf_trace_printk`.
const PRINT: &str = "
    r1 = 0x0a6f6c6c6568 ll
    *(u64 *)(r10 - 8) = r1
    r1 = r10
    r1 += -8
    r2 = 7
    call bpf_trace_printk
    r0 = 1";

/// The same by another helper: a mock is not called recursively.
const PRINT_AGAIN: &str = "
    r1 = 0x0a6f6c6c6568 ll
    *(u64 *)(r10 - 8) = r1
    r1 = r10
    r1 += -8
    r2 = 7
    r3 = 0
    r4 = 0
    call bpf_trace_vprintk
    r0 = 1";

/// An attach target, named like its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Tracepoint(&'static str),
    Raw(&'static str),
    Uprobe,
}

impl At {
    fn section(self) -> String {
        match self {
            Self::Tracepoint(name) => format!("tp/{name}"),
            Self::Raw(name) => format!("raw_tp/{name}"),
            Self::Uprobe => "uprobe/libc.so.6:chown".to_owned(),
        }
    }

    fn program(self, name: &str, maps: &[MapDef], body: &str) -> Arc<Program> {
        let prog_type = match self {
            Self::Tracepoint(_) => ProgType::Tracepoint,
            Self::Raw(_) => ProgType::RawTracepoint,
            Self::Uprobe => ProgType::Kprobe,
        };
        let mut program = Program::clone(&program(name, prog_type, maps, body));
        program.section = self.section();
        program.attach_target = program.section.split_once('/').map(|(_, at)| at.to_owned());
        Arc::new(program)
    }
}

/// A system call fires the outer program, and the outer's output fires the inner one, which may
/// print as well.
struct Case {
    outer: At,
    inner: At,
    inner_prints: bool,
    /// How often the inner program ran, and was skipped and counted.
    expected: (u64, u64),
}

const CHOWN: At = At::Tracepoint("syscalls/sys_enter_chown");
const PRINTED: At = At::Tracepoint("bpf_trace/bpf_trace_printk");
const RAW_PRINTED: At = At::Raw("bpf_trace_printk");

const CASES: [Case; 5] = [
    // The outer program holds the buffer that the inner one's record would need.
    Case {
        outer: CHOWN,
        inner: PRINTED,
        inner_prints: false,
        expected: (0, 0),
    },
    // Raw tracepoints only exclude themselves.
    Case {
        outer: CHOWN,
        inner: RAW_PRINTED,
        inner_prints: false,
        expected: (1, 0),
    },
    Case {
        outer: CHOWN,
        inner: RAW_PRINTED,
        inner_prints: true,
        expected: (1, 1),
    },
    // Uprobes exclude none.
    Case {
        outer: At::Uprobe,
        inner: PRINTED,
        inner_prints: false,
        expected: (1, 0),
    },
    Case {
        outer: At::Uprobe,
        inner: RAW_PRINTED,
        inner_prints: true,
        expected: (1, 1),
    },
];

impl Case {
    /// Both programs; the inner one runs `first` at its start.
    fn programs(&self, maps: &[MapDef], first: &str) -> [Arc<Program>; 2] {
        let then = if self.inner_prints {
            PRINT_AGAIN
        } else {
            "r0 = 1"
        };
        [
            self.outer.program("outer", maps, PRINT),
            self.inner
                .program("inner", maps, &format!("{first}\n{then}")),
        ]
    }

    fn in_the_kernel(&self) -> (u64, u64) {
        // Runs are counted in a map, since statistics count the runs of all threads.
        let counts = MapDef::new("count", MapType::Array, 4, 8, 1);
        let [outer, inner] = self.programs(&[counts], &counting(""));
        let maps = LoadedMaps::create(&inner.maps, None).unwrap();
        let [_outer, inner] = [outer, inner].map(|program| {
            let mut point = AttachPoint::of(&program).unwrap();
            if matches!(point.place(), AttachTarget::User { .. }) {
                point = point.with_pid(std::process::id());
            }
            attach(&loaded(&program, &maps), &point).unwrap()
        });
        fire(1, 1);
        let value = maps.lookup(MapId(0), &[0; 4]).unwrap().unwrap();
        let ran = u64::from_ne_bytes(value.try_into().unwrap());
        (ran, inner.missed().unwrap())
    }

    fn in_our_machine(&self) -> (u64, u64) {
        let mut vm = Vm::with_world(bpflab::vm::World::default());
        let btf = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
        vm.set_kernel_btf(Btf::parse(&btf).unwrap());
        let tracefs = Tracefs::open().unwrap();
        let printed = tracefs.format("bpf_trace", "bpf_trace_printk").unwrap();
        vm.declare(printed);
        let pid_tgid = super::rig::pid_tgid();
        vm.world()
            .task()
            .set_pid(std::process::id())
            .set_tid(u32::try_from(pid_tgid & 0xffff_ffff).unwrap());
        vm.load_programs(&[], self.programs(&[], "").to_vec())
            .unwrap();
        vm.attach_all().unwrap();
        let hit = match self.inner {
            RAW_PRINTED => vm.raw_tracepoint("bpf_trace_printk"),
            _ => vm.tracepoint("bpf_trace/bpf_trace_printk"),
        };
        let hit = hit.unwrap();
        for helper in ["bpf_trace_printk", "bpf_trace_vprintk"] {
            let hit = hit.clone();
            vm.mock_helper(helper, move |call| call.fire(&hit).map(|_| 6))
                .unwrap();
        }
        let event = match self.outer {
            At::Uprobe => vm.uprobe("libc.so.6:chown"),
            _ => vm.tracepoint("syscalls/sys_enter_chown"),
        }
        .unwrap();
        let outcome = vm.fire(event).unwrap();
        assert_eq!(outcome.returned("outer"), Some(1));
        let printed = &outcome.nested[0].outcome;
        let runs = printed.returned("inner").is_some();
        let own = printed
            .nested
            .iter()
            .flat_map(|nested| &nested.outcome.missed);
        let missed = printed.missed.iter().chain(own);
        let counted = missed.filter(|missed| missed.why.is_counted()).count();
        (u64::from(runs), counted as u64)
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn who_is_hit_inside_of_another_is_the_same_here_and_there() {
    if !is_there() {
        return;
    }
    for case in CASES {
        let name = format!("{} in {}", case.inner.section(), case.outer.section());
        assert_eq!(case.in_our_machine(), case.expected, "ours: {name}");
        assert_eq!(case.in_the_kernel(), case.expected, "{name}");
    }
}

/// A timer interrupt hits a tracepoint while another tracepoint's program runs: its program is
/// skipped, and the kernel counts that.
#[test]
fn an_interrupt_hits_a_program_in_the_middle() {
    if !is_there() {
        return;
    }
    let mut timer = Program::new("timer", ProgType::Tracepoint, Vec::new());
    timer.license = "GPL".to_owned();
    timer.insns = bpflab::isa::assemble("r0 = 1\nexit").unwrap();
    let counted = RunStatistics::enable().unwrap();
    let ticks = AttachPoint::tracepoint("timer", "hrtimer_expire_entry");
    let ticks = match attached(&timer, &ticks) {
        Ok(ticks) => ticks,
        Err(error) => {
            skip(Need::Feature, error);
            return;
        }
    };
    let body = "r7 = 0
         again:
         r7 += 1
         call bpf_ktime_get_ns
         if r7 < 3000 goto again
         r0 = 1";
    let busy = program("busy", ProgType::Tracepoint, &[], body);
    let busy = attached(&busy, &point()).unwrap();
    // Sooner or later a tick interrupts the program.
    let mut fired = 0;
    while ticks.missed().unwrap() == 0 && fired < 100_000 {
        fire(1, 1);
        fired += 1;
    }
    assert!(ticks.missed().unwrap() > 0, "none in {fired} runs");
    assert!(ticks.run_count().unwrap() > 0);
    assert_eq!(busy.missed().unwrap(), 0);
    drop(counted);
}
