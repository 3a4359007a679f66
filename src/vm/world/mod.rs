//! The mocked outside of a program: time, the current task, CPUs, chance and user
//! memory. All of it is set by the test and, unless it is, always the same.

mod clock;
mod net;
mod random;
mod task;
mod user;

pub use clock::Clock;
pub use net::{
    Ancestry, Device, MAIN_TABLE, Net, NetError, Prefix, Route, RouteKind, Socket, SocketId,
    SocketState, Wanted,
};
pub use random::Random;
pub use task::Task;
pub use user::UserMemory;

pub(in crate::vm) use net::{AF_INET, AF_INET6, TCP, UDP, bytes_of};

/// What a program sees of the world around it.
#[derive(Debug, Clone)]
pub struct World {
    clock: Clock,
    task: Task,
    random: Random,
    user: UserMemory,
    net: Net,
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
            net: Net::default(),
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

    /// The task that runs when an event fires.
    pub fn task(&mut self) -> &mut Task {
        &mut self.task
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
