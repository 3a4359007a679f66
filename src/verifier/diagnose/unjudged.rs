//! The diagnosis of an unjudged program: the missing features, and their uses.

use super::advice::Category;
use super::diagnosis::{Diagnosis, Label};
use crate::verifier::{Feature, Missing, Unjudged};

/// The maximum number of instructions shown.
const SHOWN: usize = 8;

/// Explains why a program is unjudged.
pub(super) fn diagnose(unjudged: &Unjudged) -> Diagnosis {
    let mut uses: Vec<(Use<'_>, usize)> = Vec::new();
    for missing in unjudged.missing() {
        let this = Use::of(missing);
        match uses.iter_mut().find(|(known, _)| *known == this) {
            Some((_, times)) => *times += 1,
            None => uses.push((this, 1)),
        }
    }
    let list: Vec<_> = uses
        .iter()
        .map(|(this, times)| match times {
            1 => this.to_string(),
            times => format!("{this} ({times} uses)"),
        })
        .collect();
    let lacks = |feature| uses.iter().any(|(this, _)| this.0 == feature);
    let help = if lacks(Feature::KernelBtf) {
        "give the kernel's BTF: --btf FILE, or Object::set_target() in a test"
    } else if lacks(Feature::Extension) {
        "give the program whose function it replaces: --target OBJ:PROGRAM, or \
         Object::set_attach_program() in a test"
    } else {
        "ask the running kernel: `bpflab kernel load`"
    };
    Diagnosis {
        category: Category::NotJudged,
        problem: "the program uses features that bpflab does not model".to_owned(),
        reason: format!(
            "not modelled: {}. Linux may accept or reject the program.",
            list.join(", ")
        ),
        expected: None,
        held: Vec::new(),
        help: Some(help.to_owned()),
        labels: labels(unjudged),
        blamed: None,
    }
}

/// Labels for the instruction at which the verifier stopped, then for the others.
fn labels(unjudged: &Unjudged) -> Vec<Label> {
    let stopped = unjudged.stopped();
    let others = unjudged.missing().iter().filter(|other| *other != stopped);
    let placed = std::iter::once(stopped).chain(others);
    placed
        .filter_map(|missing| {
            let text = format!("{}: not modelled", Use::of(missing));
            Some(Label {
                pc: missing.pc?,
                text,
            })
        })
        .take(SHOWN)
        .collect()
}

/// A feature with the name of what is used, at any instruction.
#[derive(PartialEq, Eq)]
struct Use<'m>(Feature, Option<&'m str>);

impl<'m> Use<'m> {
    fn of(missing: &'m Missing) -> Self {
        Self(missing.feature, missing.name.as_deref())
    }
}

impl std::fmt::Display for Use<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.1 {
            Some(name) => write!(f, "{} {name}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
