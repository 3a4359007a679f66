//! The event that a program's section name implies.

use super::attach_point::AttachPoint;
use super::error::{Error, Result};
use super::vm::Vm;
use crate::program::Program;
use crate::spec::ProgType;
use crate::spec::context::Arch;
use crate::vm::ProgramHandle;
use crate::vm::attach::{Fires, Hook};
use crate::vm::events::{Event, EventError, Layout};

/// Bytes of the packet that a program gets by default.
const PACKET: usize = 64;

impl Vm {
    /// An event of the hook that a program is attached to, all zero: a tracepoint with its
    /// fields, a raw tracepoint or a function with its arguments, a packet of 64 bytes, or
    /// the context of the program's type.
    ///
    /// `place`, if given, replaces the target of the section name: `group/name` of a
    /// tracepoint, a name for the others.
    ///
    /// # Errors
    /// [`Error::Attach`] where neither gives the event; the errors of
    /// [`tracepoint`](Self::tracepoint) and [`function`](Self::function).
    pub fn event_for(&self, program: &Program, place: Option<&str>) -> Result<Event> {
        let mut aimed = program.clone();
        if let Some(place) = place {
            aimed.attach_target = Some(place.to_owned());
        }
        match AttachPoint::of(&aimed) {
            None => Err(Error::Attach {
                program: program.name.clone(),
                why: format!(
                    "its section '{}' does not say to what; name an event, such as \
                     'syscalls/sys_enter_write'",
                    program.section
                ),
            }),
            Some(point) => self.event_at(program, &point),
        }
    }

    /// An event of an attach point.
    fn event_at(&self, program: &Program, point: &AttachPoint) -> Result<Event> {
        let target = point.target.as_deref().unwrap_or_default();
        Ok(match point.hook.rule().fires {
            Fires::Tracepoint => self.tracepoint(target).or_else(|error| {
                let declared = Layout::declared_by(program, target);
                declared.map(Event::tracepoint).ok_or(error)
            })?,
            Fires::RawTracepoint => self.raw_tracepoint(target)?,
            Fires::KernelEntry if point.hook == Hook::Ksyscall => self.ksyscall(target)?,
            Fires::KernelEntry => self.kprobe(target)?,
            Fires::KernelReturn if point.hook == Hook::Kretsyscall => self.kretsyscall(target)?,
            Fires::KernelReturn => self.kretprobe(target)?,
            Fires::UserEntry => self.uprobe(target)?,
            Fires::UserReturn => self.uretprobe(target)?,
            Fires::Usdt => self.usdt(target)?,
            // The function that the kernel calls for a hook (`include/linux/bpf_lsm.h`).
            Fires::Function if matches!(point.hook, Hook::Lsm | Hook::LsmCgroup) => {
                self.function(&format!("bpf_lsm_{target}"))?
            }
            Fires::Function => self.function(target)?,
            Fires::Iterator => self.iterator(target)?,
            Fires::StructOps => match target.split_once('.') {
                Some((name, member)) => self.struct_ops_call(name, member)?,
                None => context(program.prog_type, program.arch)?,
            },
            Fires::Context => context(program.prog_type, program.arch)?,
            Fires::ProgramCall => context(program.owner_of_context().prog_type, program.arch)?,
        })
    }

    /// A call of a kernel function, for `fentry`, `fexit`, `fmod_ret` and `lsm` programs:
    /// arguments by name, the return value as `ret`.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where no BTF has the function.
    pub fn function(&self, name: &str) -> Result<Event> {
        let layout = match self.first_btf(|btf| Layout::of_function(btf, name)) {
            Some(layout) => layout?,
            None => {
                return Err(Error::Event(EventError::NoLayout {
                    event: name.to_owned(),
                    tried: vec![
                        format!("no BTF here has a function {name}"),
                        "give the BTF of a kernel that has it".to_owned(),
                    ],
                }));
            }
        };
        Ok(Event::function(layout))
    }

    /// The loaded program of a handle.
    #[must_use]
    pub fn program(&self, handle: ProgramHandle) -> Option<&Program> {
        self.programs
            .images
            .get(handle.index())
            .map(|image| &**image.program())
    }

    /// The handles of all loaded programs, in the order of [`programs`](Self::programs).
    pub fn handles(&self) -> impl Iterator<Item = ProgramHandle> + use<> {
        (0..u32::try_from(self.programs.images.len()).unwrap_or(u32::MAX)).map(ProgramHandle)
    }
}

/// The default event for a program type.
fn context(prog_type: ProgType, arch: Arch) -> Result<Event> {
    let packet = Event::packet(vec![0; PACKET]);
    if packet.accepts(prog_type) {
        return Ok(packet);
    }
    // Types without fields, such as syscall, start with an empty context.
    Ok(Event::context(prog_type, arch).unwrap_or_else(|_| Event::bytes(Vec::new())))
}
