//! The programs that a verb judges: those of objects, or of a file of cases.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::exit::{Exit, Failure};
use super::input::{KernelArguments, bundled_types, no_program, no_type, warnings};
use super::target::{
    ObjectTarget, TargetArgument, assumed_attach_type, is_c_name, loaded, set_target,
};
use crate::btf::Btf;
use crate::object::cases::Cases;
use crate::object::{ErrorLocation, ObjectError};
use crate::program::{Program, TargetProgram};
use crate::report::Subject;
use crate::verifier::{Options, verify};

/// Arguments that select programs.
#[derive(Debug, Args)]
pub(super) struct ProgramArguments {
    /// Object file
    #[arg(
        value_name = "OBJ",
        required_unless_present = "cases",
        conflicts_with = "cases"
    )]
    object: Option<PathBuf>,
    /// Programs of the object before them, by the names of their C functions [default: those
    /// that are loaded with the object]; a word that is not a C name, such as other.bpf.o, is
    /// another object
    #[arg(value_name = "PROGRAM|OBJ")]
    words: Vec<OsString>,
    /// Use the cases of a file instead (JSON lines, plain or packed; - for standard input).
    /// Their type ids are those of the kernel given by --btf; without it, those of the running
    /// kernel where it judges the cases, too (verify --vs-kernel)
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Attach `freplace` programs to this one, and fentry and fexit programs if it has a function
    /// of the name in their section. An object, and the name of its program [default: the only one
    /// that is loaded with the object], which is verified first; or one in the running kernel
    #[arg(long, value_name = "OBJ[:PROGRAM]|id:N", conflicts_with = "cases")]
    target: Option<TargetArgument>,
    #[command(flatten)]
    kernel: KernelArguments,
}

/// A program found in the arguments, or a problem with one.
pub(super) enum Found {
    /// A program.
    Program(Subject, Arc<Program>),
    /// A warning about the programs that follow.
    Warning(String),
    /// A program whose section names no type, and the option for it.
    Untyped(Subject, String),
    /// A malformed case, or a program that can't be relocated, with the error.
    Broken(Subject, String),
    /// A whole object that can't be used.
    Failed(Failure),
}

/// An object and the programs selected from it; none for the default ones.
struct Wanted {
    object: PathBuf,
    programs: Vec<String>,
}

impl ProgramArguments {
    /// Whether the programs are those of cases.
    pub const fn are_cases(&self) -> bool {
        self.cases.is_some()
    }

    /// The BTF that a program was relocated for: a file, `own` or `bundled`.
    pub fn btf_name(&self, program: &Program) -> Option<String> {
        self.kernel.btf_name(program)
    }

    /// Passes every program to `judge`, and goes on after errors. Type ids of cases are those of
    /// `--btf`, without it those of `types`.
    pub fn each(
        &self,
        types: Option<Btf>,
        mut judge: impl FnMut(Found) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.cases {
            return each_case(self.kernel.open_cases(file, types)?, &mut judge);
        }
        let target = self.target.as_ref().map(|target| match target {
            TargetArgument::Object(target) => self.verify_target(target),
            TargetArgument::Loaded(id) => loaded(*id),
        });
        let target = target.transpose()?;
        if let Some(warning) = target.as_ref().and_then(assumed_attach_type) {
            judge(Found::Warning(warning))?;
        }
        for wanted in self.wanted() {
            if let Err(failure) = self.each_program(&wanted, target.as_ref(), &mut judge) {
                match failure {
                    Failure::Error { .. } => judge(Found::Failed(failure))?,
                    Failure::Output(_) => return Err(failure),
                }
            }
        }
        Ok(())
    }

    /// The program that `--target` names, which others can attach to if it is accepted.
    fn verify_target(&self, target: &ObjectTarget) -> Result<TargetProgram, Failure> {
        let (object, name) = target.open(&self.kernel)?;
        let verification = verify(&Arc::new(object.program(&name)?), &Options::default());
        let verified = verification.outcome.map_err(|_| {
            let text = format!(
                "--target {}:{name}: the program is not accepted, so none can attach to it: {}",
                target.path().display(),
                verification.verdict.message
            );
            Failure::with(Exit::No, text)
        })?;
        Ok(verified.target())
    }

    /// The objects, in the order of the arguments.
    fn wanted(&self) -> Vec<Wanted> {
        let of = |object: PathBuf| Wanted {
            object,
            programs: Vec::new(),
        };
        let mut wanted: Vec<_> = self.object.iter().cloned().map(of).collect();
        for word in &self.words {
            match (word.to_str(), wanted.last_mut()) {
                (Some(name), Some(object)) if is_c_name(name) => {
                    object.programs.push(name.to_owned());
                }
                _ => wanted.push(of(word.into())),
            }
        }
        wanted
    }

    fn each_program(
        &self,
        wanted: &Wanted,
        target: Option<&TargetProgram>,
        judge: &mut impl FnMut(Found) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut object = self.kernel.open(&wanted.object)?;
        if let Some(target) = target {
            set_target(&mut object, target.clone())?;
        }
        if !wanted.programs.is_empty() {
            object.load_only(wanted.programs.iter().map(String::as_str))?;
        }
        let untyped = object.untyped().map(|entry| entry.name().to_owned());
        let untyped: Vec<_> = untyped.collect();
        for name in &untyped {
            object.entry_mut(name)?.set_autoload(false);
        }
        let file = object.file();
        let mut programs = object.programs().peekable();
        if programs.peek().is_none() && untyped.is_empty() {
            return Err(no_program(&object));
        }
        for warning in warnings(&object) {
            judge(Found::Warning(warning))?;
        }
        let mut bundled = None;
        for program in programs {
            if let Ok(program) = &program
                && bundled.is_none()
            {
                bundled = bundled_types(program);
                if let Some(warning) = bundled {
                    judge(Found::Warning(format!("{file}: {warning}")))?;
                }
            }
            judge(match program {
                Ok(program) => {
                    Found::Program(Subject::of_program(file, &program), Arc::new(program))
                }
                Err(error) => broken(file, error),
            })?;
        }
        for name in &untyped {
            let entry = object.entry(name)?;
            judge(Found::Untyped(
                Subject::of_entry(file, entry),
                no_type(entry),
            ))?;
        }
        Ok(())
    }
}

/// A program that can't be relocated.
fn broken(file: &str, error: ObjectError) -> Found {
    let program = match error.place() {
        ErrorLocation::Program { name, .. } | ErrorLocation::Entry { name } => Some(name.clone()),
        _ => None,
    };
    let subject = Subject {
        object: Some(file.to_owned()),
        program,
        ..Subject::default()
    };
    let text = match error.into() {
        Failure::Error { text, .. } => text,
        Failure::Output(error) => error.to_string(),
    };
    Found::Broken(subject, text)
}

fn each_case(
    mut cases: Cases,
    judge: &mut impl FnMut(Found) -> Result<(), Failure>,
) -> Result<(), Failure> {
    while let Some(case) = cases.next() {
        judge(match case {
            Err(error) => Found::Broken(Subject::default(), error.to_string()),
            Ok(case) => match cases.program(&case) {
                Err(error) => {
                    Found::Broken(Subject::default().with_id(&case.id), error.to_string())
                }
                Ok(program) => {
                    let subject = Subject::of_program(&case.object, &program);
                    Found::Program(subject.with_id(&case.id), Arc::new(program))
                }
            },
        })?;
    }
    Ok(())
}
