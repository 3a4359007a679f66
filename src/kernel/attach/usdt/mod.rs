//! Markers in programs and libraries (user-space statically defined tracepoints): the
//! notes that `<sys/sdt.h>` leaves in a file, and what programs need to find arguments.

mod argument;
mod note;
mod spec;

pub(super) use note::markers;
pub(super) use spec::value;
