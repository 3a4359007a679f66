//! Findings as cases: the program, the listing, both answers, and what reproduces them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::candidate::Candidate;
use super::finding::Finding;
use super::strategy::Strategy;
use crate::btf::Btf;
use crate::object::cases::{Case, CaseProblem, btf_name, read_case, types_folder};
use crate::program::{AttachProgram, Initial, Program};
use crate::util::MapId;
use crate::verifier::{Options, verify};

/// The key of a case under which a finding has its own data.
const KEY: &str = "fuzz";

/// What a case has of a finding, under `fuzz`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FuzzCase {
    /// The oracle.
    pub oracle: String,
    /// The kind of problem.
    pub kind: String,
    /// Our answer.
    pub ours: String,
    /// The other answer.
    pub other: String,
    /// The strategy.
    pub strategy: String,
    /// The campaign's seed.
    pub seed: u64,
    /// The number of the program in the campaign.
    pub number: u64,
    /// The first input, in hexadecimal.
    pub input: String,
    /// The seed of the other inputs.
    pub input_seed: u64,
    /// Whether the results don't depend on the machine.
    pub defined: bool,
    /// Whether the programs know the kernel's types, on which the machine depends, too. `None`: if
    /// they are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_types: Option<bool>,
    /// The number of maps; those behind are definitions of inner maps. `None`: all are maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maps: Option<usize>,
    /// Entries of maps that are maps or programs: the map, the index, the map or program.
    pub entries: Vec<(u32, u32, Json)>,
    /// The programs that it may jump to, as cases.
    pub others: Vec<Json>,
    /// The program that it extends, as a case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Json>,
    /// Instructions before reducing.
    pub insns_before: usize,
    /// The listing of all programs.
    pub listing: Vec<String>,
    /// The command that reproduces it.
    pub command: String,
}

/// Writes a finding as a case into a directory, with its BTF; returns the file.
///
/// # Errors
/// Files that can't be written.
pub fn write_case(directory: &Path, finding: &Finding) -> io::Result<PathBuf> {
    let candidate = &finding.candidate;
    let program = &candidate.program;
    let oracle = finding.problem.oracle.name();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let kind: String = finding.problem.kind.chars().map(plain).take(60).collect();
    let id = format!("{oracle}-{}-{kind}", candidate.number);
    let file = directory.join(format!("{id}.jsonl"));
    let whole = FuzzCase {
        oracle: oracle.to_owned(),
        kind: finding.problem.kind.clone(),
        ours: finding.problem.ours.clone(),
        other: finding.problem.other.clone(),
        seed: finding.seed,
        insns_before: finding.insns_before,
        listing: candidate.listing().lines().map(str::to_owned).collect(),
        command: format!(
            "bpflab fuzz --replay {} --oracle {oracle}{}",
            file.display(),
            finding.options
        ),
        ..FuzzCase::of_candidate(candidate)
    };
    let case = whole.in_case(&id, program)?;
    save_case(&file, &case, program)?;
    Ok(file)
}

/// Writes a case of a program as a file of its own, and its BTF beside it.
///
/// # Errors
/// Files that can't be written.
pub fn save_case(file: &Path, case: &Case, program: &Program) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    if let Some(btf) = &program.btf {
        let types = types_folder(directory);
        fs::create_dir_all(&types)?;
        fs::write(types.join(format!("{}.btf", btf_name(btf))), btf.to_bytes())?;
    }
    fs::write(file, format!("{}\n", case.to_json()))
}

