//! The names that a test may ask an outcome for, so that a name that does not exist is told
//! from a program that did not run.

use std::fmt;

use crate::program::Program;
use crate::spec::MapType;

/// Names of programs, of their functions, and of maps that records go to.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    programs: Vec<String>,
    functions: Vec<String>,
    buffers: Vec<String>,
}

impl Names {
    /// Adds the names of a program that is loaded.
    pub fn add_program(&mut self, program: &Program) {
        add(&mut self.programs, &program.name);
        for function in &program.subprograms {
            add(&mut self.functions, &function.name);
        }
        for map in program.maps.iter() {
            if matches!(
                map.map_type,
                MapType::Ringbuf | MapType::PerfEventArray | MapType::UserRingbuf
            ) {
                add(&mut self.buffers, &map.name);
            }
        }
    }

    /// Says that there is no program and no function of this name, if that is so.
    pub fn check_program(&self, name: &str) -> Result<(), String> {
        let is_known = |names: &[String]| names.iter().any(|known| known == name);
        if is_known(&self.programs) || is_known(&self.functions) {
            return Ok(());
        }
        let there = listed(&self.programs);
        Err(format!("no program '{name}'; there are: {there}"))
    }

    /// Says that there is no ring or perf buffer of this name, if that is so.
    pub fn check_buffer(&self, name: &str) -> Result<(), String> {
        if self.buffers.iter().any(|known| known == name) {
            return Ok(());
        }
        let there = listed(&self.buffers);
        Err(format!(
            "no ring or perf buffer '{name}'; there are: {there}"
        ))
    }
}

fn add(names: &mut Vec<String>, name: &str) {
    if names.iter().all(|known| known != name) {
        names.push(name.to_owned());
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// It is not what came of an event.
impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
