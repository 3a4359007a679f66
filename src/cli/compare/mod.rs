//! `bpflab compare`: the kernel and our engines on the same events.

mod arguments;
mod generated;
mod live;

pub(super) use arguments::Arguments;

use super::exit::{Exit, Failure};
use super::printer::Printer;
use crate::kernel::Availability;

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let kernel = Availability::probe();
    if !kernel.usable() {
        let text = kernel.missing().join("; ");
        return Err(Failure::with(Exit::Unavailable, text));
    }
    match arguments.generated {
        Some(count) => generated::run(count, arguments, printer),
        None => live::run(arguments, printer),
    }
}
