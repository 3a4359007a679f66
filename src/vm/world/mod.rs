//! A program's mocked environment: time, tasks, CPUs, random numbers, user and kernel memory.
//! The test can set all of it; the defaults are the same in every run.

mod cgroups;
mod clock;
mod files;
pub mod kernel;
mod net;
mod processes;
mod random;
mod scheduler;
mod symbols;
mod task;
mod tasks;
mod user;

use std::ops::Range;

use self::kernel::{KernelError, KernelMemory, KernelObject};
use files::Files;
use processes::Processes;
use symbols::Mappings;
use tasks::Tasks;

pub use clock::Clock;
pub use net::{
    Ancestry, Device, MAIN_TABLE, Net, NetError, Prefix, Route, RouteKind, Socket, SocketId,
    SocketState, Wanted,
};
pub use random::Random;
pub use scheduler::QueueId;
pub(crate) use scheduler::{
    CpuState, DEFAULT_SLICE, Ended, Events, ExitKind, INFINITE_SLICE, Insert, Pending, Phase,
    Scheduler, TaskState,
};
pub use symbols::{BuildId, Symbol, Symbols};
pub use task::Task;
pub use user::UserMemory;

pub(super) use files::path_of;

pub(in crate::vm) use net::{AF_INET, AF_INET6, TCP, UDP, bytes_of};

/// A program's mocked environment.
#[derive(Debug, Clone)]
pub struct World {
    clock: Clock,
    task: Task,
    random: Random,
    user: UserMemory,
    kernel: KernelMemory,
    tasks: Tasks,
    files: Files,
    processes: Processes,
    net: Net,
    symbols: Symbols,
    mappings: Mappings,
    cpu: u32,
    cpus: u32,
    numa_node: u32,
    /// The sched_ext scheduler that a test drives.
    scheduler: Option<Box<Scheduler>>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            task: Task::default(),
            random: Random::new(0),
            user: UserMemory::default(),
            kernel: KernelMemory::default(),
            tasks: Tasks::default(),
            files: Files::default(),
            processes: Processes::default(),
            net: Net::default(),
            symbols: Symbols::default(),
            mappings: Mappings::default(),
            cpu: 0,
            cpus: 4,
            numa_node: 0,
            scheduler: None,
        }
    }
}

impl World {
    /// The clocks.
    pub fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// The clocks, read-only.
    #[must_use]
    pub const fn time(&self) -> &Clock {
        &self.clock
    }

    /// The current task: the one that runs when an event fires.
    pub fn task(&mut self) -> &mut Task {
        &mut self.task
    }

    /// The current task, read-only.
    pub(super) const fn task_now(&self) -> &Task {
        &self.task
    }

    /// Creates another task, whose parent is init. Make it current with
    /// [`run_task`](Self::run_task), or point to it.
    ///
    /// ```
    /// use bpflab::vm::World;
    ///
    /// let mut world = World::default();
    /// let mut dd = world.new_task();
    /// dd.set_pid(42).set_comm("dd");
    /// world.run_task(&dd);
    /// assert_eq!(world.task().pid(), 42);
    /// ```
    #[must_use]
    pub fn new_task(&self) -> Task {
        Task::default().with_id(self.tasks.next_id())
    }

    /// Makes a copy of this task the current one.
    pub fn run_task(&mut self, task: &Task) -> &mut Self {
        self.task = task.clone();
        self
    }

    /// The `struct task_struct` of the current task, as the loaded objects or the kernel's BTF
    /// define it. Its `pid`, `tgid`, `comm`, `cred`, `cgroups`, `real_parent` and `group_leader`
    /// are filled from [`task`](Self::task) now, and before a program runs if the task has changed;
    /// `cpus_ptr` is the address of its `cpus_mask`.
    /// Fields that a test sets stay as long as the task does not change them.
    ///
    /// # Errors
    /// [`KernelError::NoType`] if nothing defines the struct.
    pub fn current_task(&self) -> Result<KernelObject, KernelError> {
        self.task_object(&self.task)
    }

