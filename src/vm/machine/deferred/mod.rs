//! Deferred callbacks: timers, work queues, task work (`kernel/bpf/helpers.c`,
//! "bpf_async_cb").
//!
//! A program keeps a `struct bpf_timer`, `bpf_wq` or `bpf_task_work` in a map value. Its first
//! 8 bytes are a pointer to the kernel's state; here they are the key of an entry in a table
//! that all CPUs of a machine share. When an element is deleted or overwritten, these bytes
//! become zero, and the entry becomes invalid.
//!
//! Nothing runs by itself: when a test advances the time,
//! [`Vm::advance`](crate::Vm::advance) runs the callbacks that are due.

mod clock;
mod due;
mod table;

pub use clock::TimerClock;
pub use due::{Due, Pending, Started};
pub use table::DeferredKind;
pub(in crate::vm) use table::{Deferred, Slot, When};
