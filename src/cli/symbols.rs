//! Names in place of numbers: enumerators of BTF, constants of system calls.

use crate::spec::constants;
use crate::spec::context::Arch;
use crate::vm::events::FieldValue;

/// The value of names and numbers that are joined by `|`: `TCP_CLOSE`, `O_WRONLY|O_CREAT`,
/// `-ENOENT`. `enumerator` knows the names of BTF.
pub(super) fn value(text: &str, enumerator: impl Fn(&str) -> Option<i128>) -> Option<i128> {
    text.split('|').map(str::trim).try_fold(0, |all, part| {
        let (sign, name) = match part.strip_prefix('-') {
            Some(name) => (-1, name),
            None => (1, part),
        };
        let known = constants::value(name, Arch::HOST).map(i128::from);
        let known = enumerator(name).or(known).map(|value| sign * value);
        let number = || match FieldValue::parse(part) {
            Ok(FieldValue::Int(number)) => Some(number),
            _ => None,
        };
        Some(all | known.or_else(number)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_joined() {
        let value = |text| value(text, |name| (name == "STATE_BUSY").then_some(5));
        assert_eq!(value("STATE_BUSY"), Some(5));
        assert_eq!(value("STATE_BUSY | O_RDWR|0x8"), Some(15));
        assert_eq!(value("-ENOENT"), Some(-2));
        assert_eq!(value("0o644"), Some(0o644));
        assert_eq!(value("0644"), None);
        assert_eq!(value("STATE_BUZY"), None);
    }
}
