//! `__kconfig` externs: kinds of variables, their layout in the `.kconfig` map, and
//! encoding of kernel configuration values (libbpf, `bpf_object__collect_externs` and
//! `set_kcfg_value_*`).

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::types::resolve;
use crate::btf::{Btf, Encoding, Kind};
use crate::spec::BuildOptions;
use crate::util::{TypeId, compressed};

/// The kernel that bpflab models, as `KERNEL_VERSION(6, 18, 0)`.
const LINUX_KERNEL_VERSION: u64 = 6 << 16 | 18 << 8;

/// Externs that libbpf fills in itself, with their values on that kernel.
const VIRTUAL: &[(&str, u64)] = &[
    ("LINUX_KERNEL_VERSION", LINUX_KERNEL_VERSION),
    ("LINUX_HAS_BPF_COOKIE", 1),
    ("LINUX_HAS_SYSCALL_WRAPPER", 1),
];

/// The build options in a kernel configuration file, plain or packed as `/proc/config.gz`;
/// they determine which helpers programs have.
///
/// # Errors
/// A file that can't be read.
pub fn build_options(path: impl AsRef<Path>) -> io::Result<BuildOptions> {
    let bytes = compressed::read(path.as_ref())?;
    Ok(BuildOptions::from_config(&String::from_utf8_lossy(&bytes)))
}

/// Known values in configuration file syntax: `y`, `250`, `"text"`.
#[derive(Debug, Clone, Default)]
pub(super) struct Kconfig {
    given: Values,
    /// Values of the running kernel, if programs are for it; explicit values take
    /// precedence.
    running: Option<Arc<Values>>,
}

type Values = FxHashMap<String, String>;

/// Kind of a `__kconfig` variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `bool`: `y` or `n`.
    Bool,
    /// `enum libbpf_tristate`: `y`, `m` or `n`.
    Tristate,
    /// `char`: `y`, `m`, `n` or a number.
    Char,
    /// An integer.
    Int,
    /// `char []`: a string.
    Text,
}

/// A `__kconfig` variable in the `.kconfig` map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// Its kind.
    pub kind: ValueKind,
    /// Its first byte in the map's value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Whether an integer is signed.
    pub signed: bool,
}

/// The kind and signedness of a variable of this type, if kconfig supports the type.
pub(super) fn kind_of(btf: &Btf, ty: TypeId) -> Option<(ValueKind, bool)> {
    let ty = resolve(btf, ty);
    match ty.kind() {
        Kind::Int => {
            let encoding = ty.int()?.encoding;
            match (encoding, ty.size()?) {
                (Encoding::Bool, 1) => Some((ValueKind::Bool, false)),
                (Encoding::Bool, _) => None,
                (_, 1) => Some((ValueKind::Char, encoding == Encoding::Signed)),
                (_, 2 | 4 | 8) => Some((ValueKind::Int, encoding == Encoding::Signed)),
                _ => None,
            }
        }
        Kind::Enum | Kind::Enum64 => {
            let is = ty.name() == "libbpf_tristate" && ty.size() == Some(4);
            is.then_some((ValueKind::Tristate, false))
        }
        Kind::Array => {
            let array = ty.array()?;
            let char = kind_of_char(btf, array.element);
            (array.len > 0 && char).then_some((ValueKind::Text, false))
        }
        _ => None,
    }
}

fn kind_of_char(btf: &Btf, ty: TypeId) -> bool {
    let ty = resolve(btf, ty);
    let is_bool = ty.int().is_some_and(|int| int.encoding == Encoding::Bool);
    ty.kind() == Kind::Int && ty.size() == Some(1) && !is_bool
}

