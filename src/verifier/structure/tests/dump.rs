use std::io::Write;

use super::*;
use crate::object::cases::Cases;

#[test]
fn dump() {
    let mut cases = Cases::open("/work/shared/corpus/selftests.jsonl.xz").unwrap();
    let mut out = std::fs::File::create("/tmp/vs/ours.txt").unwrap();
    while let Some(case) = cases.next() {
        let case = case.unwrap();
        let program = cases.program(&case).unwrap();
        let mut log = Log::new(LogLevel::ALL);
        let result = check(&program, &Caller::of(program.prog_type), &mut log);
        writeln!(out, "=== {}", case.id).unwrap();
        write!(out, "{}", log.into_text()).unwrap();
        if let Err(reject) = result {
            writeln!(out, "!!! {} {}", reject.errno().0, reject.message()).unwrap();
        }
    }
}
