//! The command line: one file per verb, one printer, four exit codes.
//!
//! A verb prints values of [`report`](crate::report), which have a text and a JSON form;
//! `docs/cli.md` documents both.

mod bench;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod compare;
mod completions;
mod conformance;
mod cover;
mod disasm;
mod event_fields;
mod event_lines;
mod exit;
mod explain;
mod files;
mod fuzz;
mod input;
mod inspect;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernel;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod kernels;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod live;
mod man;
mod map_values;
mod needs;
mod object_rules;
mod printer;
mod progress;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod record;
mod reduce;
mod replay;
mod reports;
mod run;
mod subjects;
mod symbols;
mod target;
mod test;
mod user_memory;
mod verify;
#[cfg(all(feature = "kernel", target_os = "linux"))]
mod vm;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use exit::{Exit, Failure};
use printer::{Color, Printer};

/// Run and unit-test eBPF programs in user space: no kernel, no root
#[derive(Debug, Parser)]
#[command(name = "bpflab", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success; 1 negative result (fault, reject, difference); \
    2 bad usage or input; 3 not available here.\n\
    Each verb has examples: bpflab run --help"
)]
struct Cli {
    /// Print JSON, one value a line
    #[arg(long, global = true, display_order = 900)]
    json: bool,
    /// Use colours; auto: on terminals, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto, display_order = 901)]
    color: Color,
    /// Print no warnings, notes and progress; errors and results stay
    #[arg(short, long, global = true, display_order = 902)]
    quiet: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Inspect(inspect::Arguments),
    Needs(needs::Arguments),
    Disasm(disasm::Arguments),
    Verify(Box<verify::Arguments>),
    Explain(Box<explain::Arguments>),
    Run(Box<run::Arguments>),
    Bench(Box<bench::Arguments>),
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    Compare(Box<compare::Arguments>),
    Fuzz(Box<fuzz::Arguments>),
    Reduce(reduce::Arguments),
    Replay(Box<replay::Arguments>),
    Test(test::Arguments),
    Cover(Box<cover::Arguments>),
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    Kernel(kernel::Arguments),
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    Kernels(kernels::Arguments),
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    Record(Box<record::Arguments>),
    ConformancePlugin(conformance::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the command with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    if crate::guest::init::is_guest() {
        crate::guest::init::main();
    }
    let mut words: Vec<_> = std::env::args_os().collect();
    conformance::put_verb_first(&mut words);
    let parsed = Cli::try_parse_from(&words);
    let json = match &parsed {
        Ok(cli) => cli.json,
        Err(_) => words.iter().any(|word| word == "--json"),
    };
    if let Ok(cli) = &parsed {
        printer::set_color(cli.color);
    }
    let quiet = parsed.as_ref().is_ok_and(|cli| cli.quiet);
    let mut printer = Printer::new(json, quiet);
    let done = match parsed {
        Ok(cli) => {
            let done = cli.verb.here_or_in_guests(&mut printer);
            done.and_then(|exit| cover::all_written().map(|()| exit))
        }
        Err(error) => usage(error, &mut printer),
    };
    printer.finish(done).into()
}

impl Verb {
    #[cfg(all(feature = "kernel", target_os = "linux"))]
    fn here_or_in_guests(self, printer: &mut Printer) -> Result<Exit, Failure> {
        use vm::GuestVerb;

        let (vm, guest) = match &self {
            Self::Kernel(arguments) => arguments.vm(),
            Self::Bench(arguments) => (arguments.vm(), GuestVerb::default()),
            Self::Verify(arguments) => (&arguments.vm, arguments.guest_verb()),
            Self::Record(arguments) => (&arguments.vm, arguments.guest_verb()),
            Self::Compare(arguments) => (&arguments.vm, arguments.guest_verb()),
            Self::Fuzz(arguments) => (&arguments.vm, arguments.guest_verb()),
            _ => return self.run(printer),
        };
        if vm.is_empty() {
            return self.run(printer);
        }
        vm::run(vm, &guest, printer)
    }

    #[cfg(not(all(feature = "kernel", target_os = "linux")))]
    fn here_or_in_guests(self, printer: &mut Printer) -> Result<Exit, Failure> {
        self.run(printer)
    }

    fn run(self, printer: &mut Printer) -> Result<Exit, Failure> {
        match self {
            Self::Inspect(arguments) => inspect::run(&arguments, printer),
            Self::Needs(arguments) => needs::run(&arguments, printer),
            Self::Disasm(arguments) => disasm::run(&arguments, printer),
            Self::Verify(arguments) => verify::run(&arguments, printer),
            Self::Explain(arguments) => explain::run(&arguments, printer),
            Self::Run(arguments) => run::run(&arguments, printer),
            Self::Bench(arguments) => bench::run(&arguments, printer),
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            Self::Compare(arguments) => compare::run(&arguments, printer),
            Self::Fuzz(arguments) => fuzz::run(&arguments, printer),
            Self::Reduce(arguments) => reduce::run(&arguments, printer),
            Self::Replay(arguments) => replay::run(&arguments, printer),
            Self::Test(arguments) => test::run(&arguments, printer),
            Self::Cover(arguments) => cover::run(&arguments, printer),
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            Self::Kernel(arguments) => kernel::run(&arguments, printer),
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            Self::Kernels(arguments) => kernels::run(&arguments, printer),
            #[cfg(all(feature = "kernel", target_os = "linux"))]
            Self::Record(arguments) => record::run(&arguments, printer),
            Self::ConformancePlugin(arguments) => conformance::run(&arguments, printer),
            Self::Completions(arguments) => completions::run(&arguments, Cli::command(), printer),
            Self::Man(arguments) => man::run(&arguments, Cli::command(), printer),
        }
    }
}

/// Prints clap's help, version or usage error; help and version are no errors.
fn usage(mut error: clap::Error, printer: &mut Printer) -> Result<Exit, Failure> {
    if !error.use_stderr() {
        error.print()?;
        return Ok(Exit::Fine);
    }
    let twice = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) => given.starts_with("--event "),
        _ => false,
    };
    if twice && error.kind() == ErrorKind::ArgumentConflict {
        let tip = "several events are lines of a file: --events FILE".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    if printer.is_json() {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        return Err(Failure::bad(text.trim_end()));
    }
    error.print()?;
    Ok(Exit::Bad)
}
