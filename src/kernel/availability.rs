//! What the running kernel supports, and what is missing.

use std::fs;

use serde::Serialize;

use super::probe::{Probe, probe};
use super::sys::{MapFd, MapRequest};
use crate::spec::{Capabilities, MapType, ProgType};
use crate::util::Errno;

/// The kernel as an engine: whether bpflab can use it, and what it supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Availability {
    /// Its release, such as `6.18.44`.
    pub release: String,
    /// The privileges of this process.
    pub privilege: Privilege,
    /// The name of the errno with which `bpf(2)` refused to create a map; none if it did not.
    pub refused: Option<String>,
    /// Whether the kernel has `/sys/kernel/btf/vmlinux`.
    pub btf: bool,
    /// Whether the JIT is enabled (`net.core.bpf_jit_enable`); none if unknown.
    pub jit: Option<bool>,
    /// The level of kernel lockdown: `integrity`, `confidentiality`; none if it is not locked
    /// down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lockdown: Option<String>,
    /// The program types, in order; empty if no program can be loaded.
    pub prog_types: Vec<TypeSupport>,
}

/// The privileges of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Privilege {
    /// Whether it runs as root.
    pub root: bool,
    /// The capabilities that it has of those relevant to BPF.
    pub capabilities: Vec<Capability>,
}

/// A capability (`include/uapi/linux/capability.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Includes all others here; the only one that kernels before 5.8 check.
    SysAdmin = 21,
    /// Networking programs.
    NetAdmin = 12,
    /// Tracing programs.
    Perfmon = 38,
    /// Creating maps and loading programs.
    Bpf = 39,
}

impl Capability {
    /// The capabilities relevant to BPF.
    pub const ALL: [Self; 4] = [Self::SysAdmin, Self::NetAdmin, Self::Perfmon, Self::Bpf];

    /// The same in a set.
    pub(super) const fn bit(self) -> Capabilities {
        match self {
            Self::SysAdmin => Capabilities::SYS_ADMIN,
            Self::NetAdmin => Capabilities::NET_ADMIN,
            Self::Perfmon => Capabilities::PERFMON,
            Self::Bpf => Capabilities::BPF,
        }
    }

    /// The capability's name in the header.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

impl Serialize for Capability {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// Whether a program type can be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TypeSupport {
    /// The type's name.
    #[serde(serialize_with = "name")]
    pub prog_type: ProgType,
    /// Whether the kernel supports it.
    pub known: bool,
    /// Whether the smallest program of this type was accepted. It is not for types that attach
    /// through BTF, which need an attach target.
    pub loads: bool,
    /// The errno of a refusal before the verifier ran.
    pub errno: Option<String>,
}

fn name<S: serde::Serializer>(prog_type: &ProgType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(prog_type.name())
}

impl Availability {
    /// Probes the running kernel.
    #[must_use]
    pub fn probe() -> Self {
        let refused = make_map().err();
        let prog_types = match refused {
            None => ProgType::ALL.iter().map(|ty| support(*ty)).collect(),
            Some(_) => Vec::new(),
        };
        let jit = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable");
        Self {
            release: first_line("/proc/sys/kernel/osrelease"),
            privilege: Privilege::of_this_process(),
            refused: refused.map(|errno| format!("{errno:?}")),
            btf: fs::File::open("/sys/kernel/btf/vmlinux").is_ok(),
            jit: jit.ok().map(|value| value.trim() != "0"),
            lockdown: lockdown(&first_line("/sys/kernel/security/lockdown")),
            prog_types,
        }
    }

    /// Whether programs can be loaded.
    #[must_use]
    pub const fn usable(&self) -> bool {
        self.refused.is_none()
    }

    /// Whether kernel lockdown forbids programs to read kernel memory, which recording needs.
    #[must_use]
    pub fn is_locked_down(&self) -> bool {
        self.lockdown.as_deref() == Some("confidentiality")
    }

