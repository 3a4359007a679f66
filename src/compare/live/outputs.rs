//! Reads the firings of recorded programs, their ring and perf buffer records and printed lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::consume::Drain;
use super::error::LiveError;
use crate::compare::recording::{Cause, Loss, Output, OutputSource, WriteError, Writer};
use crate::instrument::{Firing, FiringFlags, RecordMaps};
use crate::isa::{CallTarget, Insn, decode_all};
use crate::kernel::outputs::{KernelRing, PerfBuffer, PrintkLines};
use crate::kernel::{KernelMap, LoadedMaps};
use crate::program::{MapDef, Program};
use crate::spec::{MapType, helpers};
use crate::util::{Errno, MapId};

/// Pages of a perf buffer for each CPU: 512 KiB.
const PAGES: usize = 128;

/// The readers of all rings and buffers that programs fill.
#[derive(Debug)]
pub(in crate::compare) struct Outputs {
    firings: KernelRing,
    rings: Vec<(u32, KernelRing)>,
    perf: Vec<(u32, PerfBuffer)>,
    printk: Option<PrintkLines>,
    printk_filter: PrintkFilter,
    /// By the numbers of programs.
    counts: Vec<Count>,
    /// Records that can't be parsed as firings.
    damaged: u64,
    /// How many outputs of each map are too long for a recording.
    too_long: BTreeMap<u32, u64>,
}

/// Counts of a program's firings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::compare) struct Count {
    /// All of them.
    pub firings: u64,
    /// Those whose log was too long.
    pub overflowed: u64,
}

/// Which printed lines are recorded: the reader gets those of all programs of the machine.
#[derive(Debug)]
enum PrintkFilter {
    /// All lines.
    All,
    /// Lines of processes that are or were targets.
    Targets {
        maps: Arc<LoadedMaps>,
        targets: MapId,
        /// The map of targets that have exited, with the time.
        exited: Option<MapId>,
        known: FxHashSet<u32>,
    },
}

impl PrintkFilter {
    /// Whether a line that a process printed at this time is recorded.
    fn includes(&mut self, process: u32, time: u64) -> bool {
        match self {
            Self::All => true,
            Self::Targets {
                maps,
                targets,
                exited,
                known,
            } => {
                if known.contains(&process) {
                    return true;
                }
                let key = process.to_ne_bytes();
                if matches!(maps.lookup(*targets, &key), Ok(Some(_))) {
                    return known.insert(process);
                }
                // It may have exited before its line was read, and its id may have been reused.
                let ended = exited.and_then(|exited| maps.lookup(exited, &key).ok().flatten());
                let ended = ended.and_then(|time| time.try_into().ok());
                ended.is_some_and(|ended| time <= u64::from_ne_bytes(ended))
            }
        }
    }
}

impl Outputs {
    /// Opens the readers, before programs are attached. `programs` have their numbers.
    pub fn open<'p>(
        maps: &Arc<LoadedMaps>,
        record: &RecordMaps,
        own: &[MapDef],
        programs: impl Iterator<Item = (u32, &'p Program)>,
        all: bool,
    ) -> Result<Self, LiveError> {
        let map = |id: MapId| maps.map(id).ok_or(LiveError::system("a map")(Errno::EBADF));
        let ring = |map: KernelMap<'_>| map.ring().map_err(LiveError::system("mapping a ring"));
        let mut outputs = Self {
            firings: ring(map(record.ring)?)?,
            rings: Vec::new(),
            perf: Vec::new(),
            printk: None,
            printk_filter: match all {
                true => PrintkFilter::All,
                false => PrintkFilter::Targets {
                    maps: maps.clone(),
                    targets: record.targets,
                    exited: None,
                    known: FxHashSet::default(),
                },
            },
            counts: Vec::new(),
            damaged: 0,
            too_long: BTreeMap::new(),
        };
        for (id, def) in (0..).zip(own) {
            let Some(map) = maps.map(MapId(id)) else {
                continue;
            };
            match def.map_type {
                MapType::Ringbuf => outputs.rings.push((id, ring(map)?)),
                MapType::PerfEventArray => {
                    outputs.perf.push((id, PerfBuffer::open(&map, PAGES)?));
                }
                _ => {}
            }
        }
        for (number, program) in programs {
            let room = usize::try_from(number).unwrap_or(0) + 1;
            outputs
                .counts
                .resize(room.max(outputs.counts.len()), Count::default());
            if outputs.printk.is_none() && prints(program) {
                outputs.printk = Some(PrintkLines::open().map_err(|error| LiveError::Attach {
                    program: "the listener to bpf_trace_printk".to_owned(),
                    error,
                    absent: None,
                })?);
            }
        }
        Ok(outputs)
    }

