//! System calls and their trace events, so that `syscalls/sys_enter_write` has a layout on
//! machines without tracefs.
//!
//! The table is a text file, one system call per line: the name in `sys_enter_…`, the
//! numbers on x86-64 and arm64, and the arguments as in `events/syscalls/*/format`. Numbers
//! are those of `arch/x86/entry/syscalls/syscall_64.tbl` and `scripts/syscall.tbl`.

use super::context::Arch;

const TABLE: &str = include_str!("syscalls.tsv");

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// The name of its entry point without `sys_`, which is used in its events: `newfstat`,
    /// not `fstat`.
    pub name: &'static str,
    x86_64: Option<u32>,
    arm64: Option<u32>,
    arguments: &'static str,
}

/// An argument of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its type in C: `const char *`.
    pub c_type: &'static str,
    /// Its name: `buf`.
    pub name: &'static str,
}

impl Syscall {
    /// Parses a line of the table; `None` for the heading.
    fn parse(line: &'static str) -> Option<Self> {
        let mut columns = line.split('\t');
        let name = columns.next().filter(|name| !name.starts_with('#'))?;
        let x86_64 = columns.next()?.parse().ok();
        let arm64 = columns.next()?.parse().ok();
        Some(Self {
            name,
            x86_64,
            arm64,
            arguments: columns.next()?,
        })
    }

    /// Every system call, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.lines().filter_map(Self::parse)
    }

    /// The system call with this name in its events.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|syscall| syscall.name == name)
    }

    /// The system call with this number.
    #[must_use]
    pub fn by_number(number: u32, machine: Arch) -> Option<Self> {
        Self::all().find(|syscall| syscall.number(machine) == Some(number))
    }

    /// Its number; `None` on architectures without this call.
    #[must_use]
    pub const fn number(&self, machine: Arch) -> Option<u32> {
        match machine {
            Arch::X86_64 => self.x86_64,
            Arch::Arm64 => self.arm64,
        }
    }

    /// Its arguments, at most six.
    pub fn arguments(&self) -> impl Iterator<Item = Argument> + use<> {
        self.arguments.split(", ").filter_map(|argument| {
            let (c_type, name) = argument.rsplit_once(' ')?;
            Some(Argument { c_type, name })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_whole() {
        let all: Vec<_> = Syscall::all().collect();
        assert_eq!(all.len(), 367);
        assert!(all.is_sorted_by(|one, next| one.name < next.name));
        for syscall in &all {
            assert!(syscall.arguments().count() <= 6, "{}", syscall.name);
            assert_eq!(
                syscall.arguments().count(),
                syscall
                    .arguments
                    .split(", ")
                    .filter(|text| !text.is_empty())
                    .count()
            );
            assert!(
                syscall.x86_64.or(syscall.arm64).is_some(),
                "{}",
                syscall.name
            );
        }
        for machine in [Arch::X86_64, Arch::Arm64] {
            let mut numbers: Vec<_> = all
                .iter()
                .filter_map(|syscall| syscall.number(machine))
                .collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(
                numbers.len(),
                count,
                "a number names one system call on {machine:?}"
            );
        }
    }

    #[test]
    fn write_is_as_everywhere() {
        let write = Syscall::by_name("write").unwrap();
        assert_eq!(write.number(Arch::X86_64), Some(1));
        assert_eq!(write.number(Arch::Arm64), Some(64));
        let arguments: Vec<_> = write
            .arguments()
            .map(|argument| (argument.c_type, argument.name))
            .collect();
        assert_eq!(
            arguments,
            [
                ("unsigned int", "fd"),
                ("const char *", "buf"),
                ("size_t", "count")
            ]
        );
        assert_eq!(
            Syscall::by_number(321, Arch::X86_64).map(|syscall| syscall.name),
            Some("bpf")
        );
        assert_eq!(Syscall::by_name("open").unwrap().number(Arch::Arm64), None);
        assert_eq!(Syscall::by_name("getpid").unwrap().arguments().count(), 0);
    }
}
