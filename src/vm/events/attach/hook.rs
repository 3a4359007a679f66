//! The table of hooks.

use crate::program::Program;
use crate::spec::{AttachType, ProgType, Section, section_rules};
use crate::util::Errno;

/// How a hook prevents recursion of its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guard {
    /// No guard.
    None,
    /// Per CPU: while a program of such a hook runs, the whole list is skipped, and each program
    /// in it counts a miss (`bpf_prog_active`, `trace_call_bpf`).
    Cpu,
    /// Like `Cpu`, after a perf buffer was taken for the record; each context of a CPU has one
    /// (`perf_trace_buf_alloc`).
    Record,
    /// Like `Cpu`, without counting misses (`bpf_overflow_handler`, `kernel/events/core.c`).
    CpuUncounted,
    /// Per program: a program does not run inside itself (`prog->active`, `__bpf_trace_run`,
    /// `__bpf_prog_enter_recur`).
    Program,
}

/// The order in which a hook runs its programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The first attached program runs first.
    First,
    /// The last attached program runs first: the kernel adds to the head of a list.
    Last,
}

/// How the kernel combines the programs' return values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Results {
    /// They are ignored.
    Ignored,
    /// They are ANDed bitwise as `u32`, starting at 1; 0 drops the event
    /// (`bpf_prog_run_array`).
    And,
    /// The first nonzero value ends the list and becomes the function's return value
    /// (`invoke_bpf_mod_ret`; `call_int_hook` for LSMs).
    FirstNonZero,
    /// A nonzero value at the entry skips the program at the return (`kprobe.session`).
    Session,
    /// All run. The operation is allowed if all return 1; otherwise it fails with `EPERM` or
    /// the error set by `bpf_set_retval` (`bpf_prog_run_array_cg`). Bits above 0 are flags.
    Allow,
    /// The first value other than `TC_ACT_UNSPEC` is the action (`tcx_run`,
    /// `include/net/tcx.h`).
    Next,
    /// The single program's value is the action (XDP, tc, socket verdicts).
    Action,
    /// A packet that any program drops is dropped; `SK_PASS` is 1
    /// (`BPF_PROG_SK_LOOKUP_RUN_ARRAY`, `include/linux/filter.h`).
    Select,
    /// `NF_DROP`, 0, ends the list; `NF_ACCEPT`, 1, continues (`nf_hook_slow`).
    Accept,
    /// The value is returned to the caller.
    Value,
}

/// The kind of event that fires a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fires {
    /// A tracepoint's record.
    Tracepoint,
    /// A tracepoint's arguments.
    RawTracepoint,
    /// Entry of a kernel function.
    KernelEntry,
    /// Return of a kernel function.
    KernelReturn,
    /// An instruction in user space.
    UserEntry,
    /// Return of a user function.
    UserReturn,
    /// A USDT probe in user space.
    Usdt,
    /// A call of a kernel function, from entry to return.
    Function,
    /// Reading an iterator.
    Iterator,
    /// A call of a `struct_ops` member.
    StructOps,
    /// A packet, or the context of the program type.
    Context,
    /// A call of a function of another program.
    ProgramCall,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookRule {
    /// Prefixes of section names that select this hook, without `.s`.
    pub sections: &'static [&'static str],
    /// The event that fires it.
    pub fires: Fires,
    /// How it prevents recursion.
    pub guard: Guard,
    /// The order of its programs.
    pub order: Order,
    /// How return values are combined.
    pub results: Results,
    /// The maximum number of programs, and the error for another one.
    pub room: Option<(usize, Errno)>,
    /// The error for attaching the same program to the same target twice; `None` if it then
    /// runs twice.
    pub again: Option<Errno>,
    /// Whether attaching needs a target, although libbpf lets the section name omit it.
    pub needs_target: bool,
}

/// Value of an optional column.
macro_rules! or_none {
    () => {
        None
    };
    ($value:expr) => {
        $value
    };
}

