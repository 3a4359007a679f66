//! Capabilities of the user who loads programs and maps (`capabilities(7)`).

use std::fmt;
use std::str::FromStr;

use bitflags::bitflags;
use thiserror::Error;

use super::{MapFlags, MapType, ProgType, Traits};

bitflags! {
    /// The capabilities of a loader that decide which programs and maps it may load. The default
    /// is all of them; the empty set is an ordinary user.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Capabilities: u8 {
        /// `CAP_BPF`: every map type, BTF, subprograms, loops, and most helpers.
        const BPF = 1 << 0;
        /// `CAP_PERFMON`: tracing programs; pointers may leak, and nothing is done against
        /// speculative execution.
        const PERFMON = 1 << 1;
        /// `CAP_NET_ADMIN`: networking programs, and maps of sockets and devices.
        const NET_ADMIN = 1 << 2;
        /// `CAP_SYS_ADMIN`, which stands for each of the others.
        const SYS_ADMIN = 1 << 3;
    }
}

/// A name that is not one of a capability in [`Capabilities`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown capability `{0}`: give some of CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN, CAP_SYS_ADMIN"
)]
pub struct UnknownCapability(String);

impl Default for Capabilities {
    fn default() -> Self {
        Self::all()
    }
}

impl Capabilities {
    /// Whether a check for these capabilities passes (`bpf_token_capable`,
    /// `kernel/bpf/token.c`).
    #[must_use]
    pub const fn allow(self, wanted: Self) -> bool {
        self.contains(Self::SYS_ADMIN) || self.contains(wanted)
    }

    /// The names, such as `CAP_BPF`.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.iter_names().map(|(name, _)| format!("CAP_{name}"))
    }

    /// What loading a program of this type requires (`bpf_prog_load`, `kernel/bpf/syscall.c`).
    pub(crate) fn for_program(prog_type: ProgType) -> Self {
        let traits = prog_type.info().traits;
        let mut needed = Self::empty();
        needed.set(
            Self::BPF,
            !matches!(prog_type, ProgType::SocketFilter | ProgType::CgroupSkb),
        );
        needed.set(Self::NET_ADMIN, traits.contains(Traits::NET_ADMIN));
        needed.set(Self::PERFMON, traits.contains(Traits::PERFMON));
        needed
    }

    /// What creating a map of this type with these flags requires (`map_create`,
    /// `kernel/bpf/syscall.c`; `htab_map_alloc_check`, `kernel/bpf/hashtab.c`).
    pub(crate) const fn for_map(map_type: MapType, flags: MapFlags) -> Self {
        let needed = match map_type {
            MapType::Array
            | MapType::PercpuArray
            | MapType::ProgArray
            | MapType::PerfEventArray
            | MapType::CgroupArray
            | MapType::ArrayOfMaps
            | MapType::Hash
            | MapType::PercpuHash
            | MapType::HashOfMaps
            | MapType::Ringbuf
            | MapType::UserRingbuf
            | MapType::CgroupStorage
            | MapType::PercpuCgroupStorage => Self::empty(),
            MapType::Sockmap
            | MapType::Sockhash
            | MapType::Devmap
            | MapType::DevmapHash
            | MapType::Xskmap => Self::NET_ADMIN,
            _ => Self::BPF,
        };
        let hashes = matches!(
            map_type,
            MapType::Hash
                | MapType::PercpuHash
                | MapType::LruHash
                | MapType::LruPercpuHash
                | MapType::HashOfMaps
        );
        if hashes && flags.contains(MapFlags::ZERO_SEED) {
            needed.union(Self::SYS_ADMIN)
        } else {
            needed
        }
    }
}

impl FromStr for Capabilities {
    type Err = UnknownCapability;

    /// Reads one name, in any case and with or without `CAP_`.
    fn from_str(text: &str) -> Result<Self, UnknownCapability> {
        let name = text.to_ascii_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        Self::from_name(name).ok_or_else(|| UnknownCapability(text.to_owned()))
    }
}

/// The names, separated by commas; `none` for an ordinary user.
impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.names().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_administrator_needs_no_other_capability() {
        let (bpf, admin) = (Capabilities::BPF, Capabilities::SYS_ADMIN);
        assert!(admin.allow(bpf | Capabilities::PERFMON));
        assert!(!bpf.allow(bpf | Capabilities::PERFMON) && !bpf.allow(admin));
        assert!(Capabilities::empty().allow(Capabilities::empty()));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in Capabilities::all().names() {
            assert_eq!(name.parse::<Capabilities>().unwrap().to_string(), name);
        }
        assert_eq!("net_admin".parse(), Ok(Capabilities::NET_ADMIN));
        let error = "CAP_BPFF".parse::<Capabilities>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown capability `CAP_BPFF`"),
            "{error}"
        );
        assert_eq!(Capabilities::empty().to_string(), "none");
    }

    #[test]
    fn types_differ_in_what_they_require() {
        use Capabilities as C;
        let program = Capabilities::for_program;
        assert_eq!(program(ProgType::SocketFilter), C::empty());
        assert_eq!(program(ProgType::CgroupSkb), C::empty());
        assert_eq!(program(ProgType::SkReuseport), C::BPF);
        assert_eq!(program(ProgType::Xdp), C::BPF | C::NET_ADMIN);
        assert_eq!(program(ProgType::Kprobe), C::BPF | C::PERFMON);
        let map = |map_type| Capabilities::for_map(map_type, MapFlags::empty());
        assert_eq!(map(MapType::Ringbuf), C::empty());
        assert_eq!(map(MapType::LruHash), C::BPF);
        assert_eq!(map(MapType::Sockmap), C::NET_ADMIN);
        let seeded = Capabilities::for_map(MapType::Hash, MapFlags::ZERO_SEED);
        assert_eq!(seeded, C::SYS_ADMIN);
    }
}
