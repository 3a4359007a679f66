//! Values in command-line syntax: `FIELD=VALUE` and hexadecimal bytes.

use super::error::TextError;
use super::value::FieldValue;
use crate::spec::constants;
use crate::spec::context::Arch;

impl FieldValue {
    /// Parses a value in command-line syntax:
    ///
    /// | text | value |
    /// |---|---|
    /// | `4096`, `-1`, `0x1000`, `0o17`, `0b101`, `1_000`, `true` | a number; `017`, which is octal in C, is an error |
    /// | `'x'` | a number: the character's code |
    /// | `"dd"` | text; `\n`, `\t`, `\r`, `\0`, `\\`, `\"` and `\xNN` as in C |
    /// | `hex:dead beef` | bytes |
    /// | `[1, 2, 0x3]` or `{1, 2}` | the elements of an array |
    /// | anything else | text, taken as it stands; for a number the constants of system calls that it names: `O_WRONLY\|O_CREAT`, `-ENOENT` |
    ///
    /// # Errors
    /// [`TextError`] with the position of the first invalid byte.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let value = text.trim();
        let start = text.len() - text.trim_start().len();
        if let Some(hex) = value.strip_prefix("hex:") {
            return parse_hex(hex)
                .map(Self::Bytes)
                .map_err(|e| e.moved(start + 4));
        }
        if let Some(rest) = value.strip_prefix('"') {
            return quoted(rest, '"').map_err(|e| e.moved(start + 1));
        }
        if let Some(rest) = value.strip_prefix('\'') {
            let inner = match quoted(rest, '\'').map_err(|e| e.moved(start + 1))? {
                Self::Text(text) => text.chars().map(u32::from).collect(),
                Self::Bytes(bytes) => bytes.into_iter().map(u32::from).collect(),
                Self::Int(_) | Self::Ints(_) => Vec::new(),
            };
            return match inner[..] {
                [code] => Ok(Self::from(code)),
                _ => Err(TextError::new(start, "one character between the quotes")),
            };
        }
        let list = [('[', ']'), ('{', '}')]
            .into_iter()
            .find_map(|(open, close)| Some((value.strip_prefix(open)?, close)));
        if let Some((rest, close)) = list {
            let inner = rest
                .strip_suffix(close)
                .ok_or_else(|| TextError::new(text.len(), "the bracket that closes the list"))?;
            return numbers(inner).map_err(|e| e.moved(start + 1));
        }
        match value {
            "true" => return Ok(Self::Int(1)),
            "false" => return Ok(Self::Int(0)),
            _ => {}
        }
        let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
        if is_maybe_octal(digits) {
            return Err(TextError::new(start, NO_LEADING_ZERO));
        }
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            return match number(value) {
                Some(number) => Ok(Self::Int(number)),
                // `10.0.0.1`, `4K`, a path that begins with a digit: text.
                None if digits.contains(|c: char| !c.is_ascii_alphanumeric() && c != '_') => {
                    Ok(Self::Text(value.to_owned()))
                }
                None => Err(TextError::new(start, "a number (quote it if it is text)")),
            };
        }
        Ok(Self::Text(value.to_owned()))
    }
}

/// Splits `FIELD=VALUE`, as `--set` takes it.
///
/// # Errors
/// [`TextError`] if there is no `=` or the value is invalid.
pub fn parse_assignment(text: &str) -> Result<(&str, FieldValue), TextError> {
    let (field, value) = text
        .split_once('=')
        .ok_or_else(|| TextError::new(text.len(), "`=` and a value, as in count=4096"))?;
    if field.trim().is_empty() {
        return Err(TextError::new(0, "a field's name before `=`"));
    }
    let value = FieldValue::parse(value).map_err(|e| e.moved(field.len() + 1))?;
    Ok((field.trim(), value))
}

