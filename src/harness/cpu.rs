//! Further CPUs of a machine, for other threads.

use std::panic::resume_unwind;
use std::{iter, thread};

use super::error::Result;
use super::layouts::Layouts;
use super::programs::WhichProgram;
use super::vm::Vm;
use crate::engine::Checked;
use crate::vm::Outcome;
use crate::vm::events::Event;

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

    /// Runs a program on many records at the same time, on this CPU and the next ones, `cpus` in
    /// all, each with a thread of its own: a [`Runner`](super::Runner) for each part of the
    /// records, all parts of the same length but the last. This CPU has the first part.
    /// Returns the outcome of each part, in the order of the records.
    ///
    /// Maps are shared; a per-CPU map has a value for each CPU, and which records count in
    /// which one is fixed by the division. The order of records in different parts is not: a
    /// program that reads what another run wrote may find it or not. What a run changes in the
    /// world of another CPU than this one is gone afterwards, as that [CPU](Self::cpu) is.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// let event = vm.tracepoint("syscalls/sys_enter_write")?;
    /// let record = event.clone().set("args[2]", 4096u64)?.record();
    /// let records = vec![record; 10_000];
    /// let outcomes = vm.run_on_cpus("count_write", &event, &records, 2)?;
    /// assert_eq!(outcomes.len(), 2);
    /// assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(10_000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`cpu`](Self::cpu), where nothing has run yet, and of
    /// [`Runner::run_each`](super::Runner::run_each): the error of the first part that has one.
    /// The other parts have run.
    pub fn run_on_cpus<R: AsRef<[u8]> + Sync>(
        &mut self,
        program: impl WhichProgram,
        event: &Event,
        records: &[R],
        cpus: u32,
    ) -> Result<Vec<Outcome>> {
        let program = program.handle(&self.programs)?;
        let cpus = cpus.max(1);
        let first = self.machine.world.cpu();
        let others = (1..cpus).map(|by| self.cpu(first + by));
        let mut others: Vec<Self> = others.collect::<Result<_>>()?;
        let len = records.len().div_ceil(cpus as usize).max(1);
        let mut parts = records.chunks(len);
        let first = parts.next().unwrap_or_default();
        let run = |cpu: &mut Self, part: &[R]| {
            let mut runner = cpu.runner(program, event)?;
            runner.run_each(part)?;
            Ok(runner.finish())
        };
        let run = &run;
        thread::scope(|threads| {
            let others = iter::zip(&mut others, parts);
            let others = others.map(|(cpu, part)| threads.spawn(move || run(cpu, part)));
            let others: Vec<_> = others.collect();
            let first = run(self, first);
            let others = others.into_iter().map(|other| match other.join() {
                Ok(outcome) => outcome,
                Err(panic) => resume_unwind(panic),
            });
            iter::once(first).chain(others).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::vm::CpuError;
    use crate::{Error, Object, Vm};

    fn vm() -> Vm {
        Vm::new(Object::open("examples/bpf/write_hist.bpf.o").unwrap()).unwrap()
    }

    /// Records of writes of 1, 2, 4 and so on bytes.
    fn records(vm: &Vm, count: usize) -> Vec<Vec<u8>> {
        let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
        let record = |at: usize| event.clone().set("args[2]", 1 << (at % 16)).unwrap();
        (0..count).map(|at| record(at).record()).collect()
    }

    #[test]
    fn every_record_counts_once_on_any_number_of_cpus() {
        for (count, cpus) in [(0, 2), (1, 4), (3, 2), (1000, 1), (1000, 3), (1000, 4)] {
            let mut vm = vm();
            let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
            let records = records(&vm, count);
            let outcomes = vm.run_on_cpus("count_write", &event, &records, cpus);
            let outcomes = outcomes.unwrap();
            let parts = count.clamp(1, cpus as usize);
            assert_eq!(outcomes.len(), parts, "{count} on {cpus}");
            let entries = vm.map("hist").unwrap().entries::<u32, u64>().unwrap();
            for (slot, hits) in entries {
                let of_slot = (0..count).filter(|at| at % 16 == slot as usize);
                assert_eq!(
                    hits,
                    of_slot.count() as u64,
                    "slot {slot} of {count} on {cpus}"
                );
            }
        }
    }

    #[test]
    fn a_cpu_that_is_missing_or_in_use_is_an_error() {
        let mut vm = vm();
        let event = vm.tracepoint("syscalls/sys_enter_write").unwrap();
        let records = records(&vm, 10);
        let missing = vm.run_on_cpus("count_write", &event, &records, 5);
        let expected = CpuError::Missing { cpu: 4, cpus: 4 };
        assert!(matches!(missing, Err(Error::Cpu(error)) if error == expected));
        let taken = vm.cpu(1).unwrap();
        let error = vm.run_on_cpus("count_write", &event, &records, 2);
        assert!(matches!(error, Err(Error::Cpu(CpuError::Taken(1)))));
        drop(taken);
        let hist = vm.map("hist").unwrap().entries::<u32, u64>().unwrap();
        assert!(hist.iter().all(|(_, hits)| *hits == 0), "nothing has run");
        assert!(vm.run_on_cpus("count_write", &event, &records, 2).is_ok());
    }

    #[test]
    fn a_record_that_does_not_fit_is_an_error_and_the_other_part_has_run() {
        let object = Object::open("examples/bpf/write_hist_kprobe.bpf.o").unwrap();
        let mut vm = Vm::new(object).unwrap();
        let event = vm.kprobe("vfs_write").unwrap();
        // Registers, and more than there are.
        let mut records = vec![vec![0; 64]; 10];
        records[1] = vec![0; 4096];
        let result = vm.run_on_cpus("count_write", &event, &records, 2);
        assert!(matches!(result, Err(Error::Event(_))), "{result:?}");
        let hist = vm.map("hist").unwrap().entries::<u32, u64>().unwrap();
        let hits: u64 = hist.iter().map(|(_, hits)| hits).sum();
        assert_eq!(hits, 1 + 5);
    }
}