    /// The `struct task_struct` of any task.
    ///
    /// # Errors
    /// As for [`current_task`](Self::current_task).
    pub fn task_object(&self, task: &Task) -> Result<KernelObject, KernelError> {
        self.tasks.object(&self.kernel, task, false)
    }

    /// The `struct pt_regs` with which the current task entered the kernel
    /// (`bpf_task_pt_regs`), zeroed at first.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn current_regs(&self) -> Result<KernelObject, KernelError> {
        self.regs_of(self.task_address()?)
    }

    /// The `struct pt_regs` of the task at an address.
    pub(super) fn regs_of(&self, task: u64) -> Result<KernelObject, KernelError> {
        self.processes.registers(&self.kernel, task)
    }

    /// Adds a memory area (`struct vm_area_struct`) to the current task's process at these user
    /// addresses, with or without a file. `bpf_find_vma` finds it.
    ///
    /// # Errors
    /// [`KernelError::NoType`] if nothing defines the struct, or that of files.
    pub fn map_vma(
        &mut self,
        at: Range<u64>,
        file: Option<&str>,
    ) -> Result<KernelObject, KernelError> {
        let area = self.kernel("struct vm_area_struct")?;
        area.set_if_there("vm_start", at.start)?;
        area.set_if_there("vm_end", at.end)?;
        if let Some(file) = file {
            area.set_if_there("vm_file", &self.file(file)?)?;
        }
        self.processes.add(self.task.tgid(), at, area.clone());
        Ok(area)
    }

    /// The memory area of a process that contains an address.
    pub(super) fn area_of(&self, tgid: u32, address: u64) -> Option<KernelObject> {
        self.processes.area(tgid, address)
    }

    /// Creates a `struct path` of a file, with all dentries and inodes, for `bpf_d_path`.
    ///
    /// # Errors
    /// [`KernelError::NoType`] if nothing defines these structs.
    pub fn path(&self, path: &str) -> Result<KernelObject, KernelError> {
        self.files.path(&self.kernel, path)
    }

    /// Creates a `struct file` that is open at a path.
    ///
    /// # Errors
    /// As for [`path`](Self::path).
    pub fn file(&self, path: &str) -> Result<KernelObject, KernelError> {
        self.files.file(&self.kernel, path)
    }

    /// The `struct task_struct` of the task with this pid, as `bpf_task_from_pid` finds it: the
    /// current task, tasks whose object was requested before, and their parents.
    #[must_use]
    pub fn find_task(&self, pid: u32) -> Option<KernelObject> {
        if self.task.pid() == pid
            && let Ok(current) = self.current_task()
        {
            return Some(current);
        }
        self.tasks.by_pid(pid)
    }

    /// The `struct cgroup` at the end of a path of ids in the default hierarchy, from
    /// [the root](Task::ROOT_CGROUP) on. Missing cgroups are created.
    ///
    /// # Errors
    /// [`KernelError::NoType`] if nothing defines the struct.
    pub fn cgroup(&self, path: &[u64]) -> Result<KernelObject, KernelError> {
        self.tasks.cgroups.at(&self.kernel, path)
    }

    /// The `struct cgroup` with this id, as `bpf_cgroup_from_id` finds it: created before, or a
    /// cgroup of the current task.
    #[must_use]
    pub fn find_cgroup(&self, id: u64) -> Option<KernelObject> {
        if self.task.cgroups().contains(&id) {
            // This creates all of them.
            let _ = self.cgroup(self.task.cgroups());
        }
        self.tasks.cgroups.find(id)
    }

    /// The task whose `task_struct` is at an address, if the world knows it.
    pub(crate) fn task_at(&self, address: u64) -> Option<Task> {
        self.tasks.at(address)
    }

    /// Sets the current task's kernel stack: code addresses, innermost function first
    /// ([`Task::set_kernel_stack`]).
    pub fn set_kernel_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.task.set_kernel_stack(stack);
        self
    }

    /// Sets the current task's user stack ([`Task::set_user_stack`]).
    pub fn set_user_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.task.set_user_stack(stack);
        self
    }

    /// Adds a kernel symbol, like a line of `/proc/kallsyms`. Reports and `%ps`, `%pS` and
    /// `%pB` print it.
    ///
    /// ```
    /// use bpflab::vm::World;
    ///
    /// let mut world = World::default();
    /// world.symbol(0xffff_ffff_8120_0000, "vfs_read");
    /// let symbols = world.symbols();
    /// assert_eq!(symbols.describe(0xffff_ffff_8120_001c), "vfs_read+0x1c/0x1000");
    /// ```
    pub fn symbol(&mut self, address: u64, name: &str) -> &mut Self {
        self.symbols.insert(address, name);
        // Programs may refer to it by name. An address that the name already has is kept.
        let _ = self.kernel.place_symbol(name, address);
        self
    }

    /// The kernel's symbols.
    #[must_use]
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Maps a file at these user addresses of the current task, from `file_offset` on. Stack
    /// traces with build ids use it (`BPF_F_USER_BUILD_ID`). Of `build_id`, 20 bytes are used.
    pub fn map_file(&mut self, at: Range<u64>, file_offset: u64, build_id: &[u8]) -> &mut Self {
        self.mappings.insert(at, file_offset, build_id);
        self
    }

    /// The build id and file offset of a user address.
    pub(super) fn build_id(&self, address: u64) -> Option<BuildId> {
        self.mappings.find(address)
    }

    /// The result of `bpf_get_current_task`. If nothing defines the struct, the task has only
    /// an address.
    pub(super) fn task_address(&self) -> Result<u64, KernelError> {
        let object = self.tasks.object(&self.kernel, &self.task, true)?;
        Ok(object.address())
    }

    /// Updates the current task's object.
    #[inline]
    pub(super) fn refresh(&self) {
        self.tasks.refresh(&self.kernel, &self.task);
    }

    /// Creates a zeroed object of a kernel type, by its name in C; see [`KernelObject`]. Types
    /// are the kernel's (of the BTF that objects were relocated for, or
    /// [`Vm::set_kernel_btf`](crate::Vm::set_kernel_btf)), or else those that the loaded
    /// objects define.
    ///
    /// # Errors
    /// [`KernelError::NoType`] with similar names.
    pub fn kernel(&self, type_name: &str) -> Result<KernelObject, KernelError> {
        self.kernel.make(type_name)
    }

    /// Puts a NUL-terminated string into kernel memory.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn kernel_cstr(&self, text: &str) -> Result<KernelObject, KernelError> {
        self.kernel.make_text(text)
    }

    /// Puts bytes into kernel memory.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn kernel_bytes(&self, bytes: &[u8]) -> Result<KernelObject, KernelError> {
        self.kernel.make_bytes("kernel memory", bytes)
    }

    /// A kernel variable (`jiffies`, `init_task`), as `extern … __ksym` finds it. Its type comes
    /// from the kernel's BTF or a loaded object.
    ///
    /// # Errors
    /// [`KernelError::NoVariable`] if its type is unknown.
    pub fn variable(&self, name: &str) -> Result<KernelObject, KernelError> {
        self.kernel.variable(name)
    }

    /// Like [`variable`](Self::variable), with a type that the test chooses.
    ///
    /// # Errors
    /// [`KernelError::NoType`].
    pub fn variable_of(&self, name: &str, type_name: &str) -> Result<KernelObject, KernelError> {
        self.kernel.variable_of(name, type_name)
    }

    /// A CPU's instance of a per-CPU variable (`runqueues`).
    ///
    /// # Errors
    /// [`KernelError::NoVariable`], [`KernelError::NoCpu`].
    pub fn per_cpu(&self, name: &str, cpu: u32) -> Result<KernelObject, KernelError> {
        if cpu >= self.cpus {
            let cpus = self.cpus;
            return Err(KernelError::NoCpu { cpu, cpus });
        }
        self.kernel.per_cpu(name, cpu)
    }

    /// The kernel memory. The CPUs of a machine share it, and so do clones of a world.
    #[doc(hidden)]
    #[must_use]
    pub const fn kernel_memory(&self) -> &KernelMemory {
        &self.kernel
    }

    /// The source of random numbers for `bpf_get_prandom_u32`.
    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The current task's memory, which `bpf_probe_read_user` reads.
    pub fn user(&mut self) -> &mut UserMemory {
        &mut self.user
    }

    /// Devices, routes, neighbours and sockets.
    pub fn net(&mut self) -> &mut Net {
        &mut self.net
    }

    /// The state of the sched_ext scheduler that runs.
    pub(crate) fn scheduler(&self) -> Option<&Scheduler> {
        self.scheduler.as_deref()
    }

    /// The same, to change it.
    pub(crate) fn scheduler_mut(&mut self) -> Option<&mut Scheduler> {
        self.scheduler.as_deref_mut()
    }

    /// The same; a new one if none runs.
    pub(crate) fn scheduler_or_new(&mut self) -> &mut Scheduler {
        let cpus = self.cpus;
        self.scheduler
            .get_or_insert_with(|| Box::new(Scheduler::new(cpus)))
    }

    /// Sets the scheduler that runs.
    pub(crate) fn set_scheduler(&mut self, scheduler: Option<Scheduler>) {
        self.scheduler = scheduler.map(Box::new);
    }

    /// The sockets of the network.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.net.sockets()
    }

    /// Puts a NUL-terminated string into user memory and returns its address.
    pub fn user_cstr(&mut self, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.user.add(&bytes)
    }

    /// Copies a kernel object into user memory and returns its address: for structs that a
    /// program reads from user space.
    ///
    /// ```no_run
    /// # fn main() -> bpflab::Result<()> {
    /// # let mut vm = bpflab::Vm::with_world(bpflab::vm::World::default());
    /// let world = vm.world();
    /// let name = world.user_cstr("/etc/passwd");
    /// let how = world.kernel("struct open_how")?.set("flags", 1)?;
    /// let address = world.user_copy(&how);
    /// # Ok(())
    /// # }
    /// ```
    pub fn user_copy(&mut self, object: &KernelObject) -> u64 {
        self.user.add(&object.bytes())
    }

    /// The CPU that the next event fires on; below [`cpus`](Self::cpus).
    #[must_use]
    pub const fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Moves to a CPU. Numbers that are too large select the last CPU, since per-CPU maps have
    /// no values beyond it. If another thread [runs programs](crate::Vm::cpu) on the CPU,
    /// firing the next event is an error.
    pub fn set_cpu(&mut self, cpu: u32) -> &mut Self {
        self.cpu = cpu.min(self.cpus - 1);
        self
    }

    /// Number of CPUs, 4 by default. Fixed when maps are created, since each per-CPU map has a
    /// value per CPU.
    #[must_use]
    pub const fn cpus(&self) -> u32 {
        self.cpus
    }

    /// A world with this many CPUs, 1 to 4096.
    #[must_use]
    pub fn with_cpus(cpus: u32) -> Self {
        Self {
            cpus: cpus.clamp(1, 4096),
            ..Self::default()
        }
    }

    /// The same world for another CPU, with its own sequence of random numbers.
    pub(super) fn on_cpu(&self, cpu: u32) -> Self {
        Self {
            cpu,
            random: self.random.on_cpu(cpu),
            // A task can't run on two CPUs.
            task: self.task.clone().with_id(self.tasks.next_id()),
            ..self.clone()
        }
    }

    /// The NUMA node of the current CPU.
    #[must_use]
    pub const fn numa_node(&self) -> u32 {
        self.numa_node
    }

    /// Sets the NUMA node.
    pub fn set_numa_node(&mut self, node: u32) -> &mut Self {
        self.numa_node = node;
        self
    }
}
