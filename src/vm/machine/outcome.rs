//! The outcome of an event.

use std::sync::Arc;

use zerocopy::FromBytes;

use super::engine::RanOn;
use super::fault::Fault;
use super::inject::Injected;
use super::leak::Leak;
use super::names::Names;
use super::redirect::Redirect;
use crate::spec::ContextKind;
use crate::spec::context::{self, Arch};
use crate::util::Errno;
use crate::vm::events::attach::{Level, MissedWhy};
use crate::vm::events::{KernSide, Sample};
use crate::vm::memory::Pointer;

/// What firing an event did: what each program returned, and its effects other than on maps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The programs that ran, in order.
    pub runs: Vec<Run>,
    /// Programs that were skipped because one was active on the same CPU.
    pub missed: Vec<Missed>,
    /// Whether the hook lets the event through. For tracepoints and kprobes: perf gets a
    /// sample (the AND of the programs' return values is not 0, `trace_call_bpf`). For
    /// packets: they continue up the stack. For cgroup and LSM hooks: the action is allowed.
    pub passed: bool,
    /// The combined result of all programs: the ANDed value of a tracepoint, the final return
    /// value of a function, an action, 0 or a negative error. `None` if the kernel ignores
    /// the results.
    pub verdict: Option<i64>,
    /// The return value set by `bpf_override_return`; the function was not called.
    pub overridden: Option<u64>,
    /// Events that fired in the middle of the runs, in order.
    pub nested: Vec<Nested>,
    /// The perf sample of a tracepoint that was not dropped.
    pub(crate) sample: Option<Sample>,
    /// Outputs of the programs, in order.
    pub outputs: Vec<Output>,
    /// The context's bytes afterwards.
    pub context: Vec<u8>,
    /// The packet's bytes afterwards, for types that have one.
    pub packet: Option<Vec<u8>>,
    /// The metadata before the packet afterwards: what is between `data_meta` and `data`.
    pub metadata: Vec<u8>,
    /// The kind of context, if it has named fields.
    pub context_kind: Option<ContextKind>,
    /// The kernel's state that goes with the context: a sysctl's new value, a tunnel.
    pub kern: KernSide,
    /// Accesses to map elements that had been deleted: the kernel allows them, but they may
    /// be bugs. At most 16 are kept.
    pub stale: Vec<Pointer>,
    /// Loads through invalid pointers to kernel objects: null, freed, or unmapped. They read
    /// 0, as in the kernel (`BPF_PROBE_MEM`), but may be bugs. Each is described as the fault
    /// that it would be elsewhere; at most 16 are kept.
    pub probed: Vec<Fault>,
    /// Ring-buffer records that programs reserved and neither submitted nor discarded (later
    /// records wait behind them), references that they did not release, and critical sections
    /// that they did not leave. The verifier rejects such a program.
    pub unreleased: Vec<Pointer>,
    /// Uninitialised bytes that left the programs, if
    /// [`Vm::find_uninit`](crate::Vm::find_uninit) is on.
    pub leaks: Vec<Leak>,
    /// Calls that failed because of an injection, in order.
    pub injected: Vec<Injected>,
    /// The names that methods accept; `None` if they are not known.
    pub(crate) names: Option<Arc<Names>>,
}

/// An attached program that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// The program's name.
    pub program: String,
    /// Why it was skipped.
    pub why: MissedWhy,
}

/// An event that happened in the middle of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nested {
    /// The event.
    pub event: String,
    /// The interrupt level at which it fired.
    pub level: Level,
    /// Its outcome.
    pub outcome: Outcome,
}

/// One program's run.
///
/// Equality ignores the engine: compare [`ran_on`](Self::ran_on) as well to check it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// The program's name.
    pub program: String,
    /// Register r0 at the end.
    pub r0: u64,
    /// Instructions executed; none if they were not counted
    /// ([`Vm::set_counting`](crate::Vm::set_counting)).
    pub insns: Option<u64>,
    /// The engine that ran it, and why the chosen one did not.
    pub ran_on: RanOn,
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        (&self.program, self.r0, self.insns) == (&other.program, other.r0, other.insns)
    }
}

impl Eq for Run {}

impl Run {
    /// The return value as the kernel sees it: the low 32 bits of r0 (`bpf_prog_run`).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the kernel truncates")]
    pub const fn returned(&self) -> u32 {
        self.r0 as u32
    }
}

