//! Reads the files of a folder.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::CoverageError;
use super::record::{EXTENSION, Record, VERSION, add_runs};
use super::unit::Unit;

/// A program with its counts, over all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// The program.
    pub unit: Unit,
    /// How often each instruction was executed, by slot.
    pub executed: Vec<u64>,
    /// How often each conditional jump was taken, by slot.
    pub taken: Vec<u64>,
}

/// Reads the counts that processes wrote to a folder, and adds up those of the same program. A
/// line that a process did not complete, at the end of its file, does not count.
///
/// # Errors
/// A folder without counts, a file that can't be read or is damaged.
pub fn read(dir: &Path) -> Result<Vec<Measured>, CoverageError> {
    let failed = |error| CoverageError::Read {
        path: dir.to_owned(),
        error,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|it| it == EXTENSION) {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(CoverageError::Nothing(dir.to_owned()));
    }
    // The order in which a folder lists its files is arbitrary.
    files.sort();
    let mut sums = Sums::default();
    for path in files {
        sums.add_file(path)?;
    }
    Ok(sums.measured)
}

/// The counts of all files so far.
#[derive(Default)]
struct Sums {
    measured: Vec<Measured>,
    known: HashMap<Unit, usize>,
}

impl Sums {
    fn add_file(&mut self, path: PathBuf) -> Result<(), CoverageError> {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => return Err(CoverageError::Read { path, error }),
        };
        let mut programs = Vec::new();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        for (index, line) in lines.enumerate() {
            // The process ended while it wrote this line.
            let Some(line) = line.strip_suffix(b"\n") else {
                break;
            };
            if let Err(problem) = self.add_line(line, index == 0, &mut programs) {
                let line = index + 1;
                return Err(CoverageError::Damaged {
                    path,
                    line,
                    problem,
                });
            }
        }
        Ok(())
    }

    /// Adds a line of a file; `programs` are those of the lines before.
    fn add_line(
        &mut self,
        line: &[u8],
        is_first: bool,
        programs: &mut Vec<usize>,
    ) -> Result<(), String> {
        let record = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match record {
            Record::BpflabCoverage(VERSION) if is_first => {}
            Record::BpflabCoverage(version) if is_first => {
                return Err(format!("format {version}; this bpflab reads {VERSION}"));
            }
            _ if is_first => return Err("the first line names no format".to_owned()),
            Record::BpflabCoverage(_) => return Err("a second first line".to_owned()),
            Record::Program(unit) => {
                if let Some(problem) = unit.problem() {
                    return Err(problem.to_owned());
                }
                programs.push(self.place(unit));
            }
            Record::Counts {
                program,
                executed,
                taken,
            } => {
                let place = programs.get(program as usize);
                let Some(measured) = place.and_then(|place| self.measured.get_mut(*place)) else {
                    return Err(format!("counts of program {program}, which is not listed"));
                };
                let within = add_runs(&mut measured.executed, &executed)
                    && add_runs(&mut measured.taken, &taken);
                if !within {
                    return Err("counts beyond the program's end".to_owned());
                }
            }
        }
        Ok(())
    }

    fn place(&mut self, unit: Unit) -> usize {
        if let Some(place) = self.known.get(&unit) {
            return *place;
        }
        let place = self.measured.len();
        let zeros = vec![0; unit.slots as usize];
        self.known.insert(unit.clone(), place);
        self.measured.push(Measured {
            unit,
            executed: zeros.clone(),
            taken: zeros,
        });
        place
    }
}
