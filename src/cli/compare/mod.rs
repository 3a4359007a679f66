//! `bpflab compare`: compares the kernel with bpflab's engines on the same events.

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
        let missing = kernel.missing().join("; ");
        let text = format!("not available here: {missing}");
        return Err(Failure::with(Exit::Unavailable, text));
    }
    match (arguments.generated, &arguments.object) {
        (Some(count), _) => generated::run(count, arguments, printer),
        (None, Some(object)) => live::run(object, arguments, printer),
        (None, None) => Err(Failure::bad("nothing to compare: name an object")),
    }
}
