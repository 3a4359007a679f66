//! The program and buffer names that a test may pass to an outcome's methods: a misspelled
//! name is an error, a program that did not run is `None`.

use std::fmt;

use crate::program::Program;
use crate::spec::MapType;

/// Names of programs, their functions, and maps that take records.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    programs: Vec<String>,
    functions: Vec<String>,
    buffers: Vec<String>,
}

impl Names {
    /// Adds the names of a loaded program.
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

    /// Checks that a program or function has this name; the error lists the programs.
    pub fn check_program(&self, name: &str) -> Result<(), String> {
        let is_known = |names: &[String]| names.iter().any(|known| known == name);
        if is_known(&self.programs) || is_known(&self.functions) {
            return Ok(());
        }
        let there = listed(&self.programs);
        Err(format!("no program '{name}'; there are: {there}"))
    }

    /// Checks that a ring or perf buffer has this name; the error lists the buffers.
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

/// Prints `..`: the names are not part of an event's results.
impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
