//! Contents of user memory.

use crate::vm::World;
use crate::vm::events::FieldValue;

/// Puts a text with its NUL, the bytes of `hex:BYTES` or those of `file:PATH` at an address of
/// user memory.
pub(super) fn put_user(world: &mut World, at: &str, value: &str) -> Result<(), String> {
    let address = match FieldValue::parse(at) {
        Ok(FieldValue::Int(address)) => u64::try_from(address).ok(),
        _ => None,
    };
    let address = address.ok_or_else(|| format!("'{at}' is no address, such as 0x1000"))?;
    match world.user().map(address, &bytes(value)?) {
        true => Ok(()),
        false => Err(format!("{address:#x} is not in user space")),
    }
}

fn bytes(value: &str) -> Result<Vec<u8>, String> {
    if let Some(file) = value.strip_prefix("file:") {
        return std::fs::read(file).map_err(|error| format!("{file}: can't be read: {error}"));
    }
    match FieldValue::parse(value).map_err(|error| format!("{value}: {error}"))? {
        FieldValue::Text(text) => Ok([text.as_bytes(), b"\0"].concat()),
        FieldValue::Bytes(bytes) => Ok(bytes),
        FieldValue::Int(_) | FieldValue::Ints(_) => {
            Err("expected text (in quotes, if it is a number), hex:BYTES or file:PATH".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_bytes_and_files_are_put_at_addresses() {
        let mut world = World::default();
        for (value, expected) in [
            ("notes", &b"notes\0"[..]),
            ("\"7\"", b"7\0"),
            ("hex:0102", &[1, 2]),
        ] {
            put_user(&mut world, "0x1000", value).unwrap();
            let found = world.user().read(0x1000, expected.len());
            assert_eq!(found.as_deref(), Some(expected), "{value}");
        }
        put_user(&mut world, "4096", "file:Cargo.toml").unwrap();
        let file = std::fs::read("Cargo.toml").unwrap();
        assert_eq!(world.user().read(4096, file.len()), Some(file));
    }

    #[test]
    fn what_is_no_memory_is_said() {
        let error = |at, value| put_user(&mut World::default(), at, value).unwrap_err();
        assert!(error("x", "y").contains("no address"));
        assert!(error("0x1000", "7").starts_with("expected text"));
        assert!(error("0", "x").contains("not in user space"));
        assert!(error("0x1000", "file:none").contains("none: can't be read"));
    }
}
