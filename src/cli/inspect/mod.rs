//! `bpflab inspect`: shows what is in an object or a recording.

mod events;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use self::events::Listed;
use crate::btf::Btf;
use crate::cli::exit::{Exit, Failure};
use crate::cli::files::write_text;
use crate::cli::input::KernelArguments;
use crate::cli::printer::Printer;
use crate::cli::target::is_c_name;
use crate::compare::recording::{MAGIC, Recording};
use crate::compare::replay::RecordingSource;
use crate::object::{Object, Target};
use crate::report::{Inspection, KfuncSupport, ReadState, RecordingReport, Support};

/// Show what is in an object or a recording
///
/// For an object: programs, maps, global variables, externs, relocations and skipped parts; or
/// its BTF as C declarations. For a recording: where and how it was made, what it holds of each
/// program, CPU and map, and what was lost; exit code 1 if it is not complete.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bpflab inspect prog.bpf.o
  bpflab inspect --relocs prog.bpf.o        each relocation, CO-RE accesses as in C
  bpflab inspect --support prog.bpf.o       what its programs need, and what is supported
  bpflab inspect --btf-c /sys/kernel/btf/vmlinux > vmlinux.h
  bpflab inspect --btf-part small.btf prog.bpf.o     the kernel's types that it needs
  bpflab inspect --btf-part small.btf a.bpf.o b.bpf.o task_struct vfs_read
  bpflab inspect run.rec                    what a recording holds, and whether it is whole
  bpflab inspect run.rec --events           each firing, with the fields of its event
  bpflab inspect run.rec --events=run.jsonl          an events file of it, for bpflab run
  bpflab inspect run.rec --html run.html    a timeline by program and CPU
  bpflab inspect --json prog.bpf.o | jq -r '.programs[].section'")]
pub(in crate::cli) struct Arguments {
    /// Object file or recording; with --btf-c and --support also a BTF file
    #[arg(value_name = "FILE")]
    object: PathBuf,
    /// With --btf-part: more object files, and C names of types and functions
    #[arg(value_name = "OBJ|NAME", requires = "btf_part")]
    more: Vec<PathBuf>,
    #[command(flatten)]
    kernel: KernelArguments,
    /// List each relocation
    #[arg(long)]
    relocs: bool,
    /// List the contexts, helpers, kfuncs and maps that the programs need, and which of them
    /// are implemented, need a mock, or are unknown; exit code 1 if a program needs something
    /// unknown. Of a kernel's BTF, count the kfuncs and how many are known, judged, and have a
    /// body
    #[arg(long, conflicts_with_all = ["relocs", "btf_c"])]
    support: bool,
    /// Print the BTF as C declarations, as in a vmlinux.h; for a kernel module give the
    /// kernel's BTF by --btf
    #[arg(long, conflicts_with = "relocs")]
    btf_c: bool,
    /// Write a small BTF file: the types of the kernel (--btf, or the running one) that the
    /// programs of the objects need, and the named ones; for --btf elsewhere
    #[arg(long, value_name = "FILE", conflicts_with_all = ["relocs", "support", "btf_c"])]
    btf_part: Option<PathBuf>,
    /// Of a recording, list every firing or event, by time; or write them as an events file for
    /// `bpflab run --events`
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["relocs", "support", "btf_c", "btf_part"],
    )]
    events: Option<Option<PathBuf>>,
    /// Of a recording, write a page for a browser, which needs no other files: a timeline of the
    /// firings by program and CPU
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["relocs", "support", "btf_c", "btf_part", "events"],
    )]
    html: Option<PathBuf>,
}

pub(in crate::cli) fn run(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    if let Some(file) = &arguments.btf_part {
        return part(arguments, file, printer);
    }
    if is_recording(&arguments.object) {
        return recording(arguments, printer);
    }
    if arguments.events.is_some() {
        let file = arguments.object.display();
        return Err(Failure::bad(format!(
            "{file}: not a recording; --events lists the firings of one"
        )));
    }
    if arguments.html.is_some() {
        let file = arguments.object.display();
        return Err(Failure::bad(format!(
            "{file}: not a recording; --html shows the firings of one"
        )));
    }
    if arguments.btf_c {
        return declarations(arguments, printer);
    }
    if arguments.support
        && let Some(kfuncs) = kernel_kfuncs(&arguments.object)
    {
        if printer.is_json() {
            printer.row(&kfuncs)?;
        } else {
            printer.text(format_args!("kfuncs: {kfuncs}\n"))?;
        }
        return Ok(Exit::Fine);
    }
    let object = arguments.kernel.open(&arguments.object)?;
    if arguments.support {
        let support = Support::new(&object);
        printer.show(&support)?;
        return Ok(if support.is_complete() {
            Exit::Fine
        } else {
            Exit::No
        });
    }
    printer.show(&Inspection::new(&object, arguments.relocs))?;
    Ok(Exit::Fine)
}

