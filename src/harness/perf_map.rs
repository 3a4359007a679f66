//! Perf maps: symbols of generated machine code for `perf`.

use std::fmt::Write as _;

use super::vm::Vm;

impl Vm {
    /// The machine code of all programs as lines of a perf map: start and size in
    /// hexadecimal digits, and a name. `perf report` and others read it from
    /// `/tmp/perf-PID.map` (`tools/perf/Documentation/jit-interface.txt` of Linux); the
    /// caller writes the file, as `bpflab run --perf-map` does.
    ///
    /// Names begin as the kernel's do: `bpf_prog_NAME` for a program,
    /// `bpf_prog_NAME.FUNCTION` for its other functions. The rarely executed code at a
    /// function's end belongs to it.
    #[must_use]
    pub fn perf_map(&self) -> String {
        let mut map = String::new();
        for image in &self.programs.images {
            // Programs that have not run yet are compiled now.
            image.native(self.programs.counting);
            let Some(lowered) = image.lowered() else {
                continue;
            };
            let program = lowered.program();
            for native in image.natives() {
                for (number, (start, size)) in native.pieces().enumerate() {
                    // The first piece is the entry code for all functions.
                    let function = number.checked_sub(1);
                    let function = function.and_then(|number| lowered.functions().get(number));
                    let name = match (function, number) {
                        (None, _) => ".enter".to_owned(),
                        (Some(_), 1) => String::new(),
                        (Some(function), _) => match program.subprogram(function.start) {
                            Some(subprogram) => format!(".{}", subprogram.name),
                            None => format!(".{}", function.start),
                        },
                    };
                    // Writing to a string does not fail.
                    let _ = writeln!(map, "{start:x} {size:x} bpf_prog_{}{name}", program.name);
                }
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use crate::{Object, Vm};

    #[test]
    fn every_function_has_a_line() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/objects/subprograms.bpf.o"
        );
        let vm = Vm::new(Object::open(path).unwrap()).unwrap();
        let map = vm.perf_map();
        if !crate::jit::RUNS_HERE {
            assert_eq!(map, "");
            return;
        }
        let mut names = Vec::new();
        let mut pieces = Vec::new();
        for line in map.lines() {
            let mut parts = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(parts.next().unwrap(), 16).unwrap();
            pieces.push((number(), number()));
            names.push(parts.next().unwrap());
        }
        for name in [
            "bpf_prog_calls_both",
            "bpf_prog_calls_both.enter",
            "bpf_prog_calls_both.deep",
            "bpf_prog_calls_both.square",
            "bpf_prog_calls_both.clamp",
            "bpf_prog_calls_one",
            "bpf_prog_calls_one.square",
        ] {
            assert_eq!(names.iter().filter(|n| **n == name).count(), 1, "{name}");
        }
        pieces.sort_unstable();
        assert!(pieces.iter().all(|(start, size)| *start > 0 && *size > 0));
        assert!(pieces.windows(2).all(|p| p[0].0 + p[0].1 <= p[1].0));
    }
}
