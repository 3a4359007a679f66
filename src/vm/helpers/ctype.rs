//! Classes of characters as the kernel has them (`lib/ctype.c`): ASCII, and Latin-1
//! above it.

/// `isspace`: as in C, and the no-break space.
pub(super) const fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// `ispunct`: signs, and the multiplication and division signs among the letters.
pub(super) const fn is_punct(byte: u8) -> bool {
    byte.is_ascii_punctuation() || matches!(byte, 0xa1..=0xbf | 0xd7 | 0xf7)
}

/// `isalnum`.
pub(super) const fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte >= 0xc0 && !is_punct(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_bytes_are_of_one_class() {
        for byte in 0x21..=0x7eu8 {
            let classes = [is_space(byte), is_punct(byte), is_alnum(byte)];
            assert_eq!(
                classes.iter().filter(|class| **class).count(),
                1,
                "{byte:#x}"
            );
        }
        assert!(is_space(0xa0) && is_punct(0xd7) && is_alnum(0xe9));
        assert!(!is_alnum(0x80) && !is_punct(0x80) && !is_space(0x80));
    }
}
