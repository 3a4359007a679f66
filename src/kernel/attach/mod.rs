//! Attaching programs to the running kernel, for as long as an [`Attachment`] lives.
//!
//! ```no_run
//! use bpflab::Object;
//! use bpflab::kernel::attach::{AttachPoint, attach};
//! use bpflab::kernel::{LoadOptions, LoadedMaps, load};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let object = Object::open("examples/bpf/exits.bpf.o")?;
//! let program = object.program("on_exit")?;
//! let maps = LoadedMaps::create(&program.maps, program.btf.as_ref())?;
//! let loaded = load(&program, &maps, &LoadOptions::default())?;
//! if let Some(accepted) = &loaded.program {
//!     let attachment = attach(accepted, &AttachPoint::of(&program)?)?;
//!     println!("{} runs", attachment.describe());
//! } // It is dropped: the program no longer runs.
//! # Ok(())
//! # }
//! ```
//!
//! | section | attached by |
//! |---|---|
//! | `tp` | `perf_event_open` on the tracepoint's id, `PERF_EVENT_IOC_SET_BPF` |
//! | `raw_tp`, `tp_btf`, `fentry`, `fexit`, `fmod_ret`, `lsm` | `BPF_RAW_TRACEPOINT_OPEN` |
//! | `kprobe`, `ksyscall`, `uprobe`, `usdt` and their returns | the PMUs `kprobe` and `uprobe` |
//! | `kprobe.multi`, `uprobe.multi`, … | `BPF_LINK_CREATE` |
//! | `iter` | `BPF_LINK_CREATE`; it runs while [`Attachment::iterate`] reads |
//! | `perf_event` | an event on each CPU, `PERF_EVENT_IOC_SET_BPF` |
//! | `xdp`, `tc`, `cgroup` | `BPF_LINK_CREATE` of the device or cgroup that the target names |
//!
//! With a cookie or [`Way::Link`], perf events and BTF targets are attached by
//! `BPF_LINK_CREATE`, too. Programs for packets and cgroups are only attached to a device or
//! cgroup that the caller names, since they decide about its traffic; others run on chosen
//! input with `BPF_PROG_TEST_RUN`.
//!
//! Missing kernel features and permissions are errors ([`AttachError::is_unavailable`]). The
//! kernel refuses some programs at load time, with less of a reason: call
//! [`AttachPoint::available`] before loading.

mod attaching;
mod attachment;
mod available;
mod binary;
mod error;
mod path;
mod point;
mod probe;
mod target;
mod usdt;

pub use attaching::attach;
pub use attachment::Attachment;
pub use error::AttachError;
pub use point::{AttachPoint, AttachTarget, Spot, Way};
