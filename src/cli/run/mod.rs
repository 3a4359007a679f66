//! `bpflab run`: runs programs on events and shows the results.

mod arguments;
mod cases;
mod options;
mod pcap;
mod pictures;
mod session;
mod setup;

pub(super) use arguments::{Arguments, Engine, SetupArguments, Uninit};
pub(super) use options::record_types;
pub(super) use setup::{ScheduledEvent, bytes, choose_engine, machine, open, scheduled_events};

use super::exit::{Exit, Failure};
use super::printer::Printer;

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    match (&arguments.cases, &arguments.object) {
        (Some(file), _) => cases::run(file, arguments, printer),
        (None, Some(object)) => session::run(object, arguments, printer),
        (None, None) => Err(Failure::bad(
            "name an object file, or cases by --cases FILE",
        )),
    }
}