/// Whether a file begins like a recording; false if it can't be read, which the caller reports.
fn is_recording(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok()) && start == MAGIC
}

/// Shows a recording, up to any damage.
fn recording(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let file = arguments.object.display().to_string();
    if arguments.relocs || arguments.support || arguments.btf_c {
        return Err(Failure::bad(format!(
            "{file}: a recording has no relocations or types; --relocs, --support and --btf-c are \
             for objects"
        )));
    }
    if let Some(to) = &arguments.events {
        let source = RecordingSource::File(arguments.object.clone());
        let listed = Listed {
            file: &file,
            source,
        };
        return match to {
            Some(to) => listed.write(to, printer),
            None => listed.list(printer),
        };
    }
    let bad = |problem: &dyn std::fmt::Display| Failure::bad(format!("{file}: {problem}"));
    let recording = Recording::open(&arguments.object).map_err(|error| bad(&error))?;
    let report = RecordingReport::read(&file, recording);
    printer.show(&report)?;
    if let Some(to) = &arguments.html {
        let source = RecordingSource::File(arguments.object.clone());
        let listed = Listed {
            file: &file,
            source,
        };
        let page = listed.timeline()?.finish(&report.to_string());
        write_text(to, &page)?;
    }
    match &report.problem {
        Some(problem) if report.state == ReadState::Damaged => Err(bad(problem)),
        _ if report.is_complete() => Ok(Exit::Fine),
        _ => Ok(Exit::No),
    }
}

/// Prints the C declarations of a file's BTF.
fn declarations(arguments: &Arguments, printer: &mut Printer) -> Result<Exit, Failure> {
    let file = arguments.object.display().to_string();
    let btf = read_btf(arguments)?;
    let mut text = String::new();
    btf.write_c(&mut text)
        .map_err(|error| Failure::bad(format!("{file}: {error}")))?;
    if printer.is_json() {
        printer.row(&json!({ "object": file, "c": text }))?;
    } else {
        printer.text(text)?;
    }
    Ok(Exit::Fine)
}

/// The kfuncs of a kernel's BTF file; none for another file.
fn kernel_kfuncs(path: &Path) -> Option<KfuncSupport> {
    match Target::file(path) {
        Ok(Target::Kernel(btf)) => Some(KfuncSupport::of(&btf)).filter(|found| found.in_btf > 0),
        _ => None,
    }
}

/// Writes the part of the kernel's BTF that objects and names need.
fn part(arguments: &Arguments, file: &Path, printer: &mut Printer) -> Result<Exit, Failure> {
    let kernel = match arguments.kernel.btf()? {
        Some(btf) => btf,
        None => match Target::file(Target::RUNNING)? {
            Target::Kernel(btf) => btf,
            _ => return Err(Failure::bad("no kernel's BTF: give one (--btf FILE)")),
        },
    };
    let mut wanted = Vec::new();
    for one in std::iter::once(&arguments.object).chain(&arguments.more) {
        let Some(name) = one.to_str().filter(|word| is_c_name(word)) else {
            wanted.extend(Object::open(one)?.wanted_types(&kernel));
            continue;
        };
        let known = wanted.len();
        wanted.extend(kernel.named(name).map(|ty| ty.id()));
        if wanted.len() == known {
            let unknown = format!("the kernel's BTF has no type or function '{name}'");
            return Err(Failure::bad(unknown));
        }
    }
    let name = file.display().to_string();
    let part = kernel.outline(wanted).map_err(Failure::bad)?;
    let bytes = part.to_bytes();
    std::fs::write(file, &bytes)
        .map_err(|error| Failure::bad(format!("{name}: can't be written: {error}")))?;
    let types = part.own_types().count();
    let of = kernel.types().count();
    if printer.is_json() {
        let size = bytes.len();
        printer.row(&json!({ "file": name, "types": types, "of": of, "bytes": size }))?;
    } else {
        let size = bytes.len();
        printer.text(format_args!(
            "{name}: {types} of {of} types, {size} bytes\n"
        ))?;
    }
    Ok(Exit::Fine)
}

/// The BTF of an object or of a BTF file.
fn read_btf(arguments: &Arguments) -> Result<Btf, Failure> {
    const ELF: &[u8] = b"\x7fELF";
    let path = &arguments.object;
    let file = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::bad(format!("{file}: can't be read: {error}")))?;
    if bytes.starts_with(ELF) {
        let object = Object::parse(&file.to_string(), &bytes)?;
        let btf = object.btf().cloned();
        return btf.ok_or_else(|| {
            Failure::bad(format!(
                "{file}: the object has no BTF; compile it with clang -g"
            ))
        });
    }
    if let Some(base) = arguments.kernel.btf()? {
        return Btf::parse_split(&bytes, &base)
            .map_err(|error| Failure::bad(format!("{file}: {error}")));
    }
    match Target::file(path)? {
        Target::Kernel(btf) => Ok(btf),
        _ => Err(Failure::bad(format!("{file}: no BTF"))),
    }
}
