//! What this machine's kernel offers, and what is missing.

use std::fs;

use serde::Serialize;

use super::probe::{Probe, probe};
use super::sys::{MapFd, MapRequest};
use crate::spec::{MapType, ProgType};
use crate::util::Errno;

/// The kernel as an engine: whether it can be asked, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Availability {
    /// Its release, such as `6.18.44`.
    pub release: String,
    /// What this process may do.
    pub privilege: Privilege,
    /// Why `bpf(2)` makes no map for us, as the error number's name; none if it does.
    pub refused: Option<String>,
    /// Whether it shows its types in `/sys/kernel/btf/vmlinux`.
    pub btf: bool,
    /// Whether programs are compiled (`net.core.bpf_jit_enable`); none if it doesn't
    /// say.
    pub jit: Option<bool>,
    /// The program types, in order; empty where nothing can be loaded.
    pub prog_types: Vec<TypeSupport>,
}

/// What this process may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Privilege {
    /// Whether it runs as root.
    pub root: bool,
    /// Which of the capabilities that matter to BPF it has.
    pub capabilities: Vec<Capability>,
}

/// A capability (`include/uapi/linux/capability.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Everything below, on kernels before 5.8 the only one.
    SysAdmin = 21,
    /// Programs for the network.
    NetAdmin = 12,
    /// Programs that watch the kernel.
    Perfmon = 38,
    /// Maps and programs as such.
    Bpf = 39,
}

impl Capability {
    /// Those that matter to BPF.
    pub const ALL: [Self; 4] = [Self::SysAdmin, Self::NetAdmin, Self::Perfmon, Self::Bpf];

    /// Its name in the header.
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
pub struct TypeSupport {
    /// The type's name.
    #[serde(serialize_with = "name")]
    pub prog_type: ProgType,
    /// Whether the kernel knows it.
    pub known: bool,
    /// Whether the smallest program of this type was accepted. Types that attach
    /// through BTF want to be told what they attach to, so theirs is not.
    pub loads: bool,
    /// Why it was refused, where the kernel didn't even look at the program.
    pub errno: Option<String>,
}

fn name<S: serde::Serializer>(prog_type: &ProgType, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(prog_type.name())
}

impl Availability {
    /// Asks the kernel.
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
            prog_types,
        }
    }

    /// Whether programs can be loaded.
    #[must_use]
    pub const fn usable(&self) -> bool {
        self.refused.is_none()
    }

    /// What is missing and what to do about it, a sentence for each.
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
            Some(errno) => missing.push(format!("bpf() makes no map: {errno}")),
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
    /// Whether nothing is missing that the kernel could ask for. It may still refuse: in a
    /// container the rights are those of another world.
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

/// Makes a map, the least that can be asked for.
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
            prog_types: Vec::new(),
        };
        assert!(!kernel.usable());
        assert!(kernel.missing()[0].contains("run this as root"));
        kernel.privilege.capabilities.push(Capability::SysAdmin);
        assert!(kernel.missing()[0].contains("seccomp"));
        kernel.refused = Some("ENOSYS".to_owned());
        assert!(kernel.missing()[0].contains("CONFIG_BPF_SYSCALL"));
        kernel.refused = Some("ENOMEM".to_owned());
        assert_eq!(kernel.missing(), ["bpf() makes no map: ENOMEM"]);
        kernel.refused = None;
        assert!(kernel.usable() && kernel.missing().is_empty());
    }
}
