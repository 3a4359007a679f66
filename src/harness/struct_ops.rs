//! Structures of operations (`struct_ops`) whose members programs implement.

use super::error::{Error, Result, list};
use super::vm::Vm;
use crate::util::Errno;
use crate::vm::events::Event;
use crate::vm::maps::{Function, Kind, StructOps};
use crate::vm::{Outcome, ProgramHandle};

/// The most arguments of a member (`MAX_BPF_FUNC_ARGS`, `include/linux/bpf.h`).
const MOST_ARGUMENTS: usize = 12;

impl Vm {
    /// The programs that implement a `struct_ops` variable's functions, in the order of the
    /// structure's members. A test calls one with
    /// [`call_struct_ops`](Self::call_struct_ops); the values of the structure are in the map with the variable's name.
    ///
    /// # Errors
    /// [`Error::NoMap`](super::Error::NoMap); [`Error::MapKind`](super::Error::MapKind)
    /// where the map is no table of functions.
    pub fn struct_ops(&self, name: &str) -> Result<Vec<Function>> {
        let view = self.map(name)?;
        match view.map.kind() {
            Kind::StructOps(table) => Ok(table.functions()),
            _ => Err(view.wrong_kind("a table of functions")),
        }
    }

    /// Calls a member of a `struct_ops` variable in place of the kernel, with these arguments:
    /// numbers, and addresses of objects ([`World::kernel`](crate::vm::World::kernel)). Missing
    /// ones are 0. The result is in [`Outcome::returned`], by the program's name.
    ///
    /// ```no_run
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("my_congestion_control.bpf.o")?)?;
    /// let socket = vm.world().kernel("tcp_sock")?.set("snd_cwnd", 40u32)?.address();
    /// let outcome = vm.call_struct_ops("my_ops", "ssthresh", &[socket])?;
    /// assert_eq!(outcome.runs[0].r0, 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`struct_ops`](Self::struct_ops); [`Error::NoProgram`] where no program implements
    /// the member; [`Error::Event`] for more arguments than the member has; as of
    /// [`run`](Self::run).
    pub fn call_struct_ops(&mut self, name: &str, member: &str, args: &[u64]) -> Result<Outcome> {
        let functions = self.struct_ops(name)?;
        let implemented = || functions.iter().map(|function| function.member.as_str());
        let Some(at) = implemented().position(|known| known == member) else {
            return Err(Error::NoProgram {
                name: format!("{name}.{member}"),
                there: list(implemented()),
            });
        };
        let program = functions[at].program;
        let event = match self.struct_ops_call(&self.structure(name, program), member) {
            Ok(mut event) => {
                for (arg, number) in args.iter().zip(1..) {
                    event = event.arg(number, *arg)?;
                }
                event
            }
            // Without the kernel's BTF nothing is known of the arguments.
            Err(_) => {
                let mut all = [0; MOST_ARGUMENTS];
                all.iter_mut().zip(args).for_each(|(to, arg)| *to = *arg);
                Event::bytes(all.map(u64::to_le_bytes).concat())
            }
        };
        self.run(program, &event)
    }

    /// The name of the structure of a variable, by the BTF of one of its programs.
    fn structure(&self, name: &str, program: ProgramHandle) -> String {
        let ty = self.map(name).ok().and_then(|view| match view.map.kind() {
            Kind::StructOps(table) => table.value_type(),
            _ => None,
        });
        let btf = self
            .program(program)
            .and_then(|program| program.btf.as_ref());
        let found = btf.zip(ty).and_then(|(btf, ty)| btf.get(ty));
        found.map_or(String::new(), |ty| ty.name().to_owned())
    }

    /// Records which program implements a member of a `struct_ops` variable.
    pub(super) fn set_function(
        &self,
        table: &StructOps,
        index: u32,
        program: ProgramHandle,
    ) -> std::result::Result<(), Errno> {
        let btf = self
            .program(program)
            .and_then(|program| program.btf.as_ref());
        let ty = btf
            .zip(table.value_type())
            .and_then(|(btf, ty)| btf.get(ty));
        let member = ty.and_then(|ty| {
            let name = ty.members().nth(index as usize)?.name;
            Some(name.to_owned())
        });
        let member = member.ok_or(Errno::EINVAL)?;
        table.set(Function {
            member,
            index,
            program,
        });
        Ok(())
    }
}
