//! The firings and events of a recording, with the fields of their contexts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::by_time::{ByTime, OwnedSample};
use super::error::ReplayError;
use super::source::{Opened, RecordingSource, resource};
use crate::btf::Btf;
use crate::compare::recording::{Header, Part, Resource, Sample};
use crate::harness::Vm;
use crate::instrument::Firing;
use crate::object::{Object, Target};
use crate::vm::World;
use crate::vm::events::{EventKind, FieldValue, Layout};

/// A firing of a recorded program, or an event that was recorded without a program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedFiring {
    /// The name of the program; `None` of an event without one.
    pub program: Option<String>,
    /// The event, as sections name it: `tp/syscalls/sys_enter_write`.
    pub event: String,
    /// Nanoseconds since boot at the start (`bpf_ktime_get_ns`).
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// The process (`tgid`).
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// What the program returned.
    pub returned: Option<u64>,
    /// The fields of the context that are in the recording, in their order.
    pub fields: Vec<(String, FieldValue)>,
    /// Whether the layout of the context is known, so that the fields are its fields.
    pub decoded: bool,
}

/// One program or event, by the number of its firings or samples.
struct Source {
    program: Option<String>,
    event: String,
    layout: Option<Layout>,
}

impl RecordingSource {
    /// Passes each firing, or each event that was recorded without a program, to `each`, in the
    /// order of their times, until it breaks. `object` gives the layouts of contexts; by default it is the
    /// [object](Self::object) of the recording.
    ///
    /// # Errors
    /// [`ReplayError`]: the recording can't be read up to its end.
    pub fn each_firing(
        &self,
        object: Option<&Object>,
        mut each: impl FnMut(RecordedFiring) -> ControlFlow<()>,
    ) -> Result<(), ReplayError> {
        let mut opened = self.open()?;
        let header = opened.header().clone();
        let known = match object {
            Some(object) => Some(object.clone()),
            None => self.object()?,
        };
        let sources = Sources::of(&header, known, &mut opened);
        let mut recording = self.open()?;
        let mut order = ByTime::default();
        let mut tell = |owned: OwnedSample| match sources.firing(&owned.sample()) {
            Some(firing) => each(firing),
            None => ControlFlow::Continue(()),
        };
        while let Some(part) = recording.next_part()? {
            match part {
                Part::Samples(samples) => samples.for_each(|sample| order.add(&sample)),
                Part::Firings(firings) => {
                    for firing in firings.filter_map(|bytes| Firing::parse(bytes).ok()) {
                        add(&mut order, &firing);
                    }
                }
                _ => {}
            }
            while let Some(owned) = order.next() {
                if tell(owned).is_break() {
                    return Ok(());
                }
            }
        }
        while let Some(owned) = order.last() {
            if tell(owned).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// Bytes of the return value, which stands before the context in what waits for its turn.
const RETURNED: usize = 8;

fn add(order: &mut ByTime, firing: &Firing<'_>) {
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0);
    let mut raw = firing.returned.to_le_bytes().to_vec();
    raw.extend_from_slice(firing.context);
    order.add(&Sample {
        event: firing.program,
        cpu: firing.cpu,
        pid: half(firing.pid_tgid >> 32),
        tid: half(firing.pid_tgid),
        time: firing.time,
        raw: &raw,
    });
}

/// What the numbers of a recording refer to. A recording has either programs or events.
struct Sources {
    are_programs: bool,
    by_number: BTreeMap<u32, Source>,
}

impl Sources {
    fn of(header: &Header, object: Option<Object>, recording: &mut Opened) -> Self {
        let are_programs = !header.programs.is_empty();
        if !are_programs {
            let by_number = header.events.iter().map(|event| {
                let source = Source {
                    program: None,
                    event: format!("tp/{}/{}", event.group, event.name),
                    layout: Layout::from_format(&event.group, &event.format).ok(),
                };
                (event.number, source)
            });
            return Self {
                are_programs,
                by_number: by_number.collect(),
            };
        }
        let vm = object.and_then(|object| machine(object, header, recording));
        let by_number = header.programs.iter().map(|program| {
            let layout = vm.as_ref().and_then(|vm| layout(vm, &program.name));
            let source = Source {
                program: Some(program.name.clone()),
                event: program.section.clone(),
                layout,
            };
            (program.number, source)
        });
        Self {
            are_programs,
            by_number: by_number.collect(),
        }
    }

    fn firing(&self, sample: &Sample<'_>) -> Option<RecordedFiring> {
        let source = self.by_number.get(&sample.event)?;
        let (returned, context) = match self.are_programs {
            true => {
                let (returned, context) = sample.raw.split_at_checked(RETURNED)?;
                (Some(u64::from_le_bytes(returned.try_into().ok()?)), context)
            }
            false => (None, sample.raw),
        };
        let layout = source.layout.as_ref();
        Some(RecordedFiring {
            program: source.program.clone(),
            event: source.event.clone(),
            time: sample.time,
            cpu: sample.cpu,
            pid: sample.pid,
            tid: sample.tid,
            returned,
            fields: layout.map_or_else(Vec::new, |layout| layout.values(context)),
            decoded: layout.is_some(),
        })
    }
}

/// A machine that knows the events of an object's programs; `None` if the object can't be
/// loaded.
fn machine(mut object: Object, header: &Header, recording: &mut Opened) -> Option<Vm> {
    let types = resource(recording, Resource::KERNEL_BTF).ok().flatten();
    if let Some(btf) = types.and_then(|types| Btf::parse(&types).ok()) {
        object.set_target(Target::Kernel(btf));
    }
    let mut vm = Vm::with_world(World::with_cpus(header.possible_cpus.max(1)));
    vm.load_unverified(object).ok()?;
    Some(vm)
}

/// The layout of a program's context, where the context is a record or arguments.
fn layout(vm: &Vm, program: &str) -> Option<Layout> {
    let handle = vm.program_handle(program).ok()?;
    let event = vm.event_for(vm.program(handle)?, None).ok()?;
    let is_laid_out = matches!(
        event.kind(),
        EventKind::Tracepoint | EventKind::RawTracepoint | EventKind::Function
    );
    event.layout().filter(|_| is_laid_out).cloned()
}
