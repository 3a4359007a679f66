//! Further CPUs of a machine, for other threads.

use super::error::Result;
use super::layouts::Layouts;
use super::vm::Vm;
use crate::engine::Checked;

impl Vm {
    /// Another CPU of the same machine, for a thread of its own.
    ///
    /// Both share maps and programs, with everything verified, lowered and compiled;
    /// nothing is built again. Programs see map values as on several CPUs of a kernel:
    /// atomic instructions are atomic, everything else may tear.
    ///
    /// All else is copied and separate from then on: the world, with another CPU number and
    /// another random seed; attachments; engine and budget. Its outcomes hold the outputs
    /// of its own programs; ring buffer records go to the shared buffer. Memory that the
    /// test mapped into this machine is not in the other.
    ///
    /// A CPU runs one program at a time, so each number can be taken once; dropping the
    /// `Vm` releases it. Any thread may use the maps: `Vm` is [`Sync`].
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// vm.attach_all()?;
    /// let event = vm.tracepoint("syscalls/sys_enter_write")?.set("args[2]", 4096)?;
    ///
    /// let mut other = vm.cpu(1)?;
    /// std::thread::scope(|threads| {
    ///     for cpu in [&mut vm, &mut other] {
    ///         let event = event.clone();
    ///         threads.spawn(move || cpu.fire(event).map(drop));
    ///     }
    /// });
    /// assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Cpu`](super::Error::Cpu) where the [world](Self::world) has no such CPU, or
    /// the CPU is in use.
    pub fn cpu(&self, cpu: u32) -> Result<Self> {
        Ok(Self {
            machine: self.machine.fork(cpu)?,
            checked: Checked::new(),
            stacks: Vec::new(),
            programs: self.programs.for_cpu(),
            has_attached: self.has_attached,
            declared: self.declared.clone(),
            shared: self.shared.clone(),
            map_types: self.map_types.clone(),
            kernel_btf: self.kernel_btf.clone(),
            layouts: Layouts::default(),
            passes: self.passes,
            threaded: self.threaded,
        })
    }
}
