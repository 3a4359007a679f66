//! The mocked outside of a program: time, tasks, CPUs, chance, user memory and the
//! kernel's. All of it is set by the test and, unless it is, always the same.

mod cgroups;
mod clock;
mod files;
mod net;
mod processes;
mod random;
mod symbols;
mod task;
mod tasks;
mod user;

use std::ops::Range;

use super::kernel::{KernelError, KernelMemory, KernelObject};
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
pub use symbols::{BuildId, Symbol, Symbols};
pub use task::Task;
pub use user::UserMemory;

pub(super) use files::path_of;

pub(in crate::vm) use net::{AF_INET, AF_INET6, TCP, UDP, bytes_of};

/// What a program sees of the world around it.
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
        }
    }
}

impl World {
    /// The clocks.
    pub fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// The clocks, to be read.
    #[must_use]
    pub const fn time(&self) -> &Clock {
        &self.clock
    }

    /// The task that runs when an event fires.
    pub fn task(&mut self) -> &mut Task {
        &mut self.task
    }

    /// The same, to be looked at.
    pub(super) const fn task_now(&self) -> &Task {
        &self.task
    }

    /// Another task, a child of init's like the first one, to be
    /// [run](Self::run_task) or to be pointed to.
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

    /// Makes a task the one that runs when an event fires, as it is now.
    pub fn run_task(&mut self, task: &Task) -> &mut Self {
        self.task = task.clone();
        self
    }

    /// The `struct task_struct` of the current task, as the loaded objects or the
    /// kernel's BTF define it: `pid`, `tgid`, `comm`, `cred`, `real_parent` and
    /// `group_leader` are filled from [`task`](Self::task), now and, when it has
    /// changed, before a program runs. What is set there by hand stays as long as the
    /// task says nothing else.
    ///
    /// # Errors
    /// [`KernelError::NoType`] where nothing defines the struct.
    pub fn current_task(&self) -> Result<KernelObject, KernelError> {
        self.task_object(&self.task)
    }

    /// The same of any task.
    ///
    /// # Errors
    /// As of [`current_task`](Self::current_task).
    pub fn task_object(&self, task: &Task) -> Result<KernelObject, KernelError> {
        self.tasks.object(&self.kernel, task, false)
    }

    /// The `struct pt_regs` with which the current task entered the kernel, zeroed at
    /// first: `bpf_task_pt_regs`.
    ///
    /// # Errors
    /// [`KernelError::Full`].
    pub fn current_regs(&self) -> Result<KernelObject, KernelError> {
        self.regs_of(self.task_address()?)
    }

    /// The same of the task at an address.
    pub(super) fn regs_of(&self, task: u64) -> Result<KernelObject, KernelError> {
        self.processes.registers(&self.kernel, task)
    }

    /// Says that the current task's process has an area of memory at these user
    /// addresses, of a file or of none: a `struct vm_area_struct`, which `bpf_find_vma`
    /// finds.
    ///
    /// # Errors
    /// [`KernelError::NoType`] where nothing defines the struct, or that of files.
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

    /// The area of a process that an address lies in.
    pub(super) fn area_of(&self, tgid: u32, address: u64) -> Option<KernelObject> {
        self.processes.area(tgid, address)
    }

    /// A `struct path` that leads to a file, with the dentries and inodes on the way:
    /// what `bpf_d_path` takes.
    ///
    /// # Errors
    /// [`KernelError::NoType`] where nothing defines these structs.
    pub fn path(&self, path: &str) -> Result<KernelObject, KernelError> {
        self.files.path(&self.kernel, path)
    }

    /// A `struct file` that is open at a path.
    ///
    /// # Errors
    /// As of [`path`](Self::path).
    pub fn file(&self, path: &str) -> Result<KernelObject, KernelError> {
        self.files.file(&self.kernel, path)
    }

    /// The `struct task_struct` of the task with this pid, if it is the current one, or
    /// its object was asked for before, or it is a parent of such a one: what
    /// `bpf_task_from_pid` finds.
    #[must_use]
    pub fn find_task(&self, pid: u32) -> Option<KernelObject> {
        if self.task.pid() == pid
            && let Ok(current) = self.current_task()
        {
            return Some(current);
        }
        self.tasks.by_pid(pid)
    }

    /// The `struct cgroup` of the default hierarchy that is at the end of a path of ids,
    /// each one's parent before it, from [the root](Task::ROOT_CGROUP) on; those that are
    /// not there yet are made.
    ///
    /// # Errors
    /// [`KernelError::NoType`] where nothing defines the struct.
    pub fn cgroup(&self, path: &[u64]) -> Result<KernelObject, KernelError> {
        self.tasks.cgroups.at(&self.kernel, path)
    }

