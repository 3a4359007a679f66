//! `--vm`: the same verb in virtual machines with other kernels.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};

use super::exit::{Exit, Failure};
use super::files::is_cases;
use super::printer::Printer;
use crate::guest::kernels::{Image, MODULES, cache_folder, find};
use crate::guest::{self, Accelerator, GuestError, Job, Sink};
use crate::kernel::VM;
use crate::object::cases::types_folder;
use crate::report::KernelsTable;

/// The options of a verb that can run in virtual machines.
#[derive(Debug, Default, Args)]
pub(super) struct VmArguments {
    /// Do it in a virtual machine with this kernel, without root: a kernel image, a kernel
    /// package, or a version of `bpflab kernels list`; several one after the other
    #[arg(
        long,
        value_name = "IMAGE",
        value_delimiter = ',',
        help_heading = "Virtual machine"
    )]
    vm: Vec<String>,
    /// Copy this file into the virtual machine, too: a program with its libraries, a folder with
    /// all that is in it
    #[arg(
        long,
        value_name = "FILE",
        requires = "vm",
        help_heading = "Virtual machine"
    )]
    guest_file: Vec<PathBuf>,
    /// The bpflab that runs in the virtual machine, built for its processor, if that is another
    /// than this machine's
    #[arg(
        long,
        value_name = "FILE",
        requires = "vm",
        help_heading = "Virtual machine"
    )]
    guest_bpflab: Option<PathBuf>,
    /// Memory of the virtual machine in MiB, beside what its files take [default: 256]
    #[arg(
        long,
        value_name = "MIB",
        requires = "vm",
        help_heading = "Virtual machine",
        value_parser = clap::value_parser!(u32).range(64..=1 << 20)
    )]
    guest_memory: Option<u32>,
}

/// The memory of a virtual machine by default, in MiB.
const MEMORY: u32 = 256;

impl VmArguments {
    /// Whether no virtual machine is named.
    pub const fn is_empty(&self) -> bool {
        self.vm.is_empty()
    }
}

/// A variable of the environment, if a guest gets it.
fn passed_on((name, value): (OsString, OsString)) -> Option<(String, String)> {
    let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
    let prefixes = ["BPFLAB_", "RUST_", "CARGO_"];
    let passed = name == "NO_COLOR" || prefixes.iter().any(|prefix| name.starts_with(prefix));
    passed.then_some((name, value))
}

/// What a verb does in a virtual machine.
#[derive(Debug, Clone, Default)]
pub(super) struct GuestVerb {
    /// An option that the guest gets, too.
    pub added: Option<&'static str>,
    /// The file or folder that it writes, which comes back.
    pub output: Option<PathBuf>,
    /// Whether its JSON is verdicts, which become one table for several kernels.
    pub verdicts: bool,
    /// Whether the command behind `--` runs in place of bpflab.
    pub command: bool,
}

impl GuestVerb {
    /// A command of the user's.
    pub fn of_command() -> Self {
        Self {
            command: true,
            ..Self::default()
        }
    }

    /// A verb that prints verdicts.
    pub fn of_verdicts() -> Self {
        Self {
            verdicts: true,
            ..Self::default()
        }
    }
}