/// Parses hexadecimal bytes; spaces, line ends, `:`, `,` and `_` between bytes and a `0x`
/// before each are ignored.
///
/// # Errors
/// [`TextError`] at a character that is not a hexadecimal digit, or at half a byte.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, TextError> {
    let mut bytes = Vec::new();
    let mut high: Option<(usize, u8)> = None;
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let digit = match c {
            '0' if high.is_none() && matches!(rest.peek(), Some((_, 'x' | 'X'))) => {
                rest.next();
                continue;
            }
            c if c.is_whitespace() || matches!(c, ':' | ',' | '_') => match high {
                Some(_) => return Err(TextError::new(at, "the second digit of a byte")),
                None => continue,
            },
            c => c
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
                .ok_or_else(|| TextError::new(at, "a hexadecimal digit"))?,
        };
        match high.take() {
            None => high = Some((at, digit)),
            Some((_, first)) => bytes.push(first << 4 | digit),
        }
    }
    match high {
        Some((at, _)) => Err(TextError::new(at, "two digits for each byte")),
        None => Ok(bytes),
    }
}

/// The expectation shown for a number that is octal in C but may be meant as decimal.
const NO_LEADING_ZERO: &str = "a number without a zero in front: it is octal in C; write 0o17 \
                               for an octal one, 15 for a decimal one, or quote it if it is text";

/// Whether digits start with a zero that is not part of a base prefix.
fn is_maybe_octal(digits: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || c == '_';
    digits.len() > 1 && digits.starts_with('0') && digits.chars().all(is_digit)
}

/// Parses a number with sign and base; `None` if the text is not a number or exceeds 64 bits.
fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = [("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8)]
        .into_iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, radix)))
        .unwrap_or((digits, 10));
    let digits = digits.replace('_', "");
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let value = i128::from(u64::from_str_radix(&digits, radix).ok()?);
    Some(if negative { -value } else { value })
}

/// Combines system-call constants and numbers: `O_WRONLY|O_CREAT`, `-ENOENT`,
/// `S_IFREG|0o644`. The error is the unknown name.
pub(in crate::vm) fn named_number(text: &str) -> Result<i128, String> {
    let mut all = 0;
    for part in text.split('|').map(str::trim) {
        let (sign, name) = match part.strip_prefix('-') {
            Some(name) => (-1, name),
            None => (1, part),
        };
        let known = constants::value(name, Arch::HOST).map(|value| sign * i128::from(value));
        let value = known.or_else(|| number(part).filter(|_| !is_maybe_octal(name)));
        all |= value.ok_or_else(|| part.to_owned())?;
    }
    Ok(all)
}

fn numbers(text: &str) -> Result<FieldValue, TextError> {
    if text.trim().is_empty() {
        return Ok(FieldValue::Ints(Vec::new()));
    }
    let mut values = Vec::new();
    let mut at = 0;
    for item in text.split(',') {
        if is_maybe_octal(item.trim().trim_start_matches(['-', '+'])) {
            return Err(TextError::new(at, NO_LEADING_ZERO));
        }
        values.push(number(item.trim()).ok_or_else(|| TextError::new(at, "a number"))?);
        at += item.len() + 1;
    }
    Ok(FieldValue::Ints(values))
}