impl FuzzCase {
    /// What a candidate's runs depend on, besides its program; nothing of a finding.
    pub(super) fn of_candidate(candidate: &Candidate) -> Self {
        let program = &candidate.program;
        let entries = program.maps.iter().enumerate().flat_map(|(map, def)| {
            let map = u32::try_from(map).unwrap_or(u32::MAX);
            def.initial.iter().filter_map(move |entry| match entry {
                Initial::Map { index, map: inner } => Some((map, *index, Json::from(inner.0))),
                Initial::Program { index, name } => Some((map, *index, Json::from(name.as_str()))),
                Initial::Bytes { .. } => None,
            })
        });
        let others = candidate.others.iter();
        let target = candidate.target().map(|target| &target.program);
        Self {
            strategy: candidate.strategy.map_or("", Strategy::name).to_owned(),
            number: candidate.number,
            input: hex(&candidate.input),
            input_seed: candidate.seed,
            defined: candidate.defined,
            kernel_types: Some(program.kernel_btf.is_some()),
            maps: Some(program.maps.len()),
            entries: entries.collect(),
            others: others
                .map(|other| Case::from_program(&other.name, other).to_json())
                .collect(),
            target: target.map(|target| Case::from_program(&target.name, target).to_json()),
            ..Self::default()
        }
    }

    /// A case of the candidate's program with this.
    pub(super) fn in_case(&self, id: &str, program: &Program) -> serde_json::Result<Case> {
        let mut case = Case::from_program(id, program);
        case.rest
            .insert(KEY.to_owned(), serde_json::to_value(self)?);
        Ok(case)
    }

    /// What a case has of a finding, if it is one.
    #[must_use]
    pub fn of(case: &Case) -> Option<Self> {
        let json = case.rest.get(KEY)?;
        serde_json::from_value(json.clone()).ok()
    }

    /// The candidate of a case. One that is no finding runs on zeros.
    ///
    /// # Errors
    /// A case that is not a program.
    pub fn candidate(
        case: &Case,
        program: Program,
        kernel: Option<&Btf>,
    ) -> Result<Candidate, CaseProblem> {
        let own = Self::of(case);
        let Some(own) = own else {
            return Ok(Candidate::of_file(Arc::new(program), 1));
        };
        let maps = own.maps_of(&program);
        let complete = |mut program: Program| {
            program.maps.clone_from(&maps);
            if own.kernel_types == Some(false) {
                program.kernel_btf = None;
            }
            Arc::new(program)
        };
        // All have the types of the first.
        let btf = program.btf.clone();
        let read = |json: &Json| -> Result<Arc<Program>, CaseProblem> {
            let case = read_case(&json.to_string())?;
            Ok(complete(case.to_program(btf.clone(), kernel.cloned())?))
        };
        let others = own.others.iter().map(read).collect::<Result<_, _>>()?;
        let mut program = program;
        if let Some(target) = own.target.as_ref().map(read).transpose()? {
            let verified = verify(&target, &Options::default()).outcome;
            let verified = verified.map_err(|why| {
                let line = why.to_string();
                CaseProblem::key(KEY, format!("the target is not accepted: {line}"))
            })?;
            program.attach_prog = AttachProgram::Known(Arc::new(verified.target()));
        }
        Ok(Candidate {
            number: own.number,
            strategy: Strategy::named(&own.strategy),
            others,
            defined: own.defined,
            ..Candidate::new(complete(program), bytes(&own.input), own.input_seed)
        })
    }

    /// The maps with their entries that are maps and programs.
    fn maps_of(&self, program: &Program) -> Arc<[crate::program::MapDef]> {
        let mut maps = program.maps.to_vec();
        maps.truncate(self.maps.unwrap_or(maps.len()));
        for (map, index, entry) in &self.entries {
            let inner = entry.as_u64().and_then(|map| u32::try_from(map).ok());
            let entry = match (inner, entry.as_str()) {
                (Some(inner), _) => Initial::Map {
                    index: *index,
                    map: MapId(inner),
                },
                (None, Some(name)) => Initial::Program {
                    index: *index,
                    name: name.to_owned(),
                },
                (None, None) => continue,
            };
            if let Some(def) = maps.get_mut(*map as usize) {
                def.initial.push(entry);
            }
        }
        maps.into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    digits.filter_map(byte).collect()
}