impl Kconfig {
    /// Sets one value; replaces an earlier one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.given.insert(name.to_owned(), value.to_owned());
    }

    /// Sets the fallback for values that are not given, or removes it.
    pub fn set_running(&mut self, running: Option<Arc<Values>>) {
        self.running = running;
    }

    /// The value of this name.
    fn get(&self, name: &str) -> Option<&String> {
        let running = || self.running.as_ref()?.get(name);
        self.given.get(name).or_else(running)
    }

    /// Adds the values of a configuration file's text that are not set yet.
    ///
    /// # Errors
    /// The first `CONFIG_` line that isn't an assignment, with its number.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        read(text, &mut self.given)
    }

    /// The bytes of a variable; `None` if it has no value.
    ///
    /// # Errors
    /// Why the value doesn't fit the variable.
    pub fn bytes(
        &self,
        name: &str,
        variable: Variable,
        weak: bool,
    ) -> Result<Option<Vec<u8>>, String> {
        if let Some(value) = self.get(name) {
            return encode(value, variable).map(Some);
        }
        if let Some((_, value)) = VIRTUAL.iter().find(|(known, _)| *known == name) {
            return number(*value, variable).map(Some);
        }
        let is_known = name.starts_with("CONFIG_") || (name.starts_with("LINUX_") && weak);
        if !is_known {
            return Err(format!(
                "not a kernel configuration option: names are CONFIG_… and {}",
                VIRTUAL
                    .iter()
                    .map(|(name, _)| *name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        Ok(None)
    }
}

/// Adds the values of a configuration file's text that are not among `values` yet.
///
/// # Errors
/// The first `CONFIG_` line that isn't an assignment, with its number.
fn read(text: &str, values: &mut Values) -> Result<(), String> {
    for (index, line) in text.lines().enumerate() {
        if !line.starts_with("CONFIG_") {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(|| format!("line {}: '{line}' is not CONFIG_NAME=value", index + 1))?;
        values
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    Ok(())
}

/// The configuration of the running kernel, read once. Same search order as libbpf:
/// `/boot/config-$(uname -r)`, then `/proc/config.gz`.
pub(super) fn running() -> Option<Arc<Values>> {
    static RUNNING: OnceLock<Option<Arc<Values>>> = OnceLock::new();
    let read_file = |path: &str| {
        let bytes = compressed::read(Path::new(path)).ok()?;
        let mut values = Values::default();
        read(&String::from_utf8_lossy(&bytes), &mut values).ok()?;
        Some(Arc::new(values))
    };
    RUNNING
        .get_or_init(|| {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
            let boot = release.map(|release| format!("/boot/config-{}", release.trim_end()));
            let boot = boot.as_deref().and_then(read_file);
            boot.or_else(|| read_file("/proc/config.gz"))
        })
        .clone()
}

/// Encodes a value in configuration file syntax.
fn encode(value: &str, variable: Variable) -> Result<Vec<u8>, String> {
    let first = value.bytes().next().unwrap_or_default();
    match (first, variable.kind) {
        (b'y' | b'n' | b'm', _) => letter(first, variable),
        (b'"', ValueKind::Text) => text(value, variable.size),
        (_, ValueKind::Text) => Err(format!("{value} is not a string in double quotes")),
        (b'"', _) => Err(format!(
            "{value} is a string, but the variable is {}",
            variable.kind
        )),
        _ => {
            let parsed = parse(value).ok_or_else(|| format!("'{value}' is not a number"))?;
            match variable.kind {
                ValueKind::Int | ValueKind::Char => number(parsed, variable),
                kind => Err(format!("{value} is a number, but the variable is {kind}")),
            }
        }
    }
}

impl std::fmt::Display for ValueKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "a bool",
            Self::Tristate => "a tristate",
            Self::Char => "a char",
            Self::Int => "an integer",
            Self::Text => "a string",
        })
    }
}

/// Encodes `y`, `m` or `n` as libbpf does: `TRI_NO`, `TRI_YES` and `TRI_MODULE` are 0, 1
/// and 2.
fn letter(letter: u8, variable: Variable) -> Result<Vec<u8>, String> {
    let size = variable.size as usize;
    let byte = match (variable.kind, letter) {
        (ValueKind::Bool, b'm') => return Err("'m' needs a tristate or a char".to_owned()),
        (ValueKind::Bool, _) => u8::from(letter == b'y'),
        (ValueKind::Tristate, b'y') => 1,
        (ValueKind::Tristate, b'm') => 2,
        (ValueKind::Tristate, _) => 0,
        (ValueKind::Char, _) => letter,
        (kind, _) => {
            let letter = char::from(letter);
            return Err(format!(
                "'{letter}' is a tristate, but the variable is {kind}"
            ));
        }
    };
    let mut bytes = vec![0; size];
    if let Some(first) = bytes.first_mut() {
        *first = byte;
    }
    Ok(bytes)
}

/// Encodes a quoted string, truncated to leave room for its NUL.
fn text(value: &str, size: u32) -> Result<Vec<u8>, String> {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .ok_or_else(|| format!("{value} has no closing quote"))?;
    let room = (size as usize).saturating_sub(1).min(inner.len());
    let mut bytes = inner.as_bytes().get(..room).unwrap_or_default().to_vec();
    bytes.resize(size as usize, 0);
    Ok(bytes)
}

/// Parses a number like `strtoull` with base 0: decimal, `0x…`, `0…`; negative numbers as
/// two's complement.
fn parse(value: &str) -> Option<u64> {
    let (negative, digits) = match value.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let magnitude = if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        u64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    })
}