/// Parses text up to the closing quote, which must be the last character. If escapes make it
/// invalid UTF-8, the value is bytes, with the terminating NUL of C.
fn quoted(text: &str, quote: char) -> Result<FieldValue, TextError> {
    let mut bytes = Vec::new();
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        let unknown = || TextError::new(at, "one of \\n \\t \\r \\0 \\\\ \\\" \\' \\xNN");
        match c {
            '\\' => match rest.next().map(|(_, c)| c) {
                Some('n') => bytes.push(b'\n'),
                Some('t') => bytes.push(b'\t'),
                Some('r') => bytes.push(b'\r'),
                Some('0') => bytes.push(0),
                Some('x') => {
                    let mut digit = || rest.next().and_then(|(_, c)| c.to_digit(16));
                    let byte = digit().zip(digit()).map(|(high, low)| high << 4 | low);
                    bytes.push(
                        byte.and_then(|b| u8::try_from(b).ok())
                            .ok_or_else(unknown)?,
                    );
                }
                Some(c @ ('\\' | '"' | '\'')) => bytes.push(u8::try_from(c).unwrap_or(b'?')),
                _ => return Err(unknown()),
            },
            c if c == quote => {
                if rest.next().is_some() {
                    return Err(TextError::new(at + 1, "nothing after the closing quote"));
                }
                return Ok(match String::from_utf8(bytes) {
                    Ok(text) => FieldValue::Text(text),
                    Err(error) => {
                        let mut bytes = error.into_bytes();
                        bytes.push(0);
                        FieldValue::Bytes(bytes)
                    }
                });
            }
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err(TextError::new(text.len(), "a closing quote"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_writes_values_as_c_does() {
        let parse = |text| FieldValue::parse(text).unwrap();
        assert_eq!(parse("4096"), FieldValue::Int(4096));
        assert_eq!(parse("-0x10"), FieldValue::Int(-16));
        assert_eq!(
            parse("18446744073709551615"),
            FieldValue::Int(u64::MAX.into())
        );
        assert_eq!(parse("true"), FieldValue::Int(1));
        assert_eq!((parse("0"), parse("0o101")), (0.into(), 65.into()));
        assert_eq!(parse("0b101"), FieldValue::Int(5));
        assert_eq!(parse("00:11:22:33:44:55"), "00:11:22:33:44:55".into());
        for octal in ["0101", "-017", "00", "[1, 07]", "08"] {
            let error = FieldValue::parse(octal).unwrap_err().to_string();
            assert!(error.contains("octal"), "{octal}: {error}");
        }
        assert_eq!(parse("'A'"), FieldValue::Int(65));
        assert_eq!(parse("/etc/passwd"), FieldValue::from("/etc/passwd"));
        assert_eq!(parse("10.0.0.1"), FieldValue::from("10.0.0.1"));
        assert_eq!(parse(r#""a \"b\"\n""#), FieldValue::from("a \"b\"\n"));
        assert_eq!(parse(r#""\xff""#), FieldValue::from([0xffu8, 0]));
        assert_eq!(
            parse("hex:dead be:ef"),
            FieldValue::from([0xdeu8, 0xad, 0xbe, 0xef])
        );
        assert_eq!(parse("hex:0x01,0x02"), FieldValue::from([1u8, 2]));
        assert_eq!(parse("[1, -2, 0x3]"), FieldValue::from([1i32, -2, 3]));
        assert_eq!(parse("{}"), FieldValue::Ints(vec![]));
    }

    #[test]
    fn broken_text_says_at_which_byte() {
        let at = |text: &str| parse_assignment(text).unwrap_err().at;
        assert_eq!(at("count"), 5);
        assert_eq!(at("=1"), 0);
        assert_eq!(at("count=12zz"), 6);
        assert_eq!(at("buf=hex:0g"), 9);
        assert_eq!(at("buf=hex:012"), 10);
        assert_eq!(at("name=\"dd"), 8);
        assert_eq!(at("name=\"d\"d"), 8);
        assert_eq!(at("args=[1, x]"), 8);
        assert_eq!(
            FieldValue::parse("99999999999999999999")
                .unwrap_err()
                .to_string(),
            "at byte 0: expected a number (quote it if it is text)"
        );
    }

    #[test]
    fn constants_have_their_names() {
        assert_eq!(named_number("O_WRONLY|O_CREAT"), Ok(0o101));
        assert_eq!(named_number("S_IFREG | 0o644"), Ok(0o100_644));
        assert_eq!(named_number("-ENOENT"), Ok(-2));
        assert_eq!(named_number("AT_FDCWD"), Ok(-100));
        assert_eq!(named_number("O_CREAT|O_CRAET"), Err("O_CRAET".to_owned()));
        assert_eq!(named_number("O_CREAT|0644"), Err("0644".to_owned()));
        assert_eq!(named_number("dd"), Err("dd".to_owned()));
    }

    #[test]
    fn an_assignment_splits_at_the_first_equals_sign() {
        let (field, value) = parse_assignment("args[2] = a=b").unwrap();
        assert_eq!((field, value), ("args[2]", FieldValue::from("a=b")));
    }
}
