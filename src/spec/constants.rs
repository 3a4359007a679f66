//! C constants for arguments and results of system calls: `O_CREAT`, `PROT_READ`, `ENOENT`.
//!
//! The table is a text file, one constant per line: the name, its value on x86-64, and its
//! value on arm64 if different. Values are those of the C library's headers, which take
//! them from `include/uapi/`.

use super::context::Arch;

const TABLE: &str = include_str!("constants.tsv");

/// The value of a constant; `None` for an unknown name.
///
/// ```
/// use bpflab::spec::{constants, context::Arch};
///
/// assert_eq!(constants::value("O_CREAT", Arch::X86_64), Some(0o100));
/// assert_eq!(constants::value("O_DIRECTORY", Arch::Arm64), Some(0o40000));
/// assert_eq!(constants::value("O_CRAET", Arch::X86_64), None);
/// ```
#[must_use]
pub fn value(name: &str, machine: Arch) -> Option<i64> {
    let line = lines().find(|line| line.split('\t').next() == Some(name))?;
    let mut values = line.split('\t').skip(1);
    let x86_64 = values.next()?;
    number(match machine {
        Arch::X86_64 => x86_64,
        Arch::Arm64 => values.next().unwrap_or(x86_64),
    })
}

fn lines() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#'))
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let mut names: Vec<_> = lines().filter_map(|line| line.split('\t').next()).collect();
        for name in &names {
            assert!(value(name, Arch::X86_64).is_some(), "{name}");
            assert!(value(name, Arch::Arm64).is_some(), "{name}");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert!(count == names.len() && count > 200, "{count} lines");
    }

    /// Compares with the headers of this machine's C library.
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    #[test]
    fn values_are_those_of_the_c_library() {
        let here = [
            ("AT_FDCWD", libc::AT_FDCWD),
            ("CLONE_NEWNET", libc::CLONE_NEWNET),
            ("EINPROGRESS", libc::EINPROGRESS),
            ("MAP_ANONYMOUS", libc::MAP_ANONYMOUS),
            ("O_DIRECT", libc::O_DIRECT),
            ("O_DIRECTORY", libc::O_DIRECTORY),
            ("O_NOFOLLOW", libc::O_NOFOLLOW),
            ("O_TMPFILE", libc::O_TMPFILE),
            ("PROT_EXEC", libc::PROT_EXEC),
            ("SIGCHLD", libc::SIGCHLD),
            ("SOCK_CLOEXEC", libc::SOCK_CLOEXEC),
        ];
        for (name, expected) in here {
            assert_eq!(value(name, Arch::HOST), Some(expected.into()), "{name}");
        }
    }
}