/// Encodes a number in the variable's size, if its value fits.
fn number(value: u64, variable: Variable) -> Result<Vec<u8>, String> {
    let fault = |text: String| Err(format!("{value} {text}"));
    match variable.kind {
        ValueKind::Bool if value > 1 => return fault("is not a bool".to_owned()),
        ValueKind::Bool | ValueKind::Int | ValueKind::Char => {}
        kind => return fault(format!("is a number, but the variable is {kind}")),
    }
    let size = variable.size as usize;
    let bits = variable.size.saturating_mul(8).min(64);
    let fits = match (bits, variable.signed) {
        (64, _) => true,
        (bits, true) => {
            let signed = value.cast_signed();
            let high = signed >> (bits.saturating_sub(1));
            high == 0 || high == -1
        }
        (bits, false) => value >> bits == 0,
    };
    if !fits {
        return fault(format!("doesn't fit in {size} bytes"));
    }
    Ok(value.to_le_bytes().get(..size).unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(kind: ValueKind, size: u32, signed: bool) -> Variable {
        Variable {
            kind,
            offset: 0,
            size,
            signed,
        }
    }

    #[test]
    fn values_become_bytes_as_libbpf_writes_them() {
        use ValueKind::*;
        let ok: &[(&str, Variable, &[u8])] = &[
            ("y", variable(Bool, 1, false), &[1]),
            ("n", variable(Bool, 1, false), &[0]),
            ("m", variable(Tristate, 4, false), &[2, 0, 0, 0]),
            ("y", variable(Char, 1, false), b"y"),
            ("250", variable(Int, 4, true), &[250, 0, 0, 0]),
            ("0x10", variable(Int, 2, false), &[16, 0]),
            ("010", variable(Char, 1, false), &[8]),
            ("-1", variable(Int, 2, true), &[255, 255]),
            ("0xffffffffffffffff", variable(Int, 8, false), &[255; 8]),
            ("\"ab\"", variable(Text, 4, false), b"ab\0\0"),
            ("\"abcdef\"", variable(Text, 4, false), b"abc\0"),
        ];
        for (value, variable, bytes) in ok {
            assert_eq!(encode(value, *variable).as_deref(), Ok(*bytes), "{value}");
        }
        for (value, variable) in [
            ("m", variable(Bool, 1, false)),
            ("y", variable(Int, 4, false)),
            ("2", variable(Bool, 1, false)),
            ("1", variable(Tristate, 4, false)),
            ("256", variable(Char, 1, false)),
            ("-1", variable(Int, 4, false)),
            ("32768", variable(Int, 2, true)),
            ("\"open", variable(Text, 4, false)),
            ("\"a\"", variable(Int, 4, false)),
            ("abc", variable(Int, 4, false)),
        ] {
            assert!(encode(value, variable).is_err(), "{value} in {variable:?}");
        }
    }

    #[test]
    fn a_set_value_wins_over_the_file_and_a_missing_one_is_none() {
        let mut kconfig = Kconfig::default();
        kconfig.set("CONFIG_HZ", "100");
        kconfig
            .read("# CONFIG_X is not set\nCONFIG_HZ=250\nCONFIG_A=y\n")
            .unwrap();
        let int = variable(ValueKind::Int, 4, true);
        let bytes = |name, weak| kconfig.bytes(name, int, weak);
        assert_eq!(bytes("CONFIG_HZ", false), Ok(Some(vec![100, 0, 0, 0])));
        assert_eq!(bytes("CONFIG_OTHER", false), Ok(None));
        assert_eq!(
            bytes("LINUX_KERNEL_VERSION", false),
            Ok(Some(vec![0, 18, 6, 0]))
        );
        assert_eq!(bytes("LINUX_NEWER", true), Ok(None));
        assert!(bytes("LINUX_NEWER", false).is_err());
        assert!(bytes("HZ", true).is_err());
        assert_eq!(
            kconfig.read("CONFIG_B").unwrap_err(),
            "line 1: 'CONFIG_B' is not CONFIG_NAME=value"
        );
    }
}
