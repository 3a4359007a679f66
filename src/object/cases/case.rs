//! A case, and its JSON form.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::hex::Hex;
use crate::btf::FuncInfo;
use crate::isa::RawInsn;
use crate::util::TypeId;

/// A program as loaded into the kernel, and the kernel's verdict.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Case {
    /// Unique name.
    pub id: String,
    /// The object file it comes from.
    pub object: String,
    /// Name of the C function.
    pub program: String,
    /// Its section.
    pub section: String,
    /// Name of the program type.
    pub type_name: String,
    /// `prog_type`.
    pub prog_type: u32,
    /// `expected_attach_type`.
    pub expected_attach_type: u32,
    /// `attach_btf_id`, 0 for none.
    pub attach_btf_id: u32,
    /// `attach_prog_fd`, 0 for none; the number is meaningless in another process.
    pub attach_prog_fd: u32,
    /// Name of the type `attach_btf_id`.
    pub attach_btf_name: String,
    /// `prog_flags`.
    pub prog_flags: u32,
    /// `license`.
    pub license: String,
    /// `prog_name`.
    pub kern_name: String,
    /// The instructions.
    pub insns: Vec<RawInsn>,
    /// The 64-bit immediates that refer to maps.
    pub fixups: Vec<Fixup>,
    /// The maps.
    pub maps: Vec<CaseMap>,
    /// Name of the program's BTF; empty for none.
    pub btf: String,
    /// `func_info`, offsets in slots.
    pub func_info: Vec<FuncInfo>,
    /// Results of test runs.
    pub runs: Vec<Run>,
    /// The kernel's verdict.
    pub kernel: Option<KernelSays>,
    /// Unknown keys, preserved.
    pub rest: Map<String, Json>,
}

/// A 64-bit immediate that refers to a map: `[instruction, map]`; -1 for one that is not
/// changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fixup(
    /// Slot of the instruction.
    pub u32,
    /// Index of the map.
    pub i64,
);

/// A map of a case, as in `BPF_MAP_CREATE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CaseMap {
    /// Its index in the list.
    pub idx: u32,
    /// `map_type`.
    #[serde(rename = "type")]
    pub map_type: u32,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// `map_flags`.
    #[serde(default)]
    pub map_flags: u32,
    /// `map_extra`.
    #[serde(default)]
    pub map_extra: u64,
    /// Name of the BTF of key and value: the program's, or none.
    #[serde(default)]
    pub btf: String,
    /// Type of the key.
    #[serde(default)]
    pub btf_key_type_id: u32,
    /// Type of the value.
    #[serde(default)]
    pub btf_value_type_id: u32,
    /// Type of the value in the kernel's BTF.
    #[serde(default)]
    pub btf_vmlinux_value_type_id: u32,
    /// Index of the map that defines its inner maps; -1 for none.
    #[serde(default = "none")]
    pub inner: i64,
    /// Whether user space can't change it.
    #[serde(default)]
    pub frozen: bool,
    /// Initial contents: key and value of each element.
    #[serde(default)]
    pub init: Vec<(Hex, Hex)>,
    /// Unknown keys, preserved.
    #[serde(flatten)]
    pub rest: Map<String, Json>,
}

fn none() -> i64 {
    -1
}

/// A test run: its input and return value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// `data_in`.
    #[serde(default)]
    pub data: Hex,
    /// `retval`.
    pub retval: u32,
    /// Unknown keys, preserved.
    #[serde(flatten)]
    pub rest: Map<String, Json>,
}

/// The kernel's verdict on a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelSays {
    /// `accept` or `reject`.
    pub verdict: String,
    /// The positive error number of a reject.
    #[serde(default)]
    pub errno: i32,
    /// The last line of its log before the statistics: the error line of a reject.
    #[serde(default)]
    pub log_last: String,
    /// Number of instructions processed.
    #[serde(default)]
    pub processed: u64,
    /// Unknown keys, preserved.
    #[serde(flatten)]
    pub rest: Map<String, Json>,
}

impl KernelSays {
    /// Whether the kernel accepted the program.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.verdict == "accept"
    }
}

/// Takes values out of an object by key; an error consists of the key and the problem.
struct Keys(Map<String, Json>);

