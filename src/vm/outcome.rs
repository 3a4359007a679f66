//! What came of an event.

use std::sync::Arc;

use super::attach::{Level, MissedWhy};
use super::engine::RanOn;
use super::events::{KernSide, Sample};
use super::fault::Fault;
use super::inject::Injected;
use super::memory::Pointer;
use super::names::Names;
use super::redirect::Redirect;
use crate::spec::ContextKind;
use crate::spec::context::{self, Arch};
use crate::util::Errno;

/// What came of firing an event: what each program returned, and what it left
/// outside of its maps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The programs that ran, in order.
    pub runs: Vec<Run>,
    /// Programs that did not run because one was active on the same CPU.
    pub missed: Vec<Missed>,
    /// Whether what happens goes on: to the perf buffer, where for tracepoints and
    /// kprobes the AND of what the programs returned is not 0 (`trace_call_bpf`); up the
    /// network stack; whether a cgroup's or a security module's programs allow it.
    pub passed: bool,
    /// What the attach point makes of all results: the ANDed value of a tracepoint, what
    /// a function returns after all, an action, 0 or a negative error. None where the
    /// kernel makes nothing of them.
    pub verdict: Option<i64>,
    /// What `bpf_override_return` made the function return, which was not called.
    pub overridden: Option<u64>,
    /// What happened in the middle of the runs, in order.
    pub nested: Vec<Nested>,
    /// What the perf buffer gets of a tracepoint that passed.
    pub(crate) sample: Option<Sample>,
    /// What programs gave out, in order.
    pub outputs: Vec<Output>,
    /// The context's bytes afterwards.
    pub context: Vec<u8>,
    /// The packet's bytes afterwards, for types that have one.
    pub packet: Option<Vec<u8>>,
    /// What the context is, where it has fields of its own names.
    pub context_kind: Option<ContextKind>,
    /// The kernel's side of the context afterwards: a sysctl's new value, a tunnel.
    pub kern: KernSide,
    /// Uses of map elements that had been deleted: allowed by the kernel,
    /// suspicious to a test. At most 16 are kept.
    pub stale: Vec<Pointer>,
    /// Loads through pointers to the kernel's objects that led nowhere: over a null
    /// pointer, to an object that was freed, to a number that is no address. They read
    /// zero, as in the kernel (`BPF_PROBE_MEM`), and a test may not have meant that. Each
    /// is told as the fault that it would be elsewhere; at most 16 are kept.
    pub probed: Vec<Fault>,
    /// Ring-buffer records that programs reserved and neither submitted nor
    /// discarded, so that later records wait behind them; objects, iterators and
    /// sections that they did not give back or leave. The verifier rejects such a
    /// program.
    pub unreleased: Vec<Pointer>,
    /// Calls that failed because the test wanted them to, in order.
    pub injected: Vec<Injected>,
    /// The names that it may be asked for; none where nobody knows them.
    pub(crate) names: Option<Arc<Names>>,
}

/// A program that is attached where an event happened, and did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    /// The program's name.
    pub program: String,
    /// Why not.
    pub why: MissedWhy,
}

/// An event that happened in the middle of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// What fired.
    pub event: String,
    /// What the CPU did.
    pub level: Level,
    /// What came of it.
    pub outcome: Outcome,
}

/// One program's part in an event.
///
/// Two runs are equal if the same came of them, whichever engine ran them: who compares
/// engines asks each for [`ran_on`](Self::ran_on), too.
#[derive(Debug, Clone)]
pub struct Run {
    /// The program's name.
    pub program: String,
    /// Register r0 at the end.
    pub r0: u64,
    /// Instructions executed.
    pub insns: u64,
    /// The engine that ran it, and why it is not the one that was chosen.
    pub ran_on: RanOn,
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        (&self.program, self.r0, self.insns) == (&other.program, other.r0, other.insns)
    }
}

impl Eq for Run {}

