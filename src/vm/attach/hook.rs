//! The kinds of places that programs attach to, as a table.

use crate::program::Program;
use crate::spec::{AttachType, ProgType, Section, section_rules};
use crate::util::Errno;

/// What keeps programs of a hook from running inside one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nothing.
    None,
    /// The CPU: while a program of such a hook runs, the whole list is skipped, and each
    /// program in it counts a miss (`bpf_prog_active`, `trace_call_bpf`).
    Cpu,
    /// The same, after a perf buffer was taken for the record: one for each context that
    /// a CPU can be in (`perf_trace_buf_alloc`).
    Record,
    /// The same as for the CPU, but nobody counts (`bpf_overflow_handler`,
    /// `kernel/events/core.c`).
    CpuUncounted,
    /// Each program for itself: it does not run inside itself (`prog->active`,
    /// `__bpf_trace_run`, `__bpf_prog_enter_recur`).
    Program,
}

/// Who runs first where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Who was attached first.
    First,
    /// Who was attached last: the kernel adds to the head of a list.
    Last,
}

/// What the kernel makes of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// Nothing.
    Ignored,
    /// They are ANDed bitwise as `u32`, starting at 1; 0 drops the event
    /// (`bpf_prog_run_array`).
    And,
    /// One that is not 0 ends the list and is what the function returns
    /// (`invoke_bpf_mod_ret`; `call_int_hook` for security modules).
    FirstNonZero,
    /// At the entry, one that is not 0 keeps the program from running at the return
    /// (`kprobe.session`).
    Session,
    /// All run; the operation is allowed if every one returned 1, and fails with `EPERM`
    /// or what `bpf_set_retval` said (`bpf_prog_run_array_cg`). Bit 1 and up are flags.
    Allow,
    /// `TC_ACT_UNSPEC` leaves the decision to the next; anything else is it
    /// (`tcx_run`, `include/net/tcx.h`).
    Next,
    /// The one result is the action (XDP, tc, a socket's verdict).
    Action,
    /// A packet that any of them drops is dropped; `SK_PASS` is 1
    /// (`BPF_PROG_SK_LOOKUP_RUN_ARRAY`, `include/linux/filter.h`).
    Select,
    /// `NF_DROP`, 0, ends the list; `NF_ACCEPT`, 1, goes on (`nf_hook_slow`).
    Accept,
    /// The result is what the caller gets.
    Value,
}

/// What event hits a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fires {
    /// A tracepoint's record.
    Tracepoint,
    /// A tracepoint's arguments.
    RawTracepoint,
    /// A kernel function is entered.
    KernelEntry,
    /// A kernel function returns.
    KernelReturn,
    /// An instruction of user space is reached.
    UserEntry,
    /// A function of user space returns.
    UserReturn,
    /// A marker of user space is reached.
    Usdt,
    /// A kernel function is called, from its entry to its return.
    Function,
    /// An iterator is read.
    Iterator,
    /// A member of a struct of operations is called.
    StructOps,
    /// A packet, or the context of the type.
    Context,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct HookRule {
    /// What section names that lead here begin with, without `.s`.
    pub sections: &'static [&'static str],
    /// The event that hits it.
    pub fires: Fires,
    /// What keeps its programs from running inside one another.
    pub guard: Guard,
    /// Who runs first.
    pub order: Order,
    /// What becomes of the results.
    pub results: Results,
    /// How many programs it takes, and what the next one is told.
    pub room: Option<(usize, Errno)>,
    /// What a program is told that is attached to the same place a second time; none
    /// where it then runs twice.
    pub again: Option<Errno>,
    /// Whether libbpf needs the target that a section name may leave out.
    pub needs_target: bool,
}

/// A column that few rows have.
macro_rules! or_none {
    () => {
        None
    };
    ($value:expr) => {
        $value
    };
}

