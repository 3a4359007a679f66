//! Each case of the corpus: what the kernel refuses before it walks the program is
//! refused here in the same words, and nothing else is.

use std::path::PathBuf;

use super::*;
use crate::object::cases::Cases;

fn corpus() -> Option<Cases> {
    let shared = std::env::var_os("BPFLAB_SHARED").map(PathBuf::from);
    let shared =
        shared.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")));
    let path = shared.join("corpus/selftests.jsonl.xz");
    if !path.exists() {
        eprintln!("skipped: no corpus at {}", path.display());
        return None;
    }
    Some(Cases::open(path).unwrap())
}

#[test]
fn as_the_kernel_says() {
    let Some(mut cases) = corpus() else {
        return;
    };
    let (mut passed, mut refused, mut wrong) = (0, 0, Vec::new());
    while let Some(case) = cases.next() {
        let case = case.unwrap();
        let program = cases.program(&case).unwrap();
        let Some(kernel) = &case.kernel else {
            continue;
        };
        match structure(&program) {
            Ok(_) if kernel.accepts() || kernel.processed > 0 => passed += 1,
            Ok(_) => wrong.push(format!("{}: passes; {}", case.id, kernel.log_last)),
            Err(reject)
                if kernel.log_last == reject.message()
                    && i32::from(reject.errno().0) == kernel.errno =>
            {
                refused += 1;
            }
            Err(reject) => wrong.push(format!(
                "{}: {} {}; {} {}",
                case.id,
                reject.errno(),
                reject.message(),
                kernel.errno,
                kernel.log_last
            )),
        }
    }
    println!(
        "{passed} pass, {refused} are refused, {} differ",
        wrong.len()
    );
    for line in &wrong {
        println!("{line}");
    }
    assert!(wrong.is_empty());
}
