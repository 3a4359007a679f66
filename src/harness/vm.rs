//! The `Vm` type and its settings.

use std::sync::Arc;

use super::error::{Error, Result};
use super::layouts::Layouts;
use super::programs::{Programs, WhichProgram};
use crate::btf::Btf;
use crate::engine::{Budget, Checked, Counting, Image};
use crate::lower::{Lowered, Passes};
use crate::program::{Program, SharedMap};
use crate::spec::{helpers, kfuncs};
use crate::verifier::Verification;
use crate::vm::events::Layout;
use crate::vm::helpers::Call;
use crate::vm::{EngineKind, HelperProblem, Machine, MapHandle, ProgramHandle, RanOn, World};

/// A machine with loaded programs: the test's handle on programs, maps and the mocked
/// world.
///
/// ```
/// use bpflab::{Object, Vm};
///
/// # fn main() -> bpflab::Result<()> {
/// let object = Object::open("examples/bpf/write_hist.bpf.o")?;
/// let mut vm = Vm::new(object)?;
/// vm.world().task().set_pid(42).set_comm("dd");
/// vm.attach_all()?;
///
/// let event = vm.tracepoint("syscalls/sys_enter_write")?.set("args[2]", 4096)?;
/// let outcome = vm.fire(event)?;
///
/// assert_eq!(outcome.returned("count_write"), Some(0)); // 0: the event is not passed on
/// assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Vm {
    pub(super) machine: Machine,
    pub(super) checked: Checked,
    /// The stacks of programs that are prepared together.
    pub(super) stacks: Vec<Checked>,
    pub(super) programs: Arc<Programs>,
    /// Whether a program was ever attached: if not, the test has probably forgotten it.
    pub(super) has_attached: bool,
    /// Tracepoints that the test declared.
    pub(super) declared: Vec<Arc<Layout>>,
    /// Maps that later objects may share.
    pub(super) shared: Vec<(Sharing, MapHandle)>,
    /// By map handle: the types of its object.
    pub(super) map_types: Vec<Option<Btf>>,
    /// The kernel BTF from which events get their layouts.
    pub(super) kernel_btf: Option<Btf>,
    /// The cache of layouts.
    pub(super) layouts: Layouts,
    /// The lowering passes for programs that are loaded from now on.
    pub(super) passes: Passes,
    pub(super) threaded: bool,
}

/// Why two objects share a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The test shares it.
    Token(SharedMap),
    /// Both pin it under this name.
    Pinned(String),
}

impl Vm {
    /// Creates a machine without programs, in this world.
    #[must_use]
    pub fn with_world(world: World) -> Self {
        Self {
            machine: Machine::new(world),
            checked: Checked::new(),
            stacks: Vec::new(),
            programs: Arc::default(),
            has_attached: false,
            declared: Vec::new(),
            shared: Vec::new(),
            map_types: Vec::new(),
            kernel_btf: None,
            layouts: Layouts::default(),
            passes: Passes::default(),
            threaded: true,
        }
    }

    /// The mocked world: time, the current task, CPUs, random numbers, user memory.
    pub const fn world(&mut self) -> &mut World {
        &mut self.machine.world
    }

    /// The underlying machine: memory, maps, outputs.
    #[doc(hidden)]
    pub const fn machine(&mut self) -> &mut Machine {
        &mut self.machine
    }

