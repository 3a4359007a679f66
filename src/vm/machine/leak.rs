//! Uninitialised bytes that left a program.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::fault::SourceLine;
use crate::util::Pc;

/// What was found on all CPUs of a machine since the log was set.
pub type LeakLog = Arc<Mutex<Vec<Leak>>>;

/// Bytes that a program never wrote and that left it: found by the checked interpreter if
/// [`Vm::find_uninit`](crate::Vm::find_uninit) is on.
///
/// In the kernel, such bytes are what was in memory before: earlier records of the ring buffer,
/// or what other functions left on the stack.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leak {
    /// The program's name.
    pub program: String,
    /// The function of the program.
    pub function: Option<String>,
    /// The instruction that sent the bytes.
    pub pc: Pc,
    /// The line of C of that instruction.
    pub source: Option<SourceLine>,
    /// The function that sent them (`bpf_ringbuf_submit`); `None` for a store.
    pub by: Option<String>,
    /// Where they went.
    pub to: LeakTarget,
    /// The name of the map that they went to, if it is one.
    pub map: Option<String>,
    /// How many bytes were sent, the initialised ones included.
    pub size: usize,
    /// The uninitialised ones, by their offset.
    pub bytes: Vec<LeakedBytes>,
    /// The line of C that reserved the record which was sent.
    pub reserved: Option<SourceLine>,
    /// How often this happened in the run.
    pub times: u64,
}

/// Where uninitialised bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeakTarget {
    /// A key of a map, in an update, a look-up or a deletion.
    MapKey,
    /// A value of a map.
    MapValue,
    /// A record of a ring buffer.
    RingBuffer,
    /// A record of a perf buffer.
    PerfBuffer,
    /// The packet.
    Packet,
    /// The context.
    Context,
    /// Memory of a process (`bpf_probe_write_user`).
    UserMemory,
    /// What an iterator prints for its reader.
    Iterator,
    /// A line of `trace_pipe`.
    Printk,
    /// The new value of a sysctl.
    Sysctl,
}

impl LeakTarget {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MapKey => "map key",
            Self::MapValue => "map value",
            Self::RingBuffer => "ring buffer",
            Self::PerfBuffer => "perf buffer",
            Self::Packet => "packet",
            Self::Context => "context",
            Self::UserMemory => "user memory",
            Self::Iterator => "iterator",
            Self::Printk => "printk",
            Self::Sysctl => "sysctl",
        }
    }
}

/// Consecutive uninitialised bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeakedBytes {
    /// The offset of the first, from the start of what was sent.
    pub offset: usize,
    /// Their number.
    pub len: usize,
    /// What they are in C: `field comm`, ``3 bytes of padding after field `len` of struct
    /// event``. `None` where the type is not known.
    pub name: Option<String>,
}

impl LeakedBytes {
    /// Consecutive bytes.
    pub(crate) const fn new(offset: usize, len: usize, name: Option<String>) -> Self {
        Self { offset, len, name }
    }
}

impl fmt::Display for LeakedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, len, name } = self;
        match (name, len) {
            (Some(name), _) => write!(f, "{name} (offset {offset})"),
            (None, 1) => write!(f, "byte {offset}"),
            (None, _) => write!(f, "bytes {offset} to {}", offset + len - 1),
        }
    }
}

impl Leak {
    /// Where the bytes went, in words: ``a record of ring buffer `events` ``.
    #[must_use]
    pub fn target(&self) -> String {
        let map = self.map.as_deref().unwrap_or("?");
        match self.to {
            LeakTarget::MapKey => format!("a key of map `{map}`"),
            LeakTarget::MapValue => format!("a value of map `{map}`"),
            LeakTarget::RingBuffer => format!("a record of ring buffer `{map}`"),
            LeakTarget::PerfBuffer => format!("a record of perf buffer `{map}`"),
            LeakTarget::Packet => "the packet".into(),
            LeakTarget::Context => "the context".into(),
            LeakTarget::UserMemory => "user memory".into(),
            LeakTarget::Iterator => "the iterator's output".into(),
            LeakTarget::Printk => "a line of trace_pipe".into(),
            LeakTarget::Sysctl => "the sysctl's new value".into(),
        }
    }

    /// Whether another one is the same, apart from how often it happened.
    #[must_use]
    pub fn is_again(&self, other: &Self) -> bool {
        let same = (&self.program, self.pc, self.to) == (&other.program, other.pc, other.to);
        same && (&self.map, &self.bytes) == (&other.map, &other.bytes)
    }

    /// How many of the bytes are uninitialised.
    #[must_use]
    pub fn uninitialised(&self) -> usize {
        self.bytes.iter().map(|bytes| bytes.len).sum()
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "program {}: {} of the {} bytes in {} are uninitialised",
            self.program,
            self.uninitialised(),
            self.size,
            self.target()
        )?;
        for bytes in &self.bytes {
            write!(f, "\n  {bytes}")?;
        }
        let by = self.by.as_deref().unwrap_or("a store");
        write!(f, "\n  sent by {by} at instruction {}", self.pc)?;
        if let Some(function) = &self.function
            && *function != self.program
        {
            write!(f, " (in {function})")?;
        }
        if let Some(source) = &self.source {
            write!(f, "\n  at {source}")?;
        }
        if let Some(reserved) = &self.reserved {
            write!(f, "\n  reserved at {reserved}")?;
        }
        Ok(())
    }
}
