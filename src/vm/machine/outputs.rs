//! Outputs of programs, until they are taken.

use super::fault::Fault;
use super::outcome::Output;
use super::output_buffer::{Destination, Emitted};
use super::state::Machine;

impl Machine {
    /// Records an output of a program.
    pub fn output(&mut self, output: Output) {
        self.run.outputs.push(output);
    }

    /// Takes the outputs of programs since the last call.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        if self.run.outputs.is_empty() {
            return Vec::new();
        }
        let mut outputs = std::mem::take(&mut self.run.outputs);
        let taken = outputs.take(|to, data| match to {
            Destination::Ring(map) => {
                let map = self.map_name(map);
                Output::RingBuf { map, data }
            }
            Destination::Perf(map, cpu) => {
                let map = self.map_name(map);
                Output::Perf { map, cpu, data }
            }
        });
        self.run.outputs = outputs;
        taken
    }

    /// Calls `each` with the outputs since the last call and removes them. Like
    /// [`take_outputs`](Self::take_outputs), without an allocation per record.
    pub fn drain_outputs(&mut self, each: impl FnMut(Emitted<'_>)) {
        self.run.outputs.drain(each);
    }

    /// Notes a load of an unmapped address that read 0, if there is room for it.
    #[cold]
    pub fn note_probed(&self, fault: impl FnOnce() -> Box<Fault>) {
        self.run.probed.note(fault);
    }

    /// Takes the loads of unmapped addresses since the last call, at most 16.
    pub fn take_probed(&mut self) -> Vec<Fault> {
        self.run.probed.take()
    }
}
