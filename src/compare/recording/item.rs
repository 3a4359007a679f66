//! The items of a recording's blocks, except firings, and their bytes. All numbers are
//! little-endian; an unknown number has all bits set.

use super::items::{BadItem, Item, TooLong, put_bytes, take_bytes};
use crate::util::Reader;

/// Defines an enumeration of the file: variant, number, name.
macro_rules! coded {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($what:literal) {
            $($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            fn put(self, to: &mut Vec<u8>) {
                to.push(self as u8);
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, BadItem> {
                match from.u8()? {
                    $($number => Ok(Self::$variant),)*
                    number => Err(BadItem::Number { what: $what, number: number.into() }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

coded! {
    /// When maps were read.
    pub enum When("time of reading") {
        /// Before anything was attached.
        Before = 1, "before";
        /// After all was detached.
        After = 2, "after";
    }
}

coded! {
    /// How completely the contents of a map are in the recording.
    #[non_exhaustive]
    pub enum Contents("state of contents") {
        /// All entries, unchanged while they were read.
        Whole = 1, "whole";
        /// Entries changed while they were read: some may be missing or duplicate.
        Torn = 2, "torn";
        /// None: the map has no entries that user space can read.
        Unread = 3, "unread";
    }
}

coded! {
    /// Which buffer an output of a program came from.
    #[non_exhaustive]
    pub enum OutputSource("source of output") {
        /// A ring buffer of the object.
        Ring = 1, "ring buffer";
        /// A perf buffer of the object.
        Perf = 2, "perf buffer";
        /// `bpf_trace_printk`.
        Printk = 3, "printk";
    }
}

coded! {
    /// Why something is not in the recording. It determines what the number
    /// [`Loss::of`] means.
    #[non_exhaustive]
    pub enum Cause("cause of loss") {
        /// A firing's log had no room in the scratch buffer; of a program.
        LogFull = 1, "log full";
        /// A firing was nested more deeply than there are scratch buffers; of a program.
        TooDeep = 2, "nested too deeply";
        /// The recorder's ring buffer was full at the end of a firing; of a program.
        RingFull = 3, "ring buffer full";
        /// The kernel did not run a program, as its CPU was in another one
        /// (`recursion_misses`); of a program. Not a fault of the recorder.
        Missed = 4, "missed by the kernel";
        /// A perf buffer of the object was full; of a map.
        PerfFull = 5, "perf buffer full";
        /// The buffer of a bare event was full; of an event.
        SampleFull = 6, "sample buffer full";
        /// Lines of `bpf_trace_printk` were overwritten; of nothing.
        PrintkFull = 7, "printk lines overwritten";
        /// Bytes that are not a firing or a record; of a program, a map or nothing.
        Damaged = 8, "damaged record";
        /// An output was longer than an item of a recording can be; of a map.
        TooLong = 9, "too long";
        /// Another cause.
        Other = 255, "other";
    }
}

impl Cause {
    /// Whether something that happened is missing from the recording. A program that the
    /// kernel skipped has changed nothing.
    #[must_use]
    pub const fn leaves_gap(self) -> bool {
        !matches!(self, Self::Missed)
    }
}

/// Number with all bits set: unknown.
const NONE: u32 = u32::MAX;
const NO_TIME: u64 = u64::MAX;

fn put(to: &mut Vec<u8>, number: u32) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn put_some(to: &mut Vec<u8>, number: Option<u32>) {
    put(to, number.unwrap_or(NONE));
}

fn take_some(from: &mut Reader<'_>) -> Result<Option<u32>, BadItem> {
    Ok(Some(from.u32()?).filter(|number| *number != NONE))
}

/// An entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapEntry<'a> {
    /// When it was read.
    pub when: When,
    /// Number of the map.
    pub map: u32,
    /// The key; empty for maps that have none.
    pub key: &'a [u8],
    /// The value as `bpf(2)` gave it: for per-CPU maps those of all possible CPUs, each
    /// padded to 8 bytes.
    pub value: &'a [u8],
}

impl<'a> Item<'a> for MapEntry<'a> {
    const WHAT: &'static str = "a map entry";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        self.when.put(to);
        put(to, self.map);
        put_bytes(to, self.key)?;
        put_bytes(to, self.value)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            when: When::take(from)?,
            map: from.u32()?,
            key: take_bytes(from)?,
            value: take_bytes(from)?,
        })
    }
}

/// How a map was read; follows its entries. It tells a map without entries from one that was
/// not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapRead<'a> {
    /// When it was read.
    pub when: When,
    /// Number of the map.
    pub map: u32,
    /// How completely.
    pub contents: Contents,
    /// How many of its entries come before this item.
    pub entries: u64,
    /// Why it is not whole, if so; UTF-8.
    pub why: &'a [u8],
}

impl<'a> Item<'a> for MapRead<'a> {
    const WHAT: &'static str = "a map that was read";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        self.when.put(to);
        self.contents.put(to);
        put(to, self.map);
        to.extend_from_slice(&self.entries.to_le_bytes());
        put_bytes(to, self.why)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            when: When::take(from)?,
            contents: Contents::take(from)?,
            map: from.u32()?,
            entries: from.u64()?,
            why: take_bytes(from)?,
        })
    }
}