    /// The `struct cgroup` with this id, if it was made, or is the current task's:
    /// what `bpf_cgroup_from_id` finds.
    #[must_use]
    pub fn find_cgroup(&self, id: u64) -> Option<KernelObject> {
        if self.task.cgroups().contains(&id) {
            // Those above it are made with it.
            let _ = self.cgroup(self.task.cgroups());
        }
        self.tasks.cgroups.find(id)
    }

    /// The task whose `task_struct` is at an address, where the world knows one.
    pub(super) fn task_at(&self, address: u64) -> Option<Task> {
        self.tasks.at(address)
    }

    /// Sets the current task's stack in the kernel: addresses of code, the innermost
    /// function's first ([`Task::set_kernel_stack`]).
    pub fn set_kernel_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.task.set_kernel_stack(stack);
        self
    }

    /// Sets the current task's stack in user space ([`Task::set_user_stack`]).
    pub fn set_user_stack(&mut self, stack: impl Into<Vec<u64>>) -> &mut Self {
        self.task.set_user_stack(stack);
        self
    }

    /// Says what the kernel has at an address, as a line of `/proc/kallsyms` does:
    /// `%ps`, `%pS` and `%pB` print it, and so do reports.
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
        // Programs may ask for it by name; if the name has another address already,
        // they go on with that.
        let _ = self.kernel.place_symbol(name, address);
        self
    }

    /// The names of the kernel's addresses.
    #[must_use]
    pub const fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Says which file the current task has at these user addresses, from an offset of
    /// the file on: stacks of build ids have it (`BPF_F_USER_BUILD_ID`). Of the id 20
    /// bytes count.
    pub fn map_file(&mut self, at: Range<u64>, file_offset: u64, build_id: &[u8]) -> &mut Self {
        self.mappings.insert(at, file_offset, build_id);
        self
    }

    /// The place in a file that a user address is.
    pub(super) fn build_id(&self, address: u64) -> Option<BuildId> {
        self.mappings.find(address)
    }

    /// What `bpf_get_current_task` returns. A task whose struct nobody defines has an
    /// address only.
    pub(super) fn task_address(&self) -> Result<u64, KernelError> {
        let object = self.tasks.object(&self.kernel, &self.task, true)?;
        Ok(object.address())
    }

    /// Brings the current task's object up to date.
    #[inline]
    pub(super) fn refresh(&self) {
        self.tasks.refresh(&self.kernel, &self.task);
    }

    /// Makes a zeroed object of a type of the kernel, by its name in C; see
    /// [`KernelObject`]. Types are the kernel's (of the BTF that objects were relocated
    /// for, or [`Vm::set_kernel_btf`](crate::Vm::set_kernel_btf)), or else those that the
    /// loaded objects define.
    ///
    /// # Errors
    /// [`KernelError::NoType`] with the nearest names.
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

    /// A variable of the kernel (`jiffies`, `init_task`), which programs find by
    /// `extern … __ksym`. Its type is what the kernel's BTF or a loaded object says.
    ///
    /// # Errors
    /// [`KernelError::NoVariable`] where neither says anything.
    pub fn variable(&self, name: &str) -> Result<KernelObject, KernelError> {
        self.kernel.variable(name)
    }

    /// The same of a type that the test gives it.
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

    /// All of the kernel's memory. The CPUs of a machine share it; so do clones of a
    /// world.
    #[must_use]
    pub const fn kernel_memory(&self) -> &KernelMemory {
        &self.kernel
    }

    /// The source of `bpf_get_prandom_u32`.
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

    /// Copies an object of the kernel into user memory and returns its address: a struct
    /// that a program reads from user space is made as one of the kernel's.
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

    /// Moves to a CPU. One that does not exist is the last one: a per-CPU map
    /// has no values beyond it. One that another thread [runs programs
    /// on](crate::Vm::cpu) is refused when the next event fires.
    pub fn set_cpu(&mut self, cpu: u32) -> &mut Self {
        self.cpu = cpu.min(self.cpus - 1);
        self
    }

    /// Number of CPUs (4 unless the machine was made otherwise); fixed when maps
    /// are made, since each per-CPU map has a value for each.
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

    /// The same world as another CPU sees it, with chance of its own.
    pub(super) fn on_cpu(&self, cpu: u32) -> Self {
        Self {
            cpu,
            random: self.random.on_cpu(cpu),
            // No task runs on two CPUs.
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
