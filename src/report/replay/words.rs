//! Names of the parts of a log entry, and text of their values.

use crate::instrument::What;
use crate::report::datum::{Datum, hex};

/// The name of a part of an entry.
pub(super) const fn part(what: What) -> &'static str {
    match what {
        What::Result => "result",
        What::Found => "whether an element was found",
        What::Loaded => "value loaded",
        What::Stored => "value stored",
        What::Operand => "operand",
        What::Expected => "value expected",
        What::Old => "old value",
        What::Argument(_) => "argument",
        What::Given(_) => "memory given",
        What::Filled(_) => "memory filled",
    }
}

/// The argument number of a part.
pub(super) const fn argument(what: What) -> Option<u8> {
    match what {
        What::Argument(number) | What::Given(number) | What::Filled(number) => Some(number),
        _ => None,
    }
}

/// Bytes as a number if they have the size of one, and in hexadecimal.
pub(super) fn value(bytes: &[u8]) -> String {
    let text = Datum::plain(bytes).to_string();
    let long = bytes.len() > 1 && text != hex(bytes);
    match bytes {
        [] => "no bytes".to_owned(),
        _ if long => format!("{text} ({})", hex(bytes)),
        _ => text,
    }
}

/// The same for bytes that may be absent.
pub(super) fn value_or_none(bytes: Option<&Vec<u8>>) -> String {
    bytes.map_or_else(|| "nothing".to_owned(), |bytes| value(bytes))
}

/// The likely cause of a map value that no recorded firing wrote.
pub(super) fn likely_cause(maps: &[String]) -> String {
    let which = match maps {
        [] => "a map".to_owned(),
        maps => format!("map {}", maps.join(" or ")),
    };
    format!(
        "no firing in the recording wrote that: {which} was likely changed from outside \
         meanwhile, by bpftool or by another process or program"
    )
}
