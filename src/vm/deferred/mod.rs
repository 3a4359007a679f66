//! Callbacks that run some time later: timers, work queues, task work
//! (`kernel/bpf/helpers.c`, "bpf_async_cb").
//!
//! A program keeps a `struct bpf_timer`, `bpf_wq` or `bpf_task_work` in the value of a
//! map. Its first 8 bytes are the kernel's pointer to what belongs to it; here they are
//! the key of an entry of a table that all CPUs of a machine share. Where
//! an element is deleted or written anew these bytes become zero, and the entry is gone
//! with them.
//!
//! Nothing runs by itself: time stands still until a test moves it, and then
//! [`Vm::advance`](crate::Vm::advance) runs what is due.

mod clock;
mod table;
mod walk;

pub use clock::TimerClock;
pub use table::DeferredKind;
pub(super) use table::{Deferred, Slot, When};
pub use walk::{Due, Pending, Started};