    /// The loaded programs, in the order of their objects.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<Program>> {
        self.programs.images.iter().map(|image| image.program())
    }

    /// Chooses the engine that runs programs from now on, where it can run them: see
    /// [`engine_of`](Self::engine_of).
    pub fn set_engine(&mut self, engine: EngineKind) -> &mut Self {
        Arc::make_mut(&mut self.programs).engine = engine;
        self
    }

    /// Sets whether runs look for uninitialised bytes that leave programs: in map keys and
    /// values, records, packets, user memory. [`Outcome::leaks`](crate::vm::Outcome::leaks) has
    /// what they find; it changes no result.
    ///
    /// While it is on, the checked interpreter runs every program, since it alone knows which
    /// bytes were written.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("tests/objects/ringbuf_exec.bpf.o")?)?;
    /// vm.find_uninit(true).attach_all()?;
    /// let event = vm.tracepoint("sched/sched_process_exec")?.set("filename", "/bin/sh")?;
    /// let outcome = vm.fire(event)?;
    /// let name = outcome.leaks[0].bytes[0].name.as_deref();
    /// assert_eq!(name, Some("bytes 8 to 63 of field `file` of struct started"));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn find_uninit(&mut self, finds: bool) -> &mut Self {
        self.machine.set_finds_uninit(finds);
        self
    }

    /// The engine that runs a program, and why it is not the [chosen
    /// one](Self::set_engine): the checked interpreter for a program that is rejected or
    /// unjudged, or the fast interpreter for a program without machine code.
    ///
    /// Runs of a program that calls a [mocked](Self::mock_helper) helper, or on an event
    /// whose context is smaller than the program expects, use the checked interpreter, too:
    /// each [`Run`](crate::vm::Run) of an outcome names its engine.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn engine_of(&self, program: impl WhichProgram) -> Result<RanOn> {
        let image = self.programs.image(program.handle(&self.programs)?)?;
        Ok(image.ran_on(self.programs.engine))
    }

    /// The verifier's verdict on a program, which is the kernel's, and the proved facts.
    ///
    /// # Errors
    /// [`Error::NoProgram`].
    pub fn verification(&self, program: impl WhichProgram) -> Result<&Verification> {
        let handle = program.handle(&self.programs)?;
        let found = self.programs.verifications.get(handle.index());
        found.map_or_else(
            || Err(self.programs.no_program(&format!("#{}", handle.0))),
            |known| Ok(&**known),
        )
    }

    /// The lowered operations of a verified program, bound to this machine; none if it
    /// can't run on the fast engines.
    #[doc(hidden)]
    #[must_use]
    pub fn lowered(&self, program: ProgramHandle) -> Option<&Lowered> {
        self.programs.images.get(program.index())?.lowered()
    }

    /// Limits each run of a program to this many instructions (default 2^28).
    pub fn set_budget(&mut self, instructions: u64) -> &mut Self {
        Arc::make_mut(&mut self.programs).budget = Budget(instructions);
        self
    }

    /// Sets whether machine code counts the executed instructions (it does by default).
    /// Without counts it is faster: for benchmarks, and programs that run millions of times.
    /// [`Run::insns`](crate::vm::Run::insns) is then none, and the
    /// [budget](Self::set_budget) does not apply: a verified program ends by itself, although
    /// nested loops may take very long. The interpreters always count.
    ///
    /// ```
    /// use bpflab::{Object, Vm};
    ///
    /// # fn main() -> bpflab::Result<()> {
    /// let mut vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
    /// let event = vm.tracepoint("syscalls/sys_enter_write")?;
    /// let counted = vm.run("count_write", &event)?;
    /// assert!(counted.runs[0].insns.is_some());
    /// let engine = counted.runs[0].ran_on.engine;
    ///
    /// vm.set_counting(false);
    /// let run = &vm.run("count_write", &event)?.runs[0];
    /// assert_eq!(run.insns.is_none(), engine == bpflab::harness::EngineKind::Jit);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_counting(&mut self, counts: bool) -> &mut Self {
        Arc::make_mut(&mut self.programs).counting = match counts {
            true => Counting::Exact,
            false => Counting::Off,
        };
        self
    }

    /// Chooses the lowering passes for programs that are loaded from now on, to find a bug
    /// or measure a gain.
    #[doc(hidden)]
    pub const fn set_passes(&mut self, passes: Passes) -> &mut Self {
        self.passes = passes;
        self
    }

    /// Whether the fast interpreter uses threaded code, as in optimised builds, for
    /// programs that are loaded from now on, or else a loop.
    #[doc(hidden)]
    pub const fn set_threaded(&mut self, threaded: bool) -> &mut Self {
        self.threaded = threaded;
        self
    }

    /// Uses the types of a kernel for the layout of events and kernel objects; without it,
    /// the BTF that the objects were relocated for, or their own.
    pub fn set_kernel_btf(&mut self, btf: Btf) -> &mut Self {
        let kernel = self.machine.world.kernel_memory();
        kernel.set_kernel_types(btf.clone());
        self.kernel_btf = Some(btf);
        self.layouts.clear();
        self
    }

    /// Replaces a helper with a function of the test, by its name with or without `bpf_`.
    /// The function gets the arguments, reads and writes memory that they point to through
    /// checked copies, and returns r0.
    ///
    /// [CPUs](Self::cpu) created later share the function: it runs for one CPU at a time,
    /// and the others wait.
    ///
    /// ```
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// vm.mock_helper("bpf_get_stackid", |call| Ok(call.arg(3) + 7))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoHelper`] where Linux 6.18 has no helper of this name.
    pub fn mock_helper(
        &mut self,
        name: &str,
        body: impl FnMut(&mut Call<'_>) -> std::result::Result<u64, HelperProblem> + Send + 'static,
    ) -> Result<&mut Self> {
        let helper = helpers::helper_by_name(name);
        let helper = helper.ok_or_else(|| Error::NoHelper(name.to_owned()))?;
        self.machine.mock_helper(helper.id, Box::new(body));
        Ok(self)
    }

    /// Replaces a kfunc with a function of the test. It may be a kfunc of any module; a
    /// loaded program that calls it has to declare it.
    ///
    /// ```
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// vm.mock_kfunc("bpf_task_from_pid", |call| Ok(u64::from(call.arg(1) == 1)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoKfunc`] where Linux 6.18 has no kfunc of this name, and no loaded program
    /// calls one.
    pub fn mock_kfunc(
        &mut self,
        name: &str,
        body: impl FnMut(&mut Call<'_>) -> std::result::Result<u64, HelperProblem> + Send + 'static,
    ) -> Result<&mut Self> {
        let calls = |image: &Arc<Image>| image.kfuncs().any(|callee| &**callee.name() == name);
        let is_known = self.programs.images.is_empty()
            || kfuncs::by_name(name).is_some()
            || self.programs.images.iter().any(calls);
        if !is_known {
            return Err(Error::NoKfunc(name.to_owned()));
        }
        self.machine.mock_kfunc(name, Box::new(body));
        Ok(self)
    }
}
