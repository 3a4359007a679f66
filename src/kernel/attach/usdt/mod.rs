//! USDT probes in programs and libraries (user-space statically defined tracepoints): the notes
//! that `<sys/sdt.h>` leaves in a file, and the specifications of arguments that BPF programs
//! read.

mod argument;
mod note;
mod spec;

pub(super) use note::locations;
pub(super) use spec::value;