/// Defines the hooks. Rows are in the order in which an event reaches them. Without `room` and
/// `again`, a hook accepts any number of programs, and the same one several times.
macro_rules! hooks {
    ($(
        $(#[$doc:meta])*
        $name:ident = [$($section:literal),*] $fires:ident, $guard:ident, $order:ident, $results:ident
            $(, room $room:expr, again $again:expr)?, target $needs:literal;
    )*) => {
        /// A kind of hook that programs attach to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Hook {
            $($(#[$doc])* $name,)*
        }

        impl Hook {
            /// All hooks, in the order in which an event reaches them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The hook's row in the table.
            #[doc(hidden)]
            #[must_use]
            pub const fn rule(self) -> &'static HookRule {
                match self {
                    $(Self::$name => &HookRule {
                        sections: &[$($section),*],
                        fires: Fires::$fires,
                        guard: Guard::$guard,
                        order: Order::$order,
                        results: Results::$results,
                        room: or_none!($($room)?),
                        again: or_none!($($again)?),
                        needs_target: $needs,
                    },)*
                }
            }
        }
    };
}

/// `BPF_TRACE_MAX_PROGS`, `kernel/trace/bpf_trace.c`.
const PERF: Option<(usize, Errno)> = Some((64, Errno::E2BIG));
/// `BPF_MAX_TRAMP_LINKS`, `include/linux/bpf.h`.
const TRAMPOLINE: Option<(usize, Errno)> = Some((38, Errno::E2BIG));
/// `BPF_CGROUP_MAX_PROGS`, `include/linux/bpf-cgroup-defs.h`.
const CGROUP: Option<(usize, Errno)> = Some((64, Errno::E2BIG));
/// `bpf_mprog_max`, `include/linux/bpf_mprog.h`.
const MPROG: Option<(usize, Errno)> = Some((64, Errno::ERANGE));
/// A single program (`dev_xdp_attach`, `net/core/dev.c`).
const ONE: Option<(usize, Errno)> = Some((1, Errno::EBUSY));
const EEXIST: Option<Errno> = Some(Errno::EEXIST);
const EBUSY: Option<Errno> = Some(Errno::EBUSY);

hooks! {
    /// A tracepoint's record, through perf.
    Tracepoint = ["tracepoint", "tp"] Tracepoint, Record, First, And,
        room PERF, again EEXIST, target true;
    /// A tracepoint's arguments.
    RawTracepoint = ["raw_tracepoint", "raw_tp", "raw_tracepoint.w", "raw_tp.w", "tp_btf"]
        RawTracepoint, Program, First, Ignored, target true;
    /// A kernel function's entry, through perf; each attachment has its own probe.
    Kprobe = ["kprobe"] KernelEntry, Cpu, Last, And, target true;
    /// A kernel function's return, through perf.
    Kretprobe = ["kretprobe"] KernelReturn, Cpu, First, And, target true;
    /// The entry of a system call's function.
    Ksyscall = ["ksyscall"] KernelEntry, Cpu, Last, And, target true;
    /// The return of a system call's function.
    Kretsyscall = ["kretsyscall"] KernelReturn, Cpu, First, And, target true;
    /// Entries of several kernel functions with one link.
    KprobeMulti = ["kprobe.multi"] KernelEntry, Cpu, First, Ignored, target true;
    /// Returns of several kernel functions with one link.
    KretprobeMulti = ["kretprobe.multi"] KernelReturn, Cpu, First, Ignored, target true;
    /// Entries and returns of several kernel functions.
    KprobeSession = ["kprobe.session"] KernelEntry, Cpu, First, Session, target true;
    /// An instruction in user space, through perf.
    Uprobe = ["uprobe"] UserEntry, None, Last, And, target true;
    /// A user function's return, through perf.
    Uretprobe = ["uretprobe"] UserReturn, None, Last, And, target true;
    /// Several instructions in user space.
    UprobeMulti = ["uprobe.multi"] UserEntry, None, Last, Ignored, target true;
    /// Returns of several user functions.
    UretprobeMulti = ["uretprobe.multi"] UserReturn, None, Last, Ignored, target true;
    /// Entries and returns of several user functions.
    UprobeSession = ["uprobe.session"] UserEntry, None, Last, Session, target true;
    /// A USDT probe in user space.
    Usdt = ["usdt"] Usdt, None, Last, And, target true;
    /// A sample of a perf event.
    PerfEvent = ["perf_event"] Context, CpuUncounted, First, And,
        room None, again EEXIST, target false;
    /// A function's entry, through a trampoline.
    Fentry = ["fentry"] Function, Program, Last, Ignored,
        room TRAMPOLINE, again EBUSY, target true;
    /// Runs before a function and can replace its return value.
    FmodRet = ["fmod_ret"] Function, Program, Last, FirstNonZero,
        room TRAMPOLINE, again EBUSY, target true;
    /// An LSM hook.
    Lsm = ["lsm"] Function, None, Last, FirstNonZero,
        room TRAMPOLINE, again EBUSY, target true;
    /// An LSM hook for processes of a cgroup.
    LsmCgroup = ["lsm_cgroup"] Function, None, First, Allow,
        room CGROUP, again None, target true;
    /// A function's return, through a trampoline.
    Fexit = ["fexit"] Function, Program, Last, Ignored,
        room TRAMPOLINE, again EBUSY, target true;
    /// Reading an iterator.
    Iterator = ["iter"] Iterator, None, First, Ignored, target true;
    /// A member of a `struct_ops`.
    StructOps = ["struct_ops"] StructOps, None, First, Value, room None, again EBUSY, target false;
    /// A packet in the driver.
    Xdp = ["xdp", "xdp.frags", "xdp/devmap", "xdp.frags/devmap", "xdp/cpumap", "xdp.frags/cpumap"]
        Context, None, First, Action, room ONE, again EBUSY, target false;
    /// A packet at ingress or egress, before the classifiers.
    Tcx = ["tc/ingress", "tc/egress", "tcx/ingress", "tcx/egress", "netkit/primary", "netkit/peer"]
        Context, None, First, Next, room MPROG, again EEXIST, target false;
    /// A classifier or action: the first decision counts.
    Classifier = ["tc", "classifier", "action"] Context, None, First, Next, target false;
    /// A packet for a socket; the value is the number of bytes to keep.
    SocketFilter = ["socket"] Context, None, Last, Value, target false;
    /// Selects a socket for a packet, per network namespace.
    SkLookup = ["sk_lookup"] Context, None, First, Select,
        room Some((64, Errno::E2BIG)), again EEXIST, target false;
    /// A netfilter hook.
    Netfilter = ["netfilter"] Context, None, First, Accept, room None, again EBUSY, target false;
    /// Operations of the processes of a cgroup.
    Cgroup = [
        "cgroup_skb/ingress", "cgroup_skb/egress", "cgroup/skb", "cgroup/sock_create",
        "cgroup/sock_release", "cgroup/sock", "cgroup/post_bind4", "cgroup/post_bind6",
        "cgroup/bind4", "cgroup/bind6", "cgroup/connect4", "cgroup/connect6",
        "cgroup/connect_unix", "cgroup/sendmsg4", "cgroup/sendmsg6", "cgroup/sendmsg_unix",
        "cgroup/recvmsg4", "cgroup/recvmsg6", "cgroup/recvmsg_unix", "cgroup/getpeername4",
        "cgroup/getpeername6", "cgroup/getpeername_unix", "cgroup/getsockname4",
        "cgroup/getsockname6", "cgroup/getsockname_unix", "cgroup/sysctl",
        "cgroup/getsockopt", "cgroup/setsockopt", "cgroup/dev", "sockops"
    ] Context, None, First, Allow, room CGROUP, again None, target false;
    /// A function of another program, in whose place an extension runs.
    Freplace = ["freplace"] ProgramCall, None, First, Value, room ONE, again EBUSY, target true;
    /// All other hooks, with a single program.
    Other = [
        "sk_reuseport", "sk_reuseport/migrate", "sk_skb", "sk_skb/verdict",
        "sk_skb/stream_parser", "sk_skb/stream_verdict", "sk_msg", "flow_dissector",
        "lwt_in", "lwt_out", "lwt_xmit", "lwt_seg6local", "lirc_mode2", "syscall"
    ] Context, None, First, Value, target false;
}

impl Hook {
    /// The hook of a program: by its section name or, if that does not tell, by program type and
    /// attach type.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let section = Section::classify(&program.section);
        let named = section.filter(|section| section.rule.prog_type == program.prog_type);
        let rule = named.map(|section| section.rule).or_else(|| {
            let of_type = |attach: Option<AttachType>| {
                let mut rules = section_rules().iter();
                rules.find(|rule| rule.prog_type == program.prog_type && rule.attach_type == attach)
            };
            of_type(program.expected_attach_type).or_else(|| {
                let mut rules = section_rules().iter();
                rules.find(|rule| rule.prog_type == program.prog_type)
            })
        });
        rule.map_or(Self::Other, |rule| Self::of_section(rule.prefix))
    }

    /// The hook and, if the hook tells targets apart by attach type, the attach type.
    #[doc(hidden)]
    #[must_use]
    pub fn place_of(program: &Program) -> (Self, Option<AttachType>) {
        let hook = Self::of(program);
        let apart = hook.by_attach_type(program.prog_type);
        (hook, program.expected_attach_type.filter(|_| apart))
    }

    /// The hook of a section name's prefix.
    fn of_section(prefix: &str) -> Self {
        let bare = prefix.strip_suffix(".s").unwrap_or(prefix);
        let found = Self::ALL
            .iter()
            .find(|hook| hook.rule().sections.contains(&bare));
        found.copied().unwrap_or(Self::Other)
    }

    /// Whether an event of this kind fires the hook.
    #[doc(hidden)]
    #[must_use]
    pub fn is_hit_by(self, fires: Fires) -> bool {
        let own = self.rule().fires;
        own == fires
            // A session runs at both ends.
            || self == Self::KprobeSession && fires == Fires::KernelReturn
            || self == Self::UprobeSession && fires == Fires::UserReturn
    }

    /// Whether programs of this hook change a function's return value.
    #[doc(hidden)]
    #[must_use]
    pub const fn modifies_return(self) -> bool {
        matches!(self.rule().results, Results::FirstNonZero)
    }

    /// Whether the hook distinguishes programs of this type by attach type.
    #[doc(hidden)]
    #[must_use]
    pub fn by_attach_type(self, prog_type: ProgType) -> bool {
        matches!(self, Self::Cgroup | Self::Tcx | Self::Xdp) && prog_type != ProgType::SockOps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_leads_to_one_hook_of_its_own() {
        for rule in section_rules() {
            let bare = rule.prefix.strip_suffix(".s").unwrap_or(rule.prefix);
            let hooks: Vec<_> = Hook::ALL
                .iter()
                .filter(|hook| hook.rule().sections.contains(&bare))
                .collect();
            assert_eq!(hooks.len(), 1, "{}: {hooks:?}", rule.prefix);
        }
        for hook in Hook::ALL {
            for section in hook.rule().sections {
                let known = section_rules().iter().any(|rule| rule.prefix == *section);
                assert!(known, "{section}");
            }
        }
    }

    #[test]
    fn a_program_without_a_section_goes_by_its_types() {
        let mut program = Program::new("p", ProgType::Tracing, Vec::new());
        program.expected_attach_type = Some(AttachType::TraceFexit);
        assert_eq!(Hook::of(&program), Hook::Fexit);
        program.expected_attach_type = None;
        program.prog_type = ProgType::Kprobe;
        assert_eq!(Hook::of(&program), Hook::Kprobe);
        program.section = "kretprobe/f".to_owned();
        assert_eq!(Hook::of(&program), Hook::Kretprobe);
        program.section = "uprobe.s//bin/bash:main".to_owned();
        assert_eq!(Hook::of(&program), Hook::Uprobe);
        // The section is for another type, so it does not count.
        program.prog_type = ProgType::Xdp;
        assert_eq!(Hook::of(&program), Hook::Xdp);
    }

    #[test]
    fn an_event_reaches_a_functions_hooks_in_the_trampolines_order() {
        let order = [Hook::Fentry, Hook::FmodRet, Hook::Lsm, Hook::Fexit];
        assert!(order.is_sorted());
        assert!(Hook::KprobeSession.is_hit_by(Fires::KernelReturn));
        assert!(!Hook::KprobeMulti.is_hit_by(Fires::KernelReturn));
    }
}
