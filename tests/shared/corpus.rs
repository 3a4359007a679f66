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
    /// What its author expects if an ordinary user loads it.
    pub unprivileged: Option<Expected>,
}

/// What a program's author expects.
pub struct Expected {
    /// Whether the program is accepted.
    pub accepted: bool,
    /// Texts in the verifier's log, in this order.
    pub messages: Vec<String>,
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
            let unprivileged = expected(&case);
            let program = Arc::new(cases.program(&case).expect("a program"));
            read.push(Judged {
                id: case.id,
                stage,
                program,
                says,
                unprivileged,
            });
        }
    }
    read
}

/// The annotations for an ordinary user; the messages for root hold for both if there are no
/// others.
fn expected(case: &Case) -> Option<Expected> {
    let expect = case.rest.get("expect")?;
    let texts = |key: &str| {
        let texts = expect.get(key)?.as_array()?;
        let texts = texts.iter().filter_map(|text| text.as_str());
        Some(texts.map(str::to_owned).collect::<Vec<_>>())
    };
    let accepted = match expect.get("verdict_unpriv")?.as_str()? {
        "accept" => true,
        "reject" => false,
        _ => return None,
    };
    let own = texts("msgs_unpriv").filter(|texts| !texts.is_empty());
    let messages = own.or_else(|| texts("msgs")).unwrap_or_default();
    Some(Expected { accepted, messages })
}

fn stage(case: &Case) -> u32 {
    let stage = case.rest.get("stage").and_then(|stage| stage.as_str());
    stage.and_then(number).expect("a stage")
}

/// The number of a stage: 4 for `S4`.
pub fn number(stage: &str) -> Option<u32> {
    stage.trim_start_matches(['S', 's']).parse().ok()
}
