//! The messages of Cilium's tests: protocol buffers (`trf.proto`).
//!
//! `SuiteResult` has results of tests (1) and a log (2); `TestResult` a name (1), a status (2) and a
//! log (3); `Log` a format (1) and arguments of 64 bits (2). Texts end with a NUL.

/// The messages of a suite.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub tests: Vec<TestResult>,
    pub log: Vec<String>,
}

/// The result of one of its tests.
#[derive(Debug, Default)]
pub(super) struct TestResult {
    pub name: String,
    pub status: u32,
    pub log: Vec<String>,
}

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Messages {
    /// Reads a message, which zeros follow.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut messages = Self::default();
        for (number, field) in fields(bytes)? {
            match (number, field) {
                (1, Field::Bytes(test)) => messages.tests.push(TestResult::read(test)?),
                (2, Field::Bytes(log)) => messages.log.push(line(log)?),
                _ => return Err(format!("unknown field {number} of a suite")),
            }
        }
        Ok(messages)
    }
}

impl TestResult {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut result = Self::default();
        for (number, field) in fields(bytes)? {
            match (number, field) {
                (1, Field::Bytes(name)) => result.name = text(name),
                (2, Field::Number(status)) => result.status = u32::try_from(status).unwrap_or(0),
                (3, Field::Bytes(log)) => result.log.push(line(log)?),
                _ => return Err(format!("unknown field {number} of a test")),
            }
        }
        Ok(result)
    }
}

/// A line of a log, with its arguments in their places.
fn line(bytes: &[u8]) -> Result<String, String> {
    let (mut format, mut arguments) = (String::new(), Vec::new());
    for (number, field) in fields(bytes)? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => format = text(bytes),
            (2, Field::Number(value)) => arguments.push(value),
            _ => return Err(format!("unknown field {number} of a log")),
        }
    }
    Ok(formatted(&format, &arguments))
}

/// Replaces conversions such as `%d`, `%lu` and `%llx` by the arguments, in order.
fn formatted(format: &str, arguments: &[u64]) -> String {
    let mut arguments = arguments.iter();
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let size = after.len() - after.trim_start_matches('l').len();
        let (is_long, after) = (size > 0, &after[size..]);
        let kind = after.chars().next();
        let mut value = || arguments.next();
        let shown = match kind {
            Some('%') => Some("%".to_owned()),
            Some('d' | 'i') => value().map(|value| match is_long {
                true => value.cast_signed().to_string(),
                false => crate::isa::low32(*value).cast_signed().to_string(),
            }),
            Some('u') => value().map(|value| match is_long {
                true => value.to_string(),
                false => crate::isa::low32(*value).to_string(),
            }),
            Some('x') => value().map(|value| match is_long {
                true => format!("{value:x}"),
                false => format!("{:x}", crate::isa::low32(*value)),
            }),
            Some('p') => value().map(|value| format!("{value:#x}")),
            _ => None,
        };
        match (shown, kind) {
            (Some(shown), Some(kind)) => {
                text.push_str(&shown);
                rest = &after[kind.len_utf8()..];
            }
            // No argument, or no conversion: as it is written.
            _ => {
                text.push('%');
                text.push_str(&"l".repeat(size));
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end_matches('\0').to_owned()
}

/// The fields of a message, by number. Zeros end it: no field has the number 0.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, String> {
    let mut fields = Vec::new();
    while bytes.first().is_some_and(|byte| *byte != 0) {
        let tag = varint(&mut bytes)?;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => {
                let word = take(&mut bytes, 8)?;
                let word = word.try_into().map_err(|_| CUT_OFF)?;
                Field::Number(u64::from_le_bytes(word))
            }
            2 => {
                let length = varint(&mut bytes)?;
                Field::Bytes(take(
                    &mut bytes,
                    usize::try_from(length).unwrap_or(usize::MAX),
                )?)
            }
            kind => return Err(format!("unknown wire type {kind}")),
        };
        fields.push((tag >> 3, field));
    }
    Ok(fields)
}

const CUT_OFF: &str = "a message is cut off";

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(CUT_OFF)?;
    *bytes = rest;
    Ok(taken)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for place in 0..10 {
        let byte = take(bytes, 1)?.first().copied().unwrap_or_default();
        value |= u64::from(byte & 0x7f) << (7 * place).min(63);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number of more than 64 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_logs_are_read() {
        let log = b"\x0a\x08x: %d!\n\0\x11\xff\xff\xff\xff\0\0\0\0";
        let mut test = b"\x0a\x03ab\0\x10\x02\x1a".to_vec();
        test.push(u8::try_from(log.len()).unwrap());
        test.extend(log);
        // The length in two bytes, as Cilium's macros write it.
        let length = u8::try_from(test.len()).unwrap() | 0x80;
        let mut bytes = vec![0x0a, length, 0];
        bytes.extend(test);
        bytes.extend(b"\x12\x05\x0a\x03hi\0");
        bytes.extend([0; 100]);
        let messages = Messages::read(&bytes).unwrap();
        assert_eq!(messages.log, ["hi"]);
        let [test] = messages.tests.as_slice() else {
            panic!("{messages:?}");
        };
        assert_eq!((test.name.as_str(), test.status), ("ab", 2));
        assert_eq!(test.log, ["x: -1!\n"]);
    }

    #[test]
    fn conversions_take_arguments_in_order() {
        let arguments = [7, u64::MAX, 255];
        assert_eq!(
            formatted("%d %llu %lx", &arguments),
            "7 18446744073709551615 ff"
        );
        assert_eq!(formatted("100%% %u %i %p", &arguments), "100% 7 -1 0xff");
        assert_eq!(formatted("%d and %d, %s %", &[1]), "1 and %d, %s %");
    }

    #[test]
    fn damaged_messages_are_refused() {
        assert!(Messages::read(&[0x0a, 5, 1]).is_err());
        assert!(Messages::read(&[0x08, 1]).is_err());
        assert!(Messages::read(&[0x0b]).is_err());
        assert!(Messages::read(&[0xff; 12]).is_err());
        assert!(Messages::read(&[0; 8]).unwrap().tests.is_empty());
    }
}