/// An output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// A line for `trace_pipe`, without its trailing newline.
    Printk(String),
    /// A record for a perf buffer (`bpf_perf_event_output`).
    Perf {
        /// Name of the `BPF_MAP_TYPE_PERF_EVENT_ARRAY` map.
        map: Arc<str>,
        /// The CPU whose buffer got the record.
        cpu: u32,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A record for a ring buffer, as committed. The map holds a copy until the test consumes
    /// it.
    RingBuf {
        /// Name of the `BPF_MAP_TYPE_RINGBUF` map.
        map: Arc<str>,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A record that was dropped because the buffer is full.
    Lost {
        /// Name of the map.
        map: Arc<str>,
        /// The error that the helper returned.
        error: Errno,
    },
    /// A signal for the current task (`bpf_send_signal`).
    Signal(u32),
    /// Text of an iterator for its reader (`bpf_seq_printf`, `bpf_seq_write`).
    Seq(Vec<u8>),
    /// Where a helper redirected the packet or connection to.
    Redirect(Redirect),
    /// A copy of the packet that was sent to a device (`bpf_clone_redirect`).
    Clone {
        /// The device's index.
        ifindex: u32,
        /// Whether the copy is received on the device instead of sent out.
        ingress: bool,
        /// The packet.
        packet: Vec<u8>,
    },
    /// An acknowledgement of everything before this sequence number
    /// (`bpf_tcp_send_ack`).
    TcpAck(u32),
}

impl Outcome {
    /// A program's return value, the low 32 bits of r0; `None` if it did not run. If it ran
    /// more than once, that of the first run.
    ///
    /// # Panics
    /// If no program with this name is loaded; the message lists the programs. Returning
    /// `None` would let a test with a misspelled name pass. For names that are not fixed in
    /// the test, search [`runs`](Self::runs).
    #[must_use]
    #[track_caller]
    pub fn returned(&self, program: &str) -> Option<u32> {
        self.run(program).map(Run::returned)
    }

    /// A program's first run; `None` if it did not run.
    ///
    /// # Panics
    /// As for [`returned`](Self::returned).
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

    /// The runs that did not use the chosen engine, including those of nested events;
    /// [`Run::ran_on`] has the reason.
    pub fn fallbacks(&self) -> impl Iterator<Item = &Run> {
        let nested = self.nested.iter().flat_map(|nested| nested.outcome.all());
        self.runs
            .iter()
            .chain(nested)
            .filter(|run| run.ran_on.fallback.is_some())
    }

    /// All runs, including those of nested events.
    fn all(&self) -> Vec<&Run> {
        let nested = self.nested.iter().flat_map(|nested| nested.outcome.all());
        self.runs.iter().chain(nested).collect()
    }

    /// Appends the outcome of a later run on the same event.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.runs.append(&mut later.runs);
        self.missed.append(&mut later.missed);
        self.nested.append(&mut later.nested);
        self.outputs.append(&mut later.outputs);
        self.stale.append(&mut later.stale);
        self.probed.append(&mut later.probed);
        self.leaks.append(&mut later.leaks);
        self.injected.append(&mut later.injected);
        self.context = later.context;
        self.packet = later.packet;
        self.metadata = later.metadata;
        self.kern = later.kern;
        self.unreleased = later.unreleased;
        self.overridden = later.overridden.or(self.overridden);
    }

    /// The raw data of the perf sample (`PERF_SAMPLE_RAW`): a tracepoint's record, including
    /// the common fields. `None` if perf gets no sample, or the event is not a tracepoint.
    #[must_use]
    pub fn perf_sample(&self) -> Option<Vec<u8>> {
        self.sample.as_ref().map(Sample::raw)
    }

    /// How often a program was skipped, nested events included.
    ///
    /// # Panics
    /// As for [`returned`](Self::returned).
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

    /// The value of a context field after the run, by name (`mark`, `user_ip6[1]`, `retval`).
    /// `None` if there is no such field, or it is a pointer or not a number of up to 8 bytes.
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

    /// The last redirect that a helper decided on. The program's return value decides whether
    /// it is carried out.
    #[must_use]
    pub fn redirect(&self) -> Option<&Redirect> {
        self.outputs.iter().rev().find_map(|output| match output {
            Output::Redirect(redirect) => Some(redirect),
            _ => None,
        })
    }

    /// The text that iterators printed for their readers.
    #[must_use]
    pub fn seq(&self) -> String {
        let pieces = self.outputs.iter().filter_map(|output| match output {
            Output::Seq(bytes) => Some(bytes.as_slice()),
            _ => None,
        });
        let bytes = pieces.collect::<Vec<_>>().concat();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The records of the ring buffer or perf buffer with this name, as values of `T`, a
    /// `#[repr(C)]` struct with the fields of the program's.
    ///
    /// ```
    /// use bpflab::zerocopy::FromBytes;
    /// use bpflab::{Object, Vm};
    ///
    /// #[derive(FromBytes)]
    /// #[zerocopy(crate = "bpflab::zerocopy")] // not needed with zerocopy as a dependency
    /// #[repr(C)]
    /// struct Started {
    ///     pid: u32,
    ///     uid: u32,
    ///     comm: [u8; 16],
    ///     file: [u8; 64],
    /// }
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("tests/objects/ringbuf_exec.bpf.o")?)?;
    /// vm.attach_all()?;
    /// let event = vm.tracepoint("sched/sched_process_exec")?.set("pid", 42)?;
    /// let outcome = vm.fire(event)?;
    /// let started: Vec<Started> = outcome.records_as("started");
    /// assert_eq!(started[0].pid, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// As for [`records`](Self::records), and if a record has another size than `T`.
    #[must_use]
    #[track_caller]
    pub fn records_as<T: FromBytes>(&self, of: &str) -> Vec<T> {
        let mut all = Vec::new();
        for record in self.records(of) {
            let value = T::read_from_bytes(record);
            assert!(
                value.is_ok(),
                "a record of '{of}' has {} bytes, {} has {}",
                record.len(),
                std::any::type_name::<T>(),
                size_of::<T>()
            );
            all.extend(value);
        }
        all
    }

    /// The records of the ring buffer or perf buffer with this name.
    ///
    /// # Panics
    /// If no loaded program has such a buffer; the message lists the buffers. As for
    /// [`returned`](Self::returned), a misspelled name would let a test pass.
    /// [`outputs`](Self::outputs) has all records.
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
                insns: Some(2),
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
