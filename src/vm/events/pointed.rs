//! Memory behind fields that are pointers: text and bytes that a test gives in place of an
//! address.

use super::error::EventError;
use super::event::{Event, EventKind};
use super::extras::Pointed;
use crate::vm::fields::{FieldValue, Points, Shape, ValueProblem};
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

/// Whether a field is an argument of unknown type: one of `args`, or `arg0`.
fn is_untyped(name: &str) -> bool {
    let number = name.strip_prefix("arg").unwrap_or_default();
    name == "args" || number.parse::<u8>().is_ok()
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

    /// As `change`, for bytes behind a pointer: they are never the address itself, however many
    /// they are. `None` for other values and fields.
    pub(super) fn change_pointed(
        &mut self,
        field: &str,
        value: &FieldValue,
    ) -> Option<Result<(), EventError>> {
        let FieldValue::Bytes(bytes) = value else {
            return None;
        };
        let in_kernel = self.pointee(field)?;
        Some(self.put(field, bytes.clone(), in_kernel))
    }

    /// Puts text into memory and sets a pointer to it, after `refused`, the error for the value
    /// itself. The error stands where the field is no pointer.
    pub(super) fn point(
        &mut self,
        field: &str,
        value: &FieldValue,
        refused: EventError,
    ) -> Result<(), EventError> {
        let is_value = matches!(
            &refused,
            EventError::Value {
                problem: ValueProblem::Kind { .. } | ValueProblem::NoConstant(_),
                ..
            }
        );
        match (value, self.pointee(field)) {
            (FieldValue::Text(text), Some(in_kernel)) if is_value => {
                self.put(field, [text.as_bytes(), b"\0"].concat(), in_kernel)
            }
            _ => Err(refused),
        }
    }

    /// Puts bytes into memory when the event fires, and sets a field to their address.
    fn put(&mut self, field: &str, bytes: Vec<u8>, in_kernel: bool) -> Result<(), EventError> {
        let at = address_of(&bytes, in_kernel);
        self.change_value(field, &FieldValue::from(at))?;
        let pointed = &mut self.extras.get_or_insert_default().pointed;
        pointed.retain(|other| other.at != at);
        pointed.push(Pointed {
            at,
            bytes,
            in_kernel,
        });
        Ok(())
    }

    /// Whether a field that is a pointer, or an argument that may be one, points into the kernel;
    /// `None` for other fields.
    fn pointee(&self, path: &str) -> Option<bool> {
        let in_kernel = self.points_into_kernel();
        let extras = self.extras.as_deref();
        let Some((extras, arch)) = extras.and_then(|extras| Some((extras, extras.arch?))) else {
            let part = self.layout()?.part(path).ok()?;
            return match part.shape {
                Shape::Pointer => Some(in_kernel && part.field.points != Points::IntoUser),
                shape if shape.size() == 8 && is_untyped(&part.field.name) => Some(in_kernel),
                _ => None,
            };
        };
        let (layout, registers) = match &extras.inner {
            Some(inner) => (&*inner.layout, arch.syscall_arguments()),
            None => (self.layout()?, arch.arguments()),
        };
        let register = match self.argument_named(path) {
            Some(_) if self.kind == EventKind::Usdt => return Some(in_kernel),
            Some(n) => match registers.get(n.saturating_sub(1)) {
                Some(register) => &format!("regs.{register}"),
                // On the stack.
                None => return Some(in_kernel),
            },
            None => path,
        };
        let at = layout.part(register).ok()?.offset;
        // Parameters come before the registers that they are in.
        let field = layout.fields.iter().find(|field| field.offset == at)?;
        match field.points {
            Points::Nowhere => None,
            Points::IntoUser => Some(false),
            Points::ByEvent => Some(in_kernel),
        }
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
    use crate::btf::{Builder, Encoding, Linkage, Param};
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
    fn bytes_are_memory_whatever_their_number() {
        let layout = Layout::of_syscall("sys_enter_openat", Arch::X86_64).unwrap();
        let event = Event::tracepoint(layout);
        for len in [7, 8, 9] {
            let event = event.clone().set("filename", vec![7u8; len]).unwrap();
            assert_eq!(event.pointed()[0].bytes, vec![7u8; len]);
            assert_eq!(field(&event, "filename"), event.pointed()[0].at);
        }
    }

    /// `f(const char __user *path, const char *name, int flags)`.
    fn function() -> Layout {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let char_ = b.int("char", 1, Encoding::Char);
        let text = b.constant(char_);
        let tagged = b.type_tag("user", text, false);
        let (user, kernel) = (b.ptr(tagged), b.ptr(text));
        let params = [("path", user), ("name", kernel), ("flags", int)];
        let proto = b.prototype(int, &params.map(|(name, ty)| Param { name, ty }));
        b.function("f", proto, Linkage::Global);
        Layout::of_function(&b.build().unwrap(), "f").unwrap()
    }

    #[test]
    fn the_type_of_an_argument_says_where_it_points() {
        let probe = Event::kprobe("f", Arch::HOST, Some(&function()));
        for event in [probe, Event::function(function())] {
            for (name, in_kernel) in [("path", false), ("arg0", false), ("name", true)] {
                let event = event.clone().set(name, "x").unwrap();
                assert_eq!(event.pointed()[0].in_kernel, in_kernel, "{event} {name}");
            }
            // A misspelt constant is no text to point to.
            for name in ["flags", "arg2"] {
                let error = event.clone().set(name, "O_CRAET").unwrap_err();
                assert!(error.to_string().contains("`O_CRAET`"), "{error}");
            }
        }
        let open = Event::ksyscall("openat", Arch::HOST);
        assert!(open.clone().set("flags", "O_CRAET").is_err());
        assert!(open.set("filename", "x").is_ok());
    }

    #[test]
    fn a_number_takes_no_text() {
        let layout = Layout::of_syscall("sys_enter_openat", Arch::X86_64).unwrap();
        let error = Event::tracepoint(layout).set("dfd", "/etc").unwrap_err();
        assert!(error.to_string().contains("dfd"), "{error}");
    }
}
