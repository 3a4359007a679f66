//! Memory behind fields that are pointers: text and bytes that a test gives in place of an
//! address.

use super::error::EventError;
use super::event::{Event, EventKind};
use super::extras::Pointed;
use crate::vm::fields::{FieldValue, Shape, ValueProblem};
use crate::vm::world::World;
use crate::vm::world::kernel::KernelError;

/// Where such memory begins, in user space and in the kernel: nothing else is put there.
const USER: u64 = 0x2000_0000_0000;
const KERNEL: u64 = 0xffff_9000_0000_0000;
/// Room for each; a longer one takes the room of the next ones, too.
const ROOM: u64 = 1 << 16;
/// Number of rooms.
const ROOMS: u64 = 1 << 28;

/// The address of some bytes. It depends on the bytes only, so that an event that interrupts
/// another one does not change what the other's fields point to.
fn address_of(bytes: &[u8], in_kernel: bool) -> u64 {
    // FNV-1a.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let base = if in_kernel { KERNEL } else { USER };
    base + (hash >> 32) % ROOMS * ROOM
}

impl Event {
    /// Whether fields that are pointers point to kernel memory. Those of system calls and of
    /// probes in user space don't.
    fn points_into_kernel(&self) -> bool {
        let in_kernel = matches!(
            self.kind,
            EventKind::RawTracepoint
                | EventKind::Function
                | EventKind::Kprobe
                | EventKind::Kretprobe
                | EventKind::Iterator
                | EventKind::StructOps
        );
        let is_syscall = self.extras.as_ref().is_some_and(|it| it.inner.is_some());
        in_kernel && !is_syscall
    }

    /// Puts text or bytes into memory and sets a pointer to them, after `refused`, the error
    /// for the value itself. The error stands where the field is no pointer.
    pub(super) fn point(
        &mut self,
        field: &str,
        value: &FieldValue,
        refused: EventError,
    ) -> Result<(), EventError> {
        let bytes = match value {
            FieldValue::Text(text) => [text.as_bytes(), b"\0"].concat(),
            FieldValue::Bytes(bytes) => bytes.clone(),
            FieldValue::Int(_) | FieldValue::Ints(_) => return Err(refused),
        };
        let is_value = matches!(
            &refused,
            EventError::Value {
                problem: ValueProblem::Kind { .. }
                    | ValueProblem::NoConstant(_)
                    | ValueProblem::Length { .. },
                ..
            }
        );
        if !is_value || !self.may_point(field) {
            return Err(refused);
        }
        let in_kernel = self.points_into_kernel();
        let at = address_of(&bytes, in_kernel);
        self.change_value(field, &FieldValue::from(at))
            .map_err(|_| refused)?;
        let pointed = &mut self.extras.get_or_insert_default().pointed;
        pointed.retain(|other| other.at != at);
        pointed.push(Pointed {
            at,
            bytes,
            in_kernel,
        });
        Ok(())
    }

    /// Whether a field is a pointer, or an argument that may be one.
    fn may_point(&self, field: &str) -> bool {
        let extras = self.extras.as_ref();
        if extras.is_some_and(|extras| extras.arch.is_some()) {
            return true;
        }
        let part = self.layout().and_then(|layout| layout.part(field).ok());
        part.is_some_and(|part| {
            matches!(part.shape, Shape::Pointer)
                || field.starts_with("args[") && part.shape.size() == 8
        })
    }

    /// What fields of this event point to.
    fn pointed(&self) -> &[Pointed] {
        self.extras.as_ref().map_or(&[], |extras| &extras.pointed)
    }

    /// Puts the memory outside of the context into the world: what fields point to, and the
    /// stack of a function in user space.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub(crate) fn put_memory(&self, world: &mut World) -> Result<(), KernelError> {
        if let Some((at, bytes)) = self.user_stack() {
            world.user().map(at, bytes);
        }
        for Pointed {
            at,
            bytes,
            in_kernel,
        } in self.pointed()
        {
            if *in_kernel {
                let memory = world.kernel_memory();
                memory.put_bytes(*at, "memory that a field points to", bytes)?;
            } else {
                world.user().map(*at, bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::context::Arch;
    use crate::vm::events::Layout;

    fn field(event: &Event, name: &str) -> u64 {
        let at = event.layout().unwrap().offset(name).unwrap() as usize;
        u64::from_le_bytes(event.record()[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn text_for_a_pointer_is_put_into_user_memory() {
        let layout = Layout::of_syscall("sys_enter_openat", Arch::X86_64).unwrap();
        let event = Event::tracepoint(layout)
            .set("filename", "/etc/passwd")
            .unwrap();
        let [pointed] = event.pointed() else {
            panic!("{:?}", event.pointed());
        };
        assert_eq!(pointed.bytes, b"/etc/passwd\0");
        assert!(!pointed.in_kernel);
        assert_eq!(field(&event, "filename"), pointed.at);
        // A number stays what it was.
        let event = event.set("filename", 0x1000).unwrap();
        assert_eq!(field(&event, "filename"), 0x1000);
    }

    #[test]
    fn arguments_of_kernel_functions_point_into_the_kernel() {
        let event = Event::kprobe("vfs_open", Arch::HOST, None)
            .set("arg0", "x")
            .unwrap();
        assert!(event.pointed()[0].in_kernel);
        assert!(event.pointed()[0].at > KERNEL);
        let event = Event::ksyscall("openat", Arch::HOST)
            .set("filename", "x")
            .unwrap();
        assert!(!event.pointed()[0].in_kernel);
        let event = Event::uprobe("/bin/x:f", Arch::HOST, None)
            .arg(1, "x")
            .unwrap();
        assert!(!event.pointed()[0].in_kernel);
    }

    #[test]
    fn a_number_takes_no_text() {
        let layout = Layout::of_syscall("sys_enter_openat", Arch::X86_64).unwrap();
        let error = Event::tracepoint(layout).set("dfd", "/etc").unwrap_err();
        assert!(error.to_string().contains("dfd"), "{error}");
    }
}