/// An output of a program: a record or a printed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output<'a> {
    /// The buffer that it came from.
    pub source: OutputSource,
    /// Number of the map; none for printed lines.
    pub map: Option<u32>,
    /// The CPU, if known: not for ring buffers.
    pub cpu: Option<u32>,
    /// The thread, if known.
    pub pid: Option<u32>,
    /// The time, in nanoseconds of the monotonic clock, if known.
    pub time: Option<u64>,
    /// The record, or the line without its newline.
    pub bytes: &'a [u8],
}

impl<'a> Item<'a> for Output<'a> {
    const WHAT: &'static str = "an output";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        self.source.put(to);
        put_some(to, self.map);
        put_some(to, self.cpu);
        put_some(to, self.pid);
        to.extend_from_slice(&self.time.unwrap_or(NO_TIME).to_le_bytes());
        put_bytes(to, self.bytes)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            source: OutputSource::take(from)?,
            map: take_some(from)?,
            cpu: take_some(from)?,
            pid: take_some(from)?,
            time: Some(from.u64()?).filter(|time| *time != NO_TIME),
            bytes: take_bytes(from)?,
        })
    }
}

/// A sample of a bare event (`PERF_SAMPLE_RAW` of a tracepoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Number of the event.
    pub event: u32,
    /// The CPU.
    pub cpu: u32,
    /// The process (thread group).
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The time, in nanoseconds of perf's clock.
    pub time: u64,
    /// The record, its common fields first, in the layout of the event's format file.
    pub raw: &'a [u8],
}

impl<'a> Item<'a> for Sample<'a> {
    const WHAT: &'static str = "a sample";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        for number in [self.event, self.cpu, self.pid, self.tid] {
            put(to, number);
        }
        to.extend_from_slice(&self.time.to_le_bytes());
        put_bytes(to, self.raw)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            event: from.u32()?,
            cpu: from.u32()?,
            pid: from.u32()?,
            tid: from.u32()?,
            time: from.u64()?,
            raw: take_bytes(from)?,
        })
    }
}

/// A count of things that are missing. Losses of the same cause add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The reason.
    pub cause: Cause,
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// Number of the program, map or event, as the [`Cause`] says, if known.
    pub of: Option<u32>,
    /// How many.
    pub count: u64,
}

impl Loss {
    /// How many things that happened are missing from the recording.
    pub(super) const fn gaps(&self) -> u64 {
        if self.cause.leaves_gap() {
            self.count
        } else {
            0
        }
    }
}

impl<'a> Item<'a> for Loss {
    const WHAT: &'static str = "a loss";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        self.cause.put(to);
        put_some(to, self.cpu);
        put_some(to, self.of);
        to.extend_from_slice(&self.count.to_le_bytes());
        Ok(())
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            cause: Cause::take(from)?,
            cpu: take_some(from)?,
            of: take_some(from)?,
            count: from.u64()?,
        })
    }
}

/// A file that the recording carries along: the object, the kernel's BTF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource<'a> {
    /// Its name: [`OBJECT`](Self::OBJECT), [`KERNEL_BTF`](Self::KERNEL_BTF), or one that the
    /// writer chose; UTF-8.
    pub name: &'a [u8],
    /// Its contents.
    pub bytes: &'a [u8],
}

impl Resource<'_> {
    /// The ELF object that the header names.
    pub const OBJECT: &'static [u8] = b"object";
    /// The kernel's BTF (`/sys/kernel/btf/vmlinux`), reduced to the types that the object
    /// needs.
    pub const KERNEL_BTF: &'static [u8] = b"kernel-btf";
}

impl<'a> Item<'a> for Resource<'a> {
    const WHAT: &'static str = "a resource";

    fn write(&self, to: &mut Vec<u8>) -> Result<(), TooLong> {
        put_bytes(to, self.name)?;
        put_bytes(to, self.bytes)
    }

    fn read(from: &mut Reader<'a>) -> Result<Self, BadItem> {
        Ok(Self {
            name: take_bytes(from)?,
            bytes: take_bytes(from)?,
        })
    }
}