/// Defines the hooks. The order of the rows is that in which an event reaches them.
/// Without `room` and `again` a place takes any number of programs, and one several times.
macro_rules! hooks {
    ($(
        $(#[$doc:meta])*
        $name:ident = [$($section:literal),*] $fires:ident, $guard:ident, $order:ident, $results:ident
            $(, room $room:expr, again $again:expr)?, target $needs:literal;
    )*) => {
        /// A kind of place that programs attach to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Hook {
            $($(#[$doc])* $name,)*
        }

        impl Hook {
            /// All of them, in the order in which an event reaches them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What holds there.
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
/// One program only (`dev_xdp_attach`, `net/core/dev.c`).
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
    /// A kernel function's entry, through perf: each attachment is a probe of its own.
    Kprobe = ["kprobe"] KernelEntry, Cpu, Last, And, target true;
    /// A kernel function's return, through perf.
    Kretprobe = ["kretprobe"] KernelReturn, Cpu, First, And, target true;
    /// The entry of a system call's function.
    Ksyscall = ["ksyscall"] KernelEntry, Cpu, Last, And, target true;
    /// The return of a system call's function.
    Kretsyscall = ["kretsyscall"] KernelReturn, Cpu, First, And, target true;
    /// Entries of many kernel functions at once.
    KprobeMulti = ["kprobe.multi"] KernelEntry, Cpu, First, Ignored, target true;
    /// Returns of many kernel functions at once.
    KretprobeMulti = ["kretprobe.multi"] KernelReturn, Cpu, First, Ignored, target true;
    /// Entries and returns of many kernel functions.
    KprobeSession = ["kprobe.session"] KernelEntry, Cpu, First, Session, target true;
    /// A place in user space, through perf.
    Uprobe = ["uprobe"] UserEntry, None, Last, And, target true;
    /// A user function's return, through perf.
    Uretprobe = ["uretprobe"] UserReturn, None, Last, And, target true;
    /// Many places in user space.
    UprobeMulti = ["uprobe.multi"] UserEntry, None, Last, Ignored, target true;
    /// Returns of many user functions.
    UretprobeMulti = ["uretprobe.multi"] UserReturn, None, Last, Ignored, target true;
    /// Entries and returns of many user functions.
    UprobeSession = ["uprobe.session"] UserEntry, None, Last, Session, target true;
    /// A marker in user space.
    Usdt = ["usdt"] Usdt, None, Last, And, target true;
    /// A sample of a perf event.
    PerfEvent = ["perf_event"] Context, CpuUncounted, First, And,
        room None, again EEXIST, target false;
    /// A function's entry, by trampoline.
    Fentry = ["fentry"] Function, Program, Last, Ignored,
        room TRAMPOLINE, again EBUSY, target true;
    /// A function's result, before it is called.
    FmodRet = ["fmod_ret"] Function, Program, Last, FirstNonZero,
        room TRAMPOLINE, again EBUSY, target true;
    /// A hook of the security modules.
    Lsm = ["lsm"] Function, None, Last, FirstNonZero,
        room TRAMPOLINE, again EBUSY, target true;
    /// The same for the processes of a cgroup.
    LsmCgroup = ["lsm_cgroup"] Function, None, First, Allow,
        room CGROUP, again None, target true;
    /// A function's return, by trampoline.
    Fexit = ["fexit"] Function, Program, Last, Ignored,
        room TRAMPOLINE, again EBUSY, target true;
    /// Reading an iterator.
    Iterator = ["iter"] Iterator, None, First, Ignored, target true;
    /// A member of a struct of operations.
    StructOps = ["struct_ops"] StructOps, None, First, Value, room None, again EBUSY, target false;
    /// A packet at the driver.
    Xdp = ["xdp", "xdp.frags", "xdp/devmap", "xdp.frags/devmap", "xdp/cpumap", "xdp.frags/cpumap"]
        Context, None, First, Action, room ONE, again EBUSY, target false;
    /// A packet that comes in or goes out, before the classifiers.
    Tcx = ["tc/ingress", "tc/egress", "tcx/ingress", "tcx/egress", "netkit/primary", "netkit/peer"]
        Context, None, First, Next, room MPROG, again EEXIST, target false;
    /// A classifier or action: the first that decides does.
    Classifier = ["tc", "classifier", "action"] Context, None, First, Next, target false;
    /// A packet for a socket: how many bytes of it are kept.
    SocketFilter = ["socket"] Context, None, Last, Value, target false;
    /// A socket for a packet of a network namespace.
    SkLookup = ["sk_lookup"] Context, None, First, Select,
        room Some((64, Errno::E2BIG)), again EEXIST, target false;
    /// A netfilter hook.
    Netfilter = ["netfilter"] Context, None, First, Accept, room None, again EBUSY, target false;
    /// What the processes of a cgroup do.
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
    /// Everything else, where one program decides.
    Other = [
        "sk_reuseport", "sk_reuseport/migrate", "sk_skb", "sk_skb/verdict",
        "sk_skb/stream_parser", "sk_skb/stream_verdict", "sk_msg", "flow_dissector",
        "lwt_in", "lwt_out", "lwt_xmit", "lwt_seg6local", "lirc_mode2", "syscall", "freplace"
    ] Context, None, First, Value, target false;
}

impl Hook {
    /// The hook that a program is for: as its section says, or, where that says nothing,
    /// its types.
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

    /// The same with the attach type, where places of the hook are told apart by it.
    #[must_use]
    pub fn place_of(program: &Program) -> (Self, Option<AttachType>) {
        let hook = Self::of(program);
        let apart = hook.by_attach_type(program.prog_type);
        (hook, program.expected_attach_type.filter(|_| apart))
    }

    /// The hook of a section's prefix.
    fn of_section(prefix: &str) -> Self {
        let bare = prefix.strip_suffix(".s").unwrap_or(prefix);
        let found = Self::ALL
            .iter()
            .find(|hook| hook.rule().sections.contains(&bare));
        found.copied().unwrap_or(Self::Other)
    }

    /// Whether what fires is an event of this hook's kind.
    #[must_use]
    pub fn is_hit_by(self, fires: Fires) -> bool {
        let own = self.rule().fires;
        own == fires
            // A session is for both ends.
            || self == Self::KprobeSession && fires == Fires::KernelReturn
            || self == Self::UprobeSession && fires == Fires::UserReturn
    }

    /// Whether programs here change what the function returns.
    #[must_use]
    pub const fn modifies_return(self) -> bool {
        matches!(self.rule().results, Results::FirstNonZero)
    }

    /// Whether programs of one type attach here that are told apart by attach type.
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
        // A section of another type is a name and no more.
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
