//! Each corpus case that the kernel rejects before exploration is rejected here with the
//! same message, and no other case is.

use super::*;
use crate::object::Target;
use crate::object::cases::Cases;

fn corpus() -> Option<Cases> {
    let path = crate::shared::corpus()?;
    let mut cases = Cases::open(&path).unwrap();
    let kernel = path.with_file_name("vmlinux-6.18.44.btf.xz");
    if let Ok(Target::Kernel(btf)) = Target::file(kernel) {
        cases.set_kernel(btf);
    }
    Some(cases)
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
        let line = format!("{} {}", kernel.errno, kernel.log_last);
        match structure(&program) {
            Err(reject) if reject.feature().is_some() => {}
            // The descriptor had another number when the corpus was recorded.
            Err(reject) if reject.message().starts_with("fd -1 ") && line.contains("fd ") => {}
            Ok(_) if kernel.accepts() || kernel.processed > 0 => passed += 1,
            Ok(_) => wrong.push(format!("{}: ok, not {line}", case.id)),
            Err(reject) if line == format!("{} {}", reject.errno().0, reject.message()) => {
                refused += 1;
            }
            Err(reject) => wrong.push(format!("{}: {reject}, not {line}", case.id)),
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(passed > 1500 && refused > 12, "{passed} {refused}");
}
