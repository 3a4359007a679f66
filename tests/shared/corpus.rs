//! Reads the shared corpus: each case with its program and its stage.

use std::path::Path;
use std::sync::Arc;

use bpflab::object::Target;
use bpflab::object::cases::{Case, Cases, KernelSays};
use bpflab::program::Program;

/// A case that the kernel judged.
pub struct Judged {
    /// Unique name.
    pub id: String,
    /// The stage at which all features of the program are supported: 4 for `S4`.
    pub stage: u32,
    /// The program.
    pub program: Arc<Program>,
    /// The kernel's verdict.
    pub says: KernelSays,
}

/// All cases that `wanted` selects by id and stage.
pub fn read(path: &Path, wanted: impl Fn(&str, u32) -> bool) -> Vec<Judged> {
    let mut cases = Cases::open(path).expect("the corpus");
    // Type ids in the cases are those of the reference kernel's BTF.
    let judge = path.with_file_name("vmlinux-6.18.44.btf.xz");
    if let Target::Kernel(btf) = Target::file(judge).expect("the judge's types") {
        cases.set_kernel(btf);
    }
    let mut read = Vec::new();
    while let Some(case) = cases.next() {
        let case = case.expect("a case");
        let (stage, Some(says)) = (stage(&case), case.kernel.clone()) else {
            continue;
        };
        if wanted(&case.id, stage) {
            let program = Arc::new(cases.program(&case).expect("a program"));
            read.push(Judged {
                id: case.id,
                stage,
                program,
                says,
            });
        }
    }
    read
}

fn stage(case: &Case) -> u32 {
    let stage = case.rest.get("stage").and_then(|stage| stage.as_str());
    stage.and_then(number).expect("a stage")
}

/// The number of a stage: 4 for `S4`.
pub fn number(stage: &str) -> Option<u32> {
    stage.trim_start_matches(['S', 's']).parse().ok()
}