type Wrong = (&'static str, String);

impl Keys {
    fn optional<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<Option<T>, Wrong> {
        let value = self.0.shift_remove(key);
        value
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| (key, error.to_string()))
    }

    fn or_default<T: DeserializeOwned + Default>(&mut self, key: &'static str) -> Result<T, Wrong> {
        self.optional(key).map(Option::unwrap_or_default)
    }

    fn required<T: DeserializeOwned>(&mut self, key: &'static str) -> Result<T, Wrong> {
        self.optional(key)?
            .ok_or_else(|| (key, "missing".to_owned()))
    }
}

impl Case {
    /// Reads a case from a JSON object.
    pub(super) fn from_json(object: Map<String, Json>) -> Result<Self, Wrong> {
        let mut keys = Keys(object);
        let Hex(code) = keys.required("insns")?;
        let (insns, rest) = RawInsn::slots(&code);
        if !rest.is_empty() {
            let text = format!("{} bytes: not a multiple of 8", code.len());
            return Err(("insns", text));
        }
        if let Some(count) = keys.optional::<usize>("insn_cnt")?
            && count != insns.len()
        {
            return Err((
                "insn_cnt",
                format!("{count}, but there are {}", insns.len()),
            ));
        }
        let Hex(info) = keys.or_default("func_info")?;
        let (records, rest) = info.as_chunks::<8>();
        if !rest.is_empty() {
            let text = format!("{} bytes: not a multiple of 8", info.len());
            return Err(("func_info", text));
        }
        let func_info = records.iter().map(|&[a, b, c, d, e, f, g, h]| FuncInfo {
            insn_off: u32::from_le_bytes([a, b, c, d]),
            ty: TypeId(u32::from_le_bytes([e, f, g, h])),
        });
        Ok(Self {
            id: keys.or_default("id")?,
            object: keys.or_default("object")?,
            program: keys.or_default("program")?,
            section: keys.or_default("section")?,
            type_name: keys.or_default("type_name")?,
            prog_type: keys.required("prog_type")?,
            expected_attach_type: keys.or_default("expected_attach_type")?,
            attach_btf_id: keys.or_default("attach_btf_id")?,
            attach_prog_fd: keys.or_default("attach_prog_fd")?,
            attach_btf_name: keys.or_default("attach_btf_name")?,
            prog_flags: keys.or_default("prog_flags")?,
            license: keys.or_default("license")?,
            kern_name: keys.or_default("kern_name")?,
            insns,
            fixups: keys.or_default("fixups")?,
            maps: keys.or_default("maps")?,
            btf: keys.or_default("btf")?,
            func_info: func_info.collect(),
            runs: keys.or_default("runs")?,
            kernel: keys.optional("kernel")?,
            rest: keys.0,
        })
    }

    /// Encodes the case as a JSON object; decoding it returns an equal case.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let code: Vec<u8> = self.insns.iter().flat_map(|insn| insn.to_bytes()).collect();
        let info: Vec<u8> = self
            .func_info
            .iter()
            .flat_map(|info| [info.insn_off.to_le_bytes(), info.ty.0.to_le_bytes()])
            .flatten()
            .collect();
        // The structs contain only strings, numbers and lists.
        let list = |value| serde_json::to_value(value).unwrap_or_default();
        let mut object = Map::new();
        let mut put = |key: &str, value: Json| object.insert(key.to_owned(), value);
        put("id", self.id.as_str().into());
        put("object", self.object.as_str().into());
        put("program", self.program.as_str().into());
        put("section", self.section.as_str().into());
        put("type_name", self.type_name.as_str().into());
        put("prog_type", self.prog_type.into());
        put("expected_attach_type", self.expected_attach_type.into());
        put("attach_btf_id", self.attach_btf_id.into());
        if self.attach_prog_fd != 0 {
            put("attach_prog_fd", self.attach_prog_fd.into());
        }
        put("attach_btf_name", self.attach_btf_name.as_str().into());
        put("prog_flags", self.prog_flags.into());
        put("license", self.license.as_str().into());
        put("kern_name", self.kern_name.as_str().into());
        put("insn_cnt", self.insns.len().into());
        put("insns", Hex(code).to_string().into());
        put("fixups", list(&self.fixups));
        put("maps", serde_json::to_value(&self.maps).unwrap_or_default());
        put("btf", self.btf.as_str().into());
        put("func_info", Hex(info).to_string().into());
        if !self.runs.is_empty() {
            put("runs", serde_json::to_value(&self.runs).unwrap_or_default());
        }
        if let Some(kernel) = &self.kernel {
            put("kernel", serde_json::to_value(kernel).unwrap_or_default());
        }
        object.extend(self.rest.clone());
        Json::Object(object)
    }
}
