//! Events of probes: kernel functions, system calls, user space, perf events, iterators,
//! and tracepoints that the test declares.

use std::sync::Arc;

use super::error::{Error, Result};
use super::vm::Vm;
use crate::spec::ProgType;
use crate::spec::context::Arch;
use crate::vm::events::{Event, EventError, Layout};

impl Vm {
    /// The architecture that the loaded programs were compiled for: that of the registers
    /// in the first BTF that has any, otherwise the kernel's or the host's.
    pub(super) fn arch(&self) -> Arch {
        let own = self.programs().filter_map(|program| program.btf.as_ref());
        let mut shown = own.chain(&self.kernel_btf).filter_map(Arch::of);
        shown.next().unwrap_or(Arch::HOST)
    }

    /// The parameters of a kernel function, if BTF has it.
    fn parameters(&self, function: &str) -> Option<Layout> {
        self.first_btf(|btf| Layout::of_function(btf, function))?
            .ok()
    }

    /// Entry of a kernel function: registers, for `kprobe` programs. Arguments have numbers
    /// ([`Event::arg`]), names where BTF has the function, and register names (`di`, `rdi`,
    /// `parm1`; `regs[0]`, `x0`).
    ///
    /// ```
    /// # fn main() -> bpflab::Result<()> {
    /// # let vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// let event = vm.kprobe("vfs_read")?.arg(3, 4096)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// None so far: a function that no BTF has still gets registers.
    pub fn kprobe(&self, function: &str) -> Result<Event> {
        let parameters = self.parameters(function);
        let event = Event::kprobe(function, self.arch(), parameters.as_ref());
        Ok(self.at_symbol(event, function))
    }

    /// Sets an event's address to its function's, if the kernel's symbols have it.
    fn at_symbol(&self, event: Event, function: &str) -> Event {
        let memory = self.machine.world.kernel_memory();
        match memory.symbol_named(function, false) {
            Some(address) => event.at(address),
            None => event,
        }
    }

    /// Return from a kernel function; `ret` is the return value.
    ///
    /// # Errors
    /// As of [`kprobe`](Self::kprobe).
    pub fn kretprobe(&self, function: &str) -> Result<Event> {
        Ok(self.at_symbol(Event::kretprobe(function, self.arch()), function))
    }

    /// Entry of a system call's function (`__x64_sys_write` for `write`), whose argument
    /// points to the user's registers. Fields are the call's arguments by number and name,
    /// and those registers.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] with similar names if there is no such system call.
    pub fn ksyscall(&self, name: &str) -> Result<Event> {
        let arch = self.arch();
        Layout::of_syscall(&format!("sys_enter_{name}"), arch)?;
        Ok(Event::ksyscall(name, arch))
    }

    /// Return from a system call's function; `ret` is the return value.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] with similar names if there is no such system call.
    pub fn kretsyscall(&self, name: &str) -> Result<Event> {
        let arch = self.arch();
        Layout::of_syscall(&format!("sys_exit_{name}"), arch)?;
        let function = format!("{}{name}", arch.syscall_prefix());
        Ok(Event::kretprobe(&function, arch))
    }

    /// A uprobe in user space: `/usr/bin/bash:readline`, or only the part after the file's
    /// name. Arguments have numbers and register names.
    ///
    /// # Errors
    /// As of [`kprobe`](Self::kprobe).
    pub fn uprobe(&self, place: &str) -> Result<Event> {
        Ok(Event::uprobe(place, self.arch(), None))
    }

    /// Return from a user-space function; `ret` is the return value.
    ///
    /// # Errors
    /// As of [`kprobe`](Self::kprobe).
    pub fn uretprobe(&self, place: &str) -> Result<Event> {
        Ok(Event::uretprobe(place, self.arch()))
    }

    /// A USDT probe: `provider:name`, with or without the file before it. [`Event::args`]
    /// gives its arguments, which `bpf_usdt_arg` reads.
    ///
    /// # Errors
    /// As of [`kprobe`](Self::kprobe).
    pub fn usdt(&self, marker: &str) -> Result<Event> {
        Ok(Event::usdt(marker, self.arch()))
    }

    /// A sample of a perf event: registers, `sample_period`, `addr`; [`Event::counter`] and
    /// [`Event::branches`] set what helpers read.
    ///
    /// # Errors
    /// None so far: the context has fixed fields on every architecture.
    pub fn perf_event(&self) -> Result<Event> {
        Ok(Event::context(ProgType::PerfEvent, self.arch())?)
    }

    /// A step of an iterator: the members of `struct bpf_iter__<target>` by name. Members
    /// that are not set are null, as in the last call of an iteration;
    /// [`iterate`](Self::iterate) makes all calls.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where no BTF has the target.
    pub fn iterator(&self, target: &str) -> Result<Event> {
        let found = self.first_btf(|btf| Layout::of_iterator(btf, target));
        match found {
            Some(layout) => Ok(Event::iterator(layout?)),
            None => Err(Error::Event(EventError::NoLayout {
                event: target.to_owned(),
                tried: vec![
                    format!("no BTF here has a struct bpf_iter__{target}"),
                    "give the BTF of a kernel that has it".to_owned(),
                ],
            })),
        }
    }

    /// A call of a `struct_ops` member (`tcp_congestion_ops`, `ssthresh`) that programs
    /// implement: arguments by name and number.
    ///
    /// # Errors
    /// [`EventError::NoLayout`] where no BTF has the member.
    pub fn struct_ops_call(&self, name: &str, member: &str) -> Result<Event> {
        match self.first_btf(|btf| Layout::of_member(btf, name, member)) {
            Some(layout) => Ok(Event::struct_ops(layout?)),
            None => Err(Error::Event(EventError::NoLayout {
                event: format!("{name}.{member}"),
                tried: vec![
                    format!("no BTF here has a function pointer {member} in a struct {name}"),
                    "give the BTF of a kernel that has it".to_owned(),
                ],
            })),
        }
    }

    /// Adds a tracepoint of the test's own: [`tracepoint`](Self::tracepoint) finds it by
    /// its name, and programs can be attached to it.
    pub fn declare(&mut self, layout: Layout) -> &mut Self {
        self.declared.push(Arc::new(layout));
        self
    }

    /// The declared tracepoint of a name.
    pub(super) fn declared(&self, name: &str) -> Option<&Arc<Layout>> {
        self.declared
            .iter()
            .rev()
            .find(|layout| layout.name == name)
    }
}
