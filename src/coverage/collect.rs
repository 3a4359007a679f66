//! Writes the counts of a process to a file.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::counts::Counts;
use super::error::CoverageError;
use super::record::{EXTENSION, Record, VARIABLE, VERSION, runs};
use super::unit::{Originals, Unit};
use crate::program::Program;
use crate::util::Pc;
use crate::verifier::Verified;

/// The collector of this process; `None` if coverage is not measured: [`VARIABLE`] is not set,
/// or empty.
#[must_use]
pub fn collector() -> Option<&'static Arc<Collector>> {
    static COLLECTOR: OnceLock<Option<Arc<Collector>>> = OnceLock::new();
    let collector = COLLECTOR.get_or_init(|| {
        let dir = env::var_os(VARIABLE).filter(|dir| !dir.is_empty())?;
        Some(Arc::new(Collector::new(dir)))
    });
    collector.as_ref()
}

/// Writes the counts of this process to a file in a folder.
#[derive(Debug)]
pub struct Collector {
    dir: PathBuf,
    state: Mutex<Written>,
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    /// The file, once there is something to write.
    file: Option<(File, PathBuf)>,
    /// The number of each program in it.
    units: HashMap<Unit, u32>,
    /// Why counts are missing in it.
    failed: Option<CoverageError>,
}

impl Collector {
    /// A collector that will make a file in this folder, and the folder.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A meter for a program that is loaded; `None` if it has no line information.
    ///
    /// # Errors
    /// If the file can't be written, now or for earlier counts.
    pub fn meter(
        self: &Arc<Self>,
        program: &Program,
        verified: Option<&Verified>,
    ) -> Result<Option<Meter>, CoverageError> {
        self.check()?;
        let Some(unit) = Unit::of(program, verified) else {
            return Ok(None);
        };
        let unit = self.lock().unit(&self.dir, unit)?;
        Ok(Some(Meter {
            counts: Counts::new(program.insns.len()),
            originals: None,
            unit,
            collector: Arc::clone(self),
        }))
    }

    /// A meter for the replay form of a program: `place` tells where the code of an instruction
    /// of the original program begins in it. The counts are those of the original program.
    ///
    /// # Errors
    /// As of [`meter`](Self::meter).
    pub fn meter_of_form(
        self: &Arc<Self>,
        original: &Program,
        verified: Option<&Verified>,
        form: &Program,
        place: impl Fn(Pc) -> Option<Pc>,
    ) -> Result<Option<Meter>, CoverageError> {
        let meter = self.meter(original, verified)?;
        Ok(meter.map(|meter| {
            let mut meter = meter;
            meter.counts = Counts::new(form.insns.len());
            meter.originals = Some(Originals::new(original, form, place));
            meter
        }))
    }

    /// Whether all counts so far were written.
    ///
    /// # Errors
    /// Why some were not.
    pub fn check(&self) -> Result<(), CoverageError> {
        self.lock().failed.take().map_or(Ok(()), Err)
    }
}

impl Written {
    /// The number of a program in the file.
    fn unit(&mut self, dir: &Path, unit: Unit) -> Result<u32, CoverageError> {
        if let Some(number) = self.units.get(&unit) {
            return Ok(*number);
        }
        let number = u32::try_from(self.units.len()).unwrap_or(u32::MAX);
        if self.file.is_none() {
            self.file = Some(create(dir)?);
            self.write(&Record::BpflabCoverage(VERSION))?;
        }
        let record = Record::Program(unit);
        self.write(&record)?;
        if let Record::Program(unit) = record {
            self.units.insert(unit, number);
        }
        Ok(number)
    }

    /// Writes a whole line at once: whenever the process ends, the lines before are complete.
    fn write(&mut self, record: &Record) -> Result<(), CoverageError> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let line = serde_json::to_vec(record).map_err(io::Error::other);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)
        });
        written.map_err(|error| CoverageError::Write {
            path: path.clone(),
            error,
        })
    }
}

/// Creates a file that no other process has.
fn create(dir: &Path) -> Result<(File, PathBuf), CoverageError> {
    let failed = |path: &Path, error| CoverageError::Write {
        path: path.to_owned(),
        error,
    };
    fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanoseconds = now.unwrap_or_default().as_nanos();
    // Containers that share the folder may have the same process ids.
    let name = format!("bpflab-{}-{nanoseconds}.{EXTENSION}", process::id());
    let path = dir.join(name);
    let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
    Ok((file, path))
}

/// The counters of a loaded program. Dropping them writes the counts.
#[derive(Debug)]
pub struct Meter {
    /// The counters.
    pub counts: Counts,
    originals: Option<Originals>,
    unit: u32,
    collector: Arc<Collector>,
}

impl Drop for Meter {
    fn drop(&mut self) {
        let (mut executed, mut taken) = (self.counts.executed(), self.counts.taken());
        if executed.iter().all(|count| *count == 0) {
            return;
        }
        if let Some(originals) = &self.originals {
            (executed, taken) = originals.count(&executed, &taken);
        }
        let record = Record::Counts {
            program: self.unit,
            executed: runs(&executed),
            taken: runs(&taken),
        };
        let mut written = self.collector.lock();
        if let Err(error) = written.write(&record) {
            // Nobody is told here: the next load is, or the command at its end.
            written.failed = Some(error);
        }
    }
}
