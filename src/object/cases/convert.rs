//! Conversion between cases and programs.

use std::sync::Arc;

use super::super::slots::LOAD_64;
use super::case::{Case, CaseMap, Fixup};
use super::hex::Hex;
use super::reader::CaseProblem;
use crate::btf::{Btf, FuncInfo, Linkage};
use crate::isa::{PseudoKind, RawInsn};
use crate::program::{AttachProgram, Initial, MapDef, Program, Subprogram};
use crate::spec::{AttachType, MapFlags, MapType, ProgFlags, ProgType};
use crate::util::{Pc, TypeId};

/// Pseudo kinds of a map reference by file descriptor and by index.
const FORMS: [(PseudoKind, PseudoKind); 2] = [
    (PseudoKind::MapFd, PseudoKind::MapIdx),
    (PseudoKind::MapValue, PseudoKind::MapIdxValue),
];

type Result<T> = std::result::Result<T, CaseProblem>;

impl Case {
    /// Converts to a program with its BTF and the BTF of its kernel.
    ///
    /// # Errors
    /// Numbers that Linux 6.18 doesn't define, or a reference to a missing map.
    pub fn to_program(&self, btf: Option<Btf>, kernel: Option<Btf>) -> Result<Program> {
        let prog_type = ProgType::from_number(self.prog_type)
            .ok_or_else(|| unknown("prog_type", self.prog_type))?;
        let attach_type = AttachType::from_number(self.expected_attach_type)
            .ok_or_else(|| unknown("expected_attach_type", self.expected_attach_type))?;
        let name = [&self.program, &self.kern_name, &self.id]
            .into_iter()
            .find(|name| !name.is_empty());
        let name = name.map_or("program", String::as_str);
        let mut program = Program::new(name, prog_type, self.fixed_up()?);
        program.section.clone_from(&self.section);
        program.license.clone_from(&self.license);
        // The kernel's field has no "none": it is 0.
        program.expected_attach_type = (self.expected_attach_type != 0).then_some(attach_type);
        program.attach_btf_id = (self.attach_btf_id != 0).then_some(TypeId(self.attach_btf_id));
        program.attach_prog = match self.attach_prog_fd {
            0 => AttachProgram::None,
            _ => AttachProgram::Unknown,
        };
        program.attach_target =
            (!self.attach_btf_name.is_empty()).then(|| self.attach_btf_name.clone());
        program.flags = ProgFlags::from_bits_retain(self.prog_flags);
        program.maps = self.map_definitions()?;
        program.subprograms = subprograms(name, &self.func_info, btf.as_ref());
        program.func_info.clone_from(&self.func_info);
        program.btf = btf;
        program.kernel_btf = kernel;
        Ok(program)
    }

    /// The instructions, with maps referred to by index.
    fn fixed_up(&self) -> Result<Vec<RawInsn>> {
        let mut insns = self.insns.clone();
        for (index, Fixup(slot, map)) in self.fixups.iter().enumerate() {
            let fault = |text: String| CaseProblem::key(format!("fixups[{index}]"), text);
            let Ok(map) = u32::try_from(*map) else {
                continue;
            };
            if map as usize >= self.maps.len() {
                let text = format!("map {map}; there are {}", self.maps.len());
                return Err(fault(text));
            }
            let insn = insns
                .get_mut(*slot as usize)
                .ok_or_else(|| fault(format!("instruction {slot} isn't there")))?;
            let form = FORMS.iter().find(|(by_fd, by_index)| {
                matches!(insn.src(), src if src == by_fd.src() || src == by_index.src())
            });
            let Some((_, by_index)) = form else {
                return Err(fault(format!(
                    "instruction {slot} refers to no map: {insn:?}"
                )));
            };
            *insn = insn.with_src(by_index.src()).with_imm(map.cast_signed());
        }
        Ok(insns)
    }

    fn map_definitions(&self) -> Result<Arc<[MapDef]>> {
        let mut definitions = Vec::with_capacity(self.maps.len());
        for (index, map) in self.maps.iter().enumerate() {
            let mut definition = definition(map).map_err(|text| in_map(index, text))?;
            if let Ok(inner) = usize::try_from(map.inner) {
                let inner = self.maps.get(inner).ok_or_else(|| {
                    let text = format!("inner map {inner}; there are {}", self.maps.len());
                    in_map(index, text)
                })?;
                let inner = self::definition(inner).map_err(|text| in_map(index, text))?;
                definition.inner = Some(Box::new(inner));
            }
            definitions.push(definition);
        }
        Ok(definitions.into())
    }