    /// What is missing and what to do about it, one sentence each.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let has = |capability| self.privilege.capabilities.contains(&capability);
        match &self.refused {
            None => {}
            Some(errno) if errno == "EPERM" && !has(Capability::SysAdmin) => missing.push(
                "bpf() is not permitted: run this as root, or with CAP_BPF, CAP_PERFMON and \
                 CAP_NET_ADMIN"
                    .to_owned(),
            ),
            Some(errno) if errno == "EPERM" => missing.push(
                "bpf() is not permitted to root either: a container's seccomp filter or \
                 kernel lockdown forbids it, or, before Linux 5.11, the limit of locked memory \
                 is too low (ulimit -l unlimited)"
                    .to_owned(),
            ),
            Some(errno) if errno == "ENOSYS" => missing.push(format!(
                "bpf() fails with {errno}: this kernel has no BPF system call (CONFIG_BPF_SYSCALL)"
            )),
            Some(errno) => missing.push(format!("bpf() cannot create a map: {errno}")),
        }
        if self.is_locked_down() {
            missing.push(
                "the kernel is locked down (lockdown=confidentiality, \
                 /sys/kernel/security/lockdown): programs can't read kernel memory, and kprobes \
                 are forbidden; only a boot without it changes that. A virtual machine has a \
                 kernel of its own (--vm)"
                    .to_owned(),
            );
        }
        if !self.btf {
            missing.push(
                "no /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF): programs that attach through \
                 BTF can't be loaded"
                    .to_owned(),
            );
        }
        missing
    }
}

impl Privilege {
    /// Whether the process has all relevant capabilities. The kernel may still refuse: in a
    /// container the capabilities may belong to another user namespace.
    pub(super) fn is_complete(&self) -> bool {
        Capability::ALL
            .iter()
            .all(|capability| self.capabilities.contains(capability))
    }

    pub(super) fn of_this_process() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self::parse(&status)
    }

    /// Reads `/proc/PID/status`: the effective user and capabilities.
    fn parse(status: &str) -> Self {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().split_whitespace()
        };
        let effective = field("CapEff:")
            .next()
            .and_then(|bits| u64::from_str_radix(bits, 16).ok())
            .unwrap_or(0);
        let has = |capability: &Capability| effective >> (*capability as u32) & 1 == 1;
        Self {
            root: field("Uid:").nth(1) == Some("0"),
            capabilities: Capability::ALL.into_iter().filter(has).collect(),
        }
    }
}

/// Creates the smallest map.
fn make_map() -> Result<(), Errno> {
    let request = MapRequest {
        map_type: MapType::Array,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        flags: 0,
        extra: 0,
        numa_node: 0,
        name: Default::default(),
        inner: None,
        types: None,
        kernel_value_type: 0,
        token: None,
    };
    MapFd::create(&request).map(drop)
}

fn support(prog_type: ProgType) -> TypeSupport {
    let probe = probe(prog_type);
    TypeSupport {
        prog_type,
        known: !matches!(probe, Probe::Refused(_)),
        loads: probe == Probe::Loads,
        errno: match probe {
            Probe::Refused(errno) => Some(format!("{errno:?}")),
            Probe::Loads | Probe::Known => None,
        },
    }
}

/// The level in brackets of `none integrity [confidentiality]`; none for `none`.
fn lockdown(levels: &str) -> Option<String> {
    let (_, rest) = levels.split_once('[')?;
    let (level, _) = rest.split_once(']')?;
    (level != "none").then(|| level.to_owned())
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_read_from_the_status() {
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t0000008000001000\n";
        let privilege = Privilege::parse(status);
        assert!(privilege.root);
        assert_eq!(
            privilege.capabilities,
            [Capability::NetAdmin, Capability::Bpf]
        );
        assert!(!Privilege::parse("").root);
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut kernel = Availability {
            release: "6.18".to_owned(),
            privilege: Privilege::parse(""),
            refused: Some("EPERM".to_owned()),
            btf: true,
            jit: None,
            lockdown: None,
            prog_types: Vec::new(),
        };
        assert!(!kernel.usable());
        assert!(kernel.missing()[0].contains("run this as root"));
        kernel.privilege.capabilities.push(Capability::SysAdmin);
        assert!(kernel.missing()[0].contains("seccomp"));
        kernel.refused = Some("ENOSYS".to_owned());
        assert!(kernel.missing()[0].contains("CONFIG_BPF_SYSCALL"));
        kernel.refused = Some("ENOMEM".to_owned());
        assert_eq!(kernel.missing(), ["bpf() cannot create a map: ENOMEM"]);
        kernel.refused = None;
        assert!(kernel.usable() && kernel.missing().is_empty());
        kernel.lockdown = lockdown("none integrity [confidentiality]");
        assert!(kernel.is_locked_down() && kernel.missing()[0].contains("(--vm)"));
        kernel.lockdown = lockdown("none [integrity] confidentiality");
        assert!(!kernel.is_locked_down() && kernel.missing().is_empty());
        assert_eq!(lockdown("[none] integrity"), None);
    }
}
