//! Releases and the versions that select them.

use std::cmp::Ordering;

/// Whether a release begins with a version: `6.12.9-amd64` with `6.12`, and not with `6.1`.
pub(super) fn begins_with(release: &str, version: &str) -> bool {
    let rest = release.strip_prefix(version);
    !version.is_empty()
        && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Compares versions: numbers in them by value, the rest as text.
pub(super) fn by_version(a: &str, b: &str) -> Ordering {
    pieces(a).cmp(&pieces(b))
}

/// A version in pieces: texts, and the numbers between them.
fn pieces(version: &str) -> Vec<(u64, &str)> {
    let mut pieces = Vec::new();
    let mut rest = version;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (text, next) = after.split_at(end);
        pieces.push((number.parse().unwrap_or(u64::MAX), text));
        rest = next;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        let mut releases = ["6.12.9-amd64", "6.2", "6.12.117+deb12", "6.12", "7.3-rc1"];
        releases.sort_by(|a, b| by_version(a, b));
        let ordered = ["6.2", "6.12", "6.12.9-amd64", "6.12.117+deb12", "7.3-rc1"];
        assert_eq!(releases, ordered);
    }

    #[test]
    fn a_version_is_the_beginning_of_a_release() {
        for version in ["6.12.9-amd64", "6.12.9", "6.12", "6"] {
            assert!(begins_with("6.12.9-amd64", version), "{version}");
        }
        for version in ["", "6.1", "6.12.9-amd", "12", "6.12.9-amd64-x"] {
            assert!(!begins_with("6.12.9-amd64", version), "{version}");
        }
    }
}