    /// Records lines of exited processes, too, that were targets when they printed, by this map.
    pub fn with_exited(mut self, map: MapId) -> Self {
        if let PrintkFilter::Targets { exited, .. } = &mut self.printk_filter {
            *exited = Some(map);
        }
        self
    }

    /// The counts of a program.
    pub fn count(&self, program: u32) -> Count {
        let count = usize::try_from(program)
            .ok()
            .and_then(|number| self.counts.get(number));
        count.copied().unwrap_or_default()
    }

    /// Losses, except of whole firings.
    pub fn losses(&self) -> Result<Vec<Loss>, LiveError> {
        let loss = |cause, of, count| Loss {
            cause,
            cpu: None,
            of,
            count,
        };
        let mut losses = vec![loss(Cause::Damaged, None, self.damaged)];
        for (number, count) in (0..).zip(&self.counts) {
            losses.push(loss(Cause::LogFull, Some(number), count.overflowed));
        }
        for (map, perf) in &self.perf {
            losses.push(loss(Cause::PerfFull, Some(*map), perf.lost()));
        }
        for (map, count) in &self.too_long {
            losses.push(loss(Cause::TooLong, Some(*map), *count));
        }
        if let Some(printk) = &self.printk {
            losses.push(loss(Cause::PrintkFull, None, printk.lost()?));
        }
        losses.retain(|loss| loss.count > 0);
        Ok(losses)
    }
}

impl Drain for Outputs {
    fn drain<W: Write>(&mut self, writer: &mut Writer<W>) -> Result<usize, WriteError> {
        let Self {
            firings,
            rings,
            perf,
            printk,
            printk_filter,
            counts,
            damaged,
            too_long,
        } = self;
        let mut written = Ok(());
        let mut taken = firings.drain(|record| {
            if written.is_err() {
                return; // Writing has failed: the rest is dropped.
            }
            match Firing::parse(record) {
                Ok(firing) => {
                    let number = usize::try_from(firing.program).unwrap_or(usize::MAX);
                    if let Some(count) = counts.get_mut(number) {
                        count.firings += 1;
                        let overflowed = firing.flags.contains(FiringFlags::OVERFLOW);
                        count.overflowed += u64::from(overflowed);
                    }
                }
                Err(_) => *damaged += 1,
            }
            written = writer.firing(record);
        });
        written?;
        let mut sink = Sink {
            writer,
            too_long,
            written: Ok(()),
        };
        for (map, ring) in rings {
            let output = Output {
                source: OutputSource::Ring,
                map: Some(*map),
                cpu: None,
                pid: None,
                time: None,
                bytes: &[],
            };
            taken += ring.drain(|bytes| sink.write(&Output { bytes, ..output }));
        }
        for (map, perf) in perf {
            taken += perf.drain(|cpu, bytes| {
                sink.write(&Output {
                    source: OutputSource::Perf,
                    map: Some(*map),
                    cpu: Some(cpu),
                    pid: None,
                    time: None,
                    bytes,
                });
            });
        }
        if let Some(printk) = printk {
            taken += printk.drain(|line| {
                if printk_filter.includes(line.pid, line.time) {
                    sink.write(&Output {
                        source: OutputSource::Printk,
                        map: None,
                        cpu: Some(line.cpu),
                        pid: Some(line.tid),
                        time: Some(line.time),
                        bytes: line.text,
                    });
                }
            });
        }
        sink.written.map(|()| taken)
    }
}

/// Writes outputs until writing fails.
struct Sink<'w, W: Write> {
    writer: &'w mut Writer<W>,
    too_long: &'w mut BTreeMap<u32, u64>,
    written: Result<(), WriteError>,
}

impl<W: Write> Sink<'_, W> {
    fn write(&mut self, output: &Output<'_>) {
        if self.written.is_err() {
            return;
        }
        match self.writer.output(output) {
            Err(WriteError::TooLong { .. }) => {
                if let Some(map) = output.map {
                    *self.too_long.entry(map).or_default() += 1;
                }
            }
            written => self.written = written,
        }
    }
}

/// Whether a program prints lines.
fn prints(program: &Program) -> bool {
    decode_all(&program.insns).any(|(_, insn)| match insn {
        Ok(Insn::Call(CallTarget::Helper(id))) => helpers::helper(id)
            .is_some_and(|helper| ["trace_printk", "trace_vprintk"].contains(&helper.name)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    #[test]
    fn who_prints_is_seen() {
        let one_liners = Object::open("examples/bpf/one_liners.bpf.o").unwrap();
        let printing = one_liners.programs().map(Result::unwrap).filter(prints);
        assert_ne!(printing.count(), 0);
        let hist = Object::open("examples/bpf/write_hist.bpf.o").unwrap();
        assert!(
            !hist
                .programs()
                .map(Result::unwrap)
                .any(|program| prints(&program))
        );
    }
}