/// Runs this process's command in each virtual machine.
pub(super) fn run(
    vm: &VmArguments,
    verb: &GuestVerb,
    printer: &mut Printer,
) -> Result<Exit, Failure> {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let several = vm.vm.len() > 1;
    if several && let Some(output) = &verb.output {
        let text = format!(
            "{}: one output for several kernels; name one",
            output.display()
        );
        return Err(Failure::bad(text));
    }
    let mut table = (several && verb.verdicts && !printer.is_json()).then(KernelsTable::default);
    let json = table.is_some().then_some("--json");
    let end = words.iter().position(|word| word == "--");
    let end = end.unwrap_or(words.len());
    let added = [verb.added, json].into_iter().flatten();
    words.splice(end..end, added.map(OsString::from));
    let mut job = job(vm, verb, &words)?;
    let mut exit = Exit::Fine;
    for name in &vm.vm {
        let image = find(name, &cache_folder(), MODULES)?;
        job.environment.retain(|(variable, _)| variable != VM);
        job.environment.push((VM.to_owned(), name.clone()));
        let mut guest = Guest {
            printer,
            name: &image.name,
            release: String::new(),
            lines: several.then(Vec::new),
        };
        exit = exit.max(guest.run(verb, &job, &image)?);
        let (release, lines) = (guest.release, guest.lines.unwrap_or_default());
        let lines = String::from_utf8_lossy(&lines);
        if let Some(table) = &mut table {
            table.add(&release, &lines);
        } else if printer.is_json() && !verb.command {
            for line in lines.lines() {
                printer.row(&of_kernel(&release, line)?)?;
            }
        } else if several {
            printer.text(format_args!("== Linux {release}\n{lines}"))?;
        }
    }
    if let Some(table) = table {
        printer.text(table)?;
    }
    Ok(exit)
}

/// A guest's line of JSON with the release of its kernel before the other keys.
fn of_kernel(release: &str, line: &str) -> Result<Map<String, Value>, Failure> {
    let row: Map<String, Value> = serde_json::from_str(line).map_err(Failure::bad)?;
    let head = [("vm".to_owned(), Value::from(release))];
    Ok(head.into_iter().chain(row).collect())
}

/// The job of a command line.
fn job(vm: &VmArguments, verb: &GuestVerb, words: &[OsString]) -> Result<Job, Failure> {
    let (ours, command) = match words.iter().position(|word| word == "--") {
        Some(at) => words.split_at(at),
        None => (words, [].as_slice()),
    };
    let (program, arguments) = match command {
        [_, program, arguments @ ..] if verb.command => (Some(program), arguments.to_vec()),
        _ => (None, [without_vm(ours), command.to_vec()].concat()),
    };
    let absolute = |path: &Path| {
        std::path::absolute(path)
            .map_err(|error| Failure::bad(format!("{}: {error}", path.display())))
    };
    let mut job = Job {
        folder: std::env::current_dir()
            .map_err(|error| Failure::bad(format!("the working folder: {error}")))?,
        environment: std::env::vars_os().filter_map(passed_on).collect(),
        bpflab: vm.guest_bpflab.clone(),
        memory: vm.guest_memory.unwrap_or(MEMORY).into(),
        ..Job::default()
    };
    if let Some(output) = &verb.output {
        let path = absolute(output)?;
        job.folders.extend(path.parent().map(Path::to_owned));
        job.outputs.push(path);
    }
    for word in &arguments {
        for file in files(word) {
            let path = absolute(file)?;
            if is_cases(&path) {
                let types = path.parent().map(types_folder);
                job.files.extend(types.filter(|types| types.is_dir()));
            }
            if !job.outputs.contains(&path) {
                job.files.push(path);
            }
        }
    }
    if let Some(program) = command.get(1) {
        job.programs.push(program_file(program)?);
    }
    if let Some(program) = program {
        job.program = Some(absolute(&program_file(program)?)?);
    }
    for file in &vm.guest_file {
        match file.is_dir() {
            true => job.files.push(file.clone()),
            false => job.programs.push(file.clone()),
        }
    }
    for word in arguments {
        let text = word.into_string().map_err(|word| {
            Failure::bad(format!("{}: not UTF-8, which --vm needs", word.display()))
        })?;
        job.arguments.push(text);
    }
    Ok(job)
}

/// The arguments without those of [`VmArguments`].
fn without_vm(words: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        match text.split_once('=').map_or(&*text, |(name, _)| name) {
            "--vm" | "--guest-file" | "--guest-bpflab" | "--guest-memory" => {
                if !text.contains('=') {
                    words.next();
                }
            }
            _ => kept.push(word.clone()),
        }
    }
    kept
}