impl Run {
    /// What the kernel sees of r0: the low 32 bits (`bpf_prog_run`).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the kernel truncates")]
    pub const fn returned(&self) -> u32 {
        self.r0 as u32
    }
}

/// Something that a program gave to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A line for `trace_pipe`, without its newline where it ends in one.
    Printk(String),
    /// A record for a perf buffer (`bpf_perf_event_output`).
    Perf {
        /// Name of the `BPF_MAP_TYPE_PERF_EVENT_ARRAY` map.
        map: Arc<str>,
        /// The CPU whose buffer got it.
        cpu: u32,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A record for a ring buffer, as committed. It also waits in the map until
    /// the test takes it.
    RingBuf {
        /// Name of the `BPF_MAP_TYPE_RINGBUF` map.
        map: Arc<str>,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A record that found no room.
    Lost {
        /// Name of the map.
        map: Arc<str>,
        /// What the program was told.
        error: Errno,
    },
    /// A signal for the current task (`bpf_send_signal`).
    Signal(u32),
    /// What an iterator printed for who reads it (`bpf_seq_printf`, `bpf_seq_write`).
    Seq(Vec<u8>),
    /// Where a helper sent the packet or connection.
    Redirect(Redirect),
    /// A copy of the packet that was sent to a device (`bpf_clone_redirect`).
    Clone {
        /// The device's number.
        ifindex: u32,
        /// Whether it arrives there, instead of leaving from there.
        ingress: bool,
        /// The packet.
        packet: Vec<u8>,
    },
    /// An acknowledgement of everything before this sequence number
    /// (`bpf_tcp_send_ack`).
    TcpAck(u32),
}

impl Outcome {
    /// What a program returned, the low 32 bits of r0; `None` where it did not
    /// run. The first run counts where it ran more than once.
    ///
    /// # Panics
    /// Where no program of this name is loaded, with the names that are: `None` would let
    /// a test pass whose author mistyped it, and a test has nothing else to do with an
    /// error than to fail. [`runs`](Self::runs) has all runs, for names that are not a
    /// test's own.
    #[must_use]
    #[track_caller]
    pub fn returned(&self, program: &str) -> Option<u32> {
        self.run(program).map(Run::returned)
    }

    /// A program's run.
    ///
    /// # Panics
    /// As of [`returned`](Self::returned).
    #[must_use]
    #[track_caller]
    pub fn run(&self, program: &str) -> Option<&Run> {
        let found = self.runs.iter().find(|run| run.program == program);
        if found.is_none() {
            self.check_program(program);
        }
        found
    }

    #[track_caller]
    fn check_program(&self, program: &str) {
        let known = self
            .names
            .as_ref()
            .map(|names| names.check_program(program));
        if let Some(Err(unknown)) = known {
            panic!("{unknown}");
        }
    }

    /// The runs that were not on the engine that was chosen, those of events in the middle
    /// included; [`Run::ran_on`] says why.
    pub fn fallbacks(&self) -> impl Iterator<Item = &Run> {
        let nested = self.nested.iter().flat_map(|nested| nested.outcome.all());
        self.runs
            .iter()
            .chain(nested)
            .filter(|run| run.ran_on.fallback.is_some())
    }

    /// All runs, those of events in the middle included.
    fn all(&self) -> Vec<&Run> {
        let nested = self.nested.iter().flat_map(|nested| nested.outcome.all());
        self.runs.iter().chain(nested).collect()
    }

    /// Adds what came of a later run on the same event.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.runs.append(&mut later.runs);
        self.missed.append(&mut later.missed);
        self.nested.append(&mut later.nested);
        self.outputs.append(&mut later.outputs);
        self.stale.append(&mut later.stale);
        self.probed.append(&mut later.probed);
        self.injected.append(&mut later.injected);
        self.context = later.context;
        self.packet = later.packet;
        self.kern = later.kern;
        self.unreleased = later.unreleased;
        self.overridden = later.overridden.or(self.overridden);
    }

    /// The raw data of the sample that readers of the perf event get (`PERF_SAMPLE_RAW`):
    /// a tracepoint's record, common fields included; none where the event was dropped, or
    /// is no tracepoint.
    #[must_use]
    pub fn perf_sample(&self) -> Option<Vec<u8>> {
        self.sample.as_ref().map(Sample::raw)
    }

    /// How often a program was skipped, events in the middle of this one included.
    ///
    /// # Panics
    /// As of [`returned`](Self::returned).
    #[must_use]
    #[track_caller]
    pub fn missed_by(&self, program: &str) -> usize {
        self.check_program(program);
        let own = self
            .missed
            .iter()
            .filter(|missed| missed.program == program);
        let nested = self
            .nested
            .iter()
            .map(|nested| nested.outcome.missed_by(program));
        own.count() + nested.sum::<usize>()
    }

    /// A field of the context afterwards, by its name (`mark`, `user_ip6[1]`, `retval`):
    /// what the program left there. `None` for a field that is not there, or is no number
    /// of at most 8 bytes, or a pointer.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<u64> {
        let layout = context::layout(self.context_kind?, Arch::HOST)?;
        let (offset, size) = layout.find(name)?;
        let at = offset as usize;
        let bytes = self.context.get(at..at + size as usize)?;
        match *bytes {
            [a] => Some(a.into()),
            [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }

    /// The lines that programs printed with `bpf_printk`, in order.
    pub fn printk(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().filter_map(|output| match output {
            Output::Printk(line) => Some(line.as_str()),
            _ => None,
        })
    }

    /// Where the last helper that decided on it sent the packet or connection; whether it
    /// goes there, the program's return value says.
    #[must_use]
    pub fn redirect(&self) -> Option<&Redirect> {
        self.outputs.iter().rev().find_map(|output| match output {
            Output::Redirect(redirect) => Some(redirect),
            _ => None,
        })
    }

    /// All that iterators printed for who reads them, as text.
    #[must_use]
    pub fn seq(&self) -> String {
        let pieces = self.outputs.iter().filter_map(|output| match output {
            Output::Seq(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        let bytes = pieces.collect::<Vec<_>>().concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The records that went to a ring buffer or perf buffer of this name.
    ///
    /// # Panics
    /// Where no loaded program has such a buffer, with the names of those that there are,
    /// for the reason that [`returned`](Self::returned) gives. [`outputs`](Self::outputs)
    /// has all records.
    #[track_caller]
    pub fn records(&self, of: &str) -> impl Iterator<Item = &[u8]> {
        let known = self.names.as_ref().map(|names| names.check_buffer(of));
        if let Some(Err(unknown)) = known {
            panic!("{unknown}");
        }
        self.outputs.iter().filter_map(move |output| match output {
            Output::Perf { map, data, .. } | Output::RingBuf { map, data } if **map == *of => {
                Some(data.as_slice())
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::EngineKind;
    use super::*;

    #[test]
    fn results_and_outputs_by_name() {
        let outcome = Outcome {
            runs: vec![Run {
                program: "p".into(),
                r0: 0xffff_ffff_0000_0001,
                insns: 2,
                ran_on: RanOn::chosen(EngineKind::Checked),
            }],
            outputs: vec![
                Output::Printk("hello".into()),
                Output::RingBuf {
                    map: "rb".into(),
                    data: vec![1],
                },
                Output::RingBuf {
                    map: "other".into(),
                    data: vec![2],
                },
            ],
            ..Outcome::default()
        };
        assert_eq!(outcome.returned("p"), Some(1));
        assert_eq!(outcome.returned("q"), None);
        assert_eq!(outcome.printk().collect::<Vec<_>>(), ["hello"]);
        assert_eq!(outcome.records("rb").collect::<Vec<_>>(), [[1]]);
    }
}
