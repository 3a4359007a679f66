//! BPF tokens: what a loader without capabilities of its own may do, since the administrator
//! delegated it to the loader's user namespace (`kernel/bpf/token.c`).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{AttachType, BpfCommand, MapType, ProgType};

/// A BPF token. Each set has a bit for each number of the kernel's enumeration.
///
/// Where it permits the type, the loader's capabilities in its user namespace count; where it does
/// not, the kernel ignores the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Token {
    /// The commands (`delegate_cmds`, [`BpfCommand`]).
    pub commands: u64,
    /// The map types (`delegate_maps`).
    pub maps: u64,
    /// The program types (`delegate_progs`).
    pub programs: u64,
    /// The attach types (`delegate_attachs`), which a program of a delegated type needs, too. A
    /// program without one has number 0, that of `cgroup_inet_ingress`.
    pub attach_types: u64,
}

/// Mount options that name no token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// An option that is none of these.
    #[error(
        "unknown option `{0}`: give some of delegate_cmds, delegate_maps, delegate_progs and \
         delegate_attachs, as in delegate_progs=xdp:sched_cls,delegate_maps=any"
    )]
    Option(String),
    /// A value that is neither `any`, nor a number, nor a name.
    #[error("{option}: unknown value `{value}`: give any, a mask (0x21), or names between colons")]
    Value {
        /// The option.
        option: String,
        /// The value.
        value: String,
    },
}

impl Token {
    /// Whether loading a program of this type with this number of an attach type is delegated
    /// (`bpf_token_allow_prog_type`). A struct_ops program has its member's number.
    #[must_use]
    pub fn permits_program(self, prog_type: ProgType, attach_type: u32) -> bool {
        has(self.commands, BpfCommand::ProgLoad.number())
            && has(self.programs, prog_type.number())
            && has(self.attach_types, attach_type)
    }

    /// Whether creating a map of this type is delegated (`bpf_token_allow_map_type`).
    #[must_use]
    pub fn permits_map(self, map_type: MapType) -> bool {
        has(self.commands, BpfCommand::MapCreate.number()) && has(self.maps, map_type.number())
    }

    /// The mount options: names and masks.
    pub(crate) fn options(self) -> impl Iterator<Item = (&'static str, String)> {
        let mask = |set| match set {
            u64::MAX => "any".to_owned(),
            set => format!("{set:#x}"),
        };
        [
            ("delegate_cmds", self.commands),
            ("delegate_maps", self.maps),
            ("delegate_progs", self.programs),
            ("delegate_attachs", self.attach_types),
        ]
        .into_iter()
        .map(move |(option, set)| (option, mask(set)))
    }

    /// Whether loading BTF is delegated (`bpf_btf_load`, `kernel/bpf/syscall.c`).
    #[must_use]
    pub const fn permits_btf(self) -> bool {
        has(self.commands, BpfCommand::BtfLoad.number())
    }
}

const fn has(set: u64, number: u32) -> bool {
    number < u64::BITS && set & (1 << number) != 0
}

impl FromStr for Token {
    type Err = TokenError;

    /// Reads the options of the BPF file system that the token is from (`bpf_parse_param`,
    /// `kernel/bpf/inode.c`), between commas. What is not named is not delegated.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let mut token = Self::default();
        for option in text.split(',') {
            let (name, values) = option.split_once('=').unwrap_or((option, ""));
            for value in values.split(':') {
                let number = |found: Option<u32>| found.map(|number| 1 << number);
                let lower = value.to_ascii_lowercase();
                let bare = |prefix: &str| lower.strip_prefix(prefix).unwrap_or(&lower).to_owned();
                let (set, bit) = match name {
                    "delegate_cmds" => {
                        let found = BpfCommand::from_name(&bare("bpf_"));
                        (&mut token.commands, number(found.map(BpfCommand::number)))
                    }
                    "delegate_maps" => {
                        let found = MapType::from_name(&bare("bpf_map_type_"));
                        (&mut token.maps, number(found.map(MapType::number)))
                    }
                    "delegate_progs" => {
                        let found = ProgType::from_name(&bare("bpf_prog_type_"));
                        (&mut token.programs, number(found.map(ProgType::number)))
                    }
                    "delegate_attachs" => {
                        let found = AttachType::from_name(&bare("bpf_"));
                        (
                            &mut token.attach_types,
                            number(found.map(AttachType::number)),
                        )
                    }
                    _ => return Err(TokenError::Option(name.to_owned())),
                };
                *set |= bit
                    .or_else(|| mask(value))
                    .ok_or_else(|| TokenError::Value {
                        option: name.to_owned(),
                        value: value.to_owned(),
                    })?;
            }
        }
        Ok(token)
    }
}

/// A set as `any` or as a number.
fn mask(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text == "any" => Some(u64::MAX),
        None => text.parse().ok(),
    }
}

/// The mount options with masks.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<_> = self
            .options()
            .map(|(option, mask)| format!("{option}={mask}"))
            .collect();
        f.write_str(&options.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_file_system() {
        let text = "delegate_cmds=prog_load:MAP_CREATE:link_create,delegate_maps=0x2,\
                    delegate_progs=BPF_PROG_TYPE_XDP:tracing,delegate_attachs=any";
        let token: Token = text.parse().unwrap();
        assert_eq!(token.commands, 1 << 28 | 1 << 5 | 1);
        assert!(token.permits_map(MapType::Hash) && !token.permits_map(MapType::Array));
        assert!(token.permits_program(ProgType::Xdp, 0));
        assert!(!token.permits_program(ProgType::SchedCls, 0));
        assert!(!token.permits_btf());
        assert_eq!(token.to_string().parse(), Ok(token));
    }

    #[test]
    fn a_program_needs_its_attach_type_too() {
        let all = "delegate_cmds=any,delegate_progs=any,delegate_attachs=trace_fentry";
        let token: Token = all.parse().unwrap();
        assert!(token.permits_program(ProgType::Tracing, AttachType::TraceFentry.number()));
        assert!(!token.permits_program(ProgType::Tracing, AttachType::TraceFexit.number()));
        assert!(!token.permits_program(ProgType::SocketFilter, 0));
    }

    #[test]
    fn wrong_options_are_named() {
        let error = |text: &str| text.parse::<Token>().unwrap_err().to_string();
        assert!(error("delegate_prog=xdp").starts_with("unknown option `delegate_prog`"));
        assert!(error("delegate_progs=xdq").starts_with("delegate_progs: unknown value `xdq`"));
        assert!(error("").starts_with("unknown option ``"));
    }
}