/// The files that an argument names: `FILE`, `FILE:PROGRAM`, `NAME=FILE`, `NAME=FILE:SYMBOL`. The guest has a
/// `/proc`, `/sys` and `/dev` of its own.
fn files(word: &OsStr) -> impl Iterator<Item = &Path> {
    let text = word.to_str().unwrap_or_default();
    let value = text.split_once('=').map(|(_, value)| value);
    let places = value.and_then(|value| Some(value.split_once(':')?.0));
    let object = text.rsplit_once(':').map(|(object, _)| object);
    let named = [Some(text), object, value, places].into_iter().flatten();
    let own = |path: &&Path| {
        ["/proc", "/sys", "/dev"]
            .iter()
            .any(|root| path.starts_with(root))
    };
    named
        .map(Path::new)
        .filter(move |path| path.is_file() && !own(path))
}

/// The file of a command, found as a shell finds it.
fn program_file(name: &OsStr) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return Ok(path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::bad(format!("{}: no such command", path.display())))
}

/// A guest's output: printed as it comes, or kept if that of several guests becomes one.
struct Guest<'a> {
    printer: &'a mut Printer,
    name: &'a str,
    release: String,
    lines: Option<Vec<u8>>,
}

impl Guest<'_> {
    /// Runs the job and returns the exit code of this process.
    fn run(&mut self, verb: &GuestVerb, job: &Job, image: &Image) -> Result<Exit, Failure> {
        let done = guest::run(job, image, self);
        self.printer.worked();
        let code = done.map_err(|error| {
            let exit = match error {
                GuestError::Output(error) => return Failure::Output(error),
                GuestError::File { .. } => Exit::Bad,
                _ => Exit::Unavailable,
            };
            Failure::with(exit, format!("{}: {error}", image.name))
        })?;
        let who = match (verb.command, Exit::from_code(code)) {
            (true, Some(Exit::Fine)) => return Ok(Exit::Fine),
            (false, Some(exit)) => return Ok(exit),
            (true, _) => "the command",
            (false, None) => "bpflab in the virtual machine",
        };
        let text = format!("{}: {who} ended with code {code}", image.name);
        self.printer.failure(Failure::with(Exit::No, text))
    }
}

impl Sink for Guest<'_> {
    fn starting(&mut self, accelerator: Accelerator) {
        let what = format!("starting Linux {} under {accelerator}", self.name);
        self.printer.working(what);
    }

    fn up(&mut self, release: &str, accelerator: Accelerator, boot: Duration) {
        release.clone_into(&mut self.release);
        let text = format!(
            "Linux {release} under {accelerator}: {:.1} s to its first process",
            boot.as_secs_f64()
        );
        // What is printed on the way is not worth an error.
        let _ = self.printer.note(&text);
    }

    fn again(&mut self, why: &GuestError) {
        // As above.
        let _ = self.printer.warn(&format!("{why}\nstarting it once more"));
    }

    fn out(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write_all(bytes),
            None => self.printer.bytes(bytes),
        }
    }

    fn err(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::stderr().write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_guest_gets_the_arguments_but_its_own() {
        let kept = without_vm(&words(
            "verify --vm 6.1,6.12 x.o --guest-file=/y --json --vm=z --guest-bpflab b",
        ));
        assert_eq!(kept, words("verify x.o --json"));
    }

    #[test]
    fn files_are_found_in_arguments() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let named = |word: String| files(OsStr::new(&word)).count();
        assert_eq!(named(manifest.to_owned()), 1);
        assert_eq!(named(format!("--btf={manifest}")), 1);
        assert_eq!(named(format!("probe={manifest}:handle")), 1);
        assert_eq!(named("--json".to_owned()), 0);
        assert_eq!(named("/proc/version".to_owned()), 0);
        assert_eq!(named(env!("CARGO_MANIFEST_DIR").to_owned()), 0);
    }

    #[test]
    fn a_command_is_found_as_a_shell_finds_it() {
        assert!(program_file(OsStr::new("true")).unwrap().is_absolute());
        assert_eq!(program_file(OsStr::new("./x")).unwrap(), Path::new("./x"));
        let Err(Failure::Error { text, .. }) = program_file(OsStr::new("no-such-command")) else {
            panic!("found");
        };
        assert_eq!(text, "no-such-command: no such command");
    }
}