    /// Converts a program to a case, whose BTF is to be written under [`btf_name`].
    #[must_use]
    pub fn from_program(id: impl Into<String>, program: &Program) -> Self {
        let mut insns = program.insns.clone();
        let mut fixups = Vec::new();
        for (slot, insn) in insns.iter_mut().enumerate() {
            let form = FORMS
                .iter()
                .find(|(_, by_index)| insn.opcode == LOAD_64 && insn.src() == by_index.src());
            if let Some((by_fd, _)) = form {
                fixups.push(Fixup(Pc::from_index(slot).0, i64::from(insn.imm)));
                *insn = insn.with_src(by_fd.src());
            }
        }
        let btf = program.btf.as_ref().map(btf_name).unwrap_or_default();
        let mut maps: Vec<CaseMap> = Vec::new();
        let mut inner = Vec::new();
        for (index, map) in program.maps.iter().enumerate() {
            maps.push(case_map(index, map, &btf));
            inner.extend(map.inner.as_deref().map(|inner| (index, inner)));
        }
        for (outer, map) in inner {
            let index = maps.len();
            maps.push(case_map(index, map, &btf));
            if let Some(outer) = maps.get_mut(outer) {
                outer.inner = i64::try_from(index).unwrap_or(-1);
            }
        }
        Self {
            id: id.into(),
            program: program.name.clone(),
            section: program.section.clone(),
            type_name: program.prog_type.name().to_owned(),
            prog_type: program.prog_type.number(),
            expected_attach_type: program.expected_attach_type.map_or(0, AttachType::number),
            attach_btf_id: program.attach_btf_id.map_or(0, |id| id.0),
            attach_prog_fd: if program.attach_prog.is_some() {
                u32::MAX
            } else {
                0
            },
            attach_btf_name: program.attach_target.clone().unwrap_or_default(),
            prog_flags: program.flags.bits(),
            license: program.license.clone(),
            kern_name: program.name.chars().take(15).collect(),
            insns,
            fixups,
            maps,
            btf,
            func_info: program.func_info.clone(),
            ..Self::default()
        }
    }
}

fn unknown(key: &str, number: u32) -> CaseProblem {
    CaseProblem::key(key, format!("{number} is not defined in Linux 6.18"))
}

fn in_map(index: usize, text: String) -> CaseProblem {
    CaseProblem::key(format!("maps[{index}]"), text)
}

fn definition(map: &CaseMap) -> std::result::Result<MapDef, String> {
    let map_type = MapType::from_number(map.map_type)
        .ok_or_else(|| format!("Linux 6.18 has no map type {}", map.map_type))?;
    let mut definition = MapDef::new(
        &*map.name,
        map_type,
        map.key_size,
        map.value_size,
        map.max_entries,
    );
    let ty = |id: u32| (id != 0).then_some(TypeId(id));
    definition.flags = MapFlags::from_bits_retain(map.map_flags);
    definition.extra = map.map_extra;
    if !map.btf.is_empty() {
        definition.key_type = ty(map.btf_key_type_id);
        definition.value_type = ty(map.btf_value_type_id);
    }
    definition.kernel_value_type = ty(map.btf_vmlinux_value_type_id);
    definition.frozen = map.frozen;
    definition.initial = map
        .init
        .iter()
        .map(|(Hex(key), Hex(value))| Initial::Bytes {
            key: key.clone(),
            value: Arc::from(value.as_slice()),
        })
        .collect();
    Ok(definition)
}

fn case_map(index: usize, map: &MapDef, btf: &str) -> CaseMap {
    let id = |ty: Option<TypeId>| ty.map_or(0, |id| id.0);
    let typed = map.key_type.is_some() || map.value_type.is_some();
    let init = map.initial.iter().filter_map(|entry| match entry {
        Initial::Bytes { key, value } => Some((Hex(key.clone()), Hex(value.to_vec()))),
        // Elements that are maps or programs aren't part of the format.
        Initial::Map { .. } | Initial::Program { .. } => None,
    });
    CaseMap {
        idx: Pc::from_index(index).0,
        map_type: map.map_type.number(),
        name: map.name.clone(),
        key_size: map.key_size,
        value_size: map.value_size,
        max_entries: map.max_entries,
        map_flags: map.flags.bits(),
        map_extra: map.extra,
        btf: if typed { btf.to_owned() } else { String::new() },
        btf_key_type_id: id(map.key_type),
        btf_value_type_id: id(map.value_type),
        btf_vmlinux_value_type_id: id(map.kernel_value_type),
        inner: -1,
        frozen: map.frozen,
        init: init.collect(),
        rest: serde_json::Map::new(),
    }
}

/// The functions of a case: those of `func_info`, or one.
fn subprograms(name: &str, info: &[FuncInfo], btf: Option<&Btf>) -> Vec<Subprogram> {
    if info.is_empty() {
        return vec![Subprogram {
            name: name.to_owned(),
            start: Pc(0),
            type_id: None,
            global: true,
        }];
    }
    let function = |info: &FuncInfo| {
        let ty = btf.and_then(|btf| btf.get(info.ty));
        Subprogram {
            name: ty.map_or("", |ty| ty.name()).to_owned(),
            start: Pc(info.insn_off),
            type_id: Some(info.ty),
            global: ty.and_then(|ty| ty.linkage()) == Some(Linkage::Global),
        }
    };
    info.iter().map(function).collect()
}

/// The file name of a case's BTF: 16 hexadecimal digits of its FNV-1a hash, so that equal
/// BTF has one file.
#[must_use]
pub fn btf_name(btf: &Btf) -> String {
    let hash = btf
        .to_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}
