//! Tests that run on each engine, and errors that say where a test failed.

use std::fmt;
use std::panic::Location;
use std::path::Path;
use std::sync::PoisonError;

use super::error::{Error, Result};
use super::vm::Vm;
use crate::object::Object;
use crate::vm::{EngineKind, LeakLog};

/// The result of a test: any error becomes a [`TestFailure`] at the `?` that passes it on.
///
/// ```
/// use bpflab::harness::TestResult;
/// use bpflab::{Object, Vm};
///
/// fn test() -> TestResult {
///     let vm = Vm::new(Object::open("examples/bpf/write_hist.bpf.o")?)?;
///     vm.map("hits")?; // it is called hist
///     Ok(())
/// }
///
/// let text = format!("{:?}", test().unwrap_err());
/// assert!(text.contains(".rs:") && text.contains("no map 'hits'"), "{text}");
/// ```
pub type TestResult = std::result::Result<(), TestFailure>;

/// Why a test failed, and the line of the test. Tests print `Debug`, which is the message.
///
/// It converts from every error, so it is none itself: `std::error::Error` would have it convert
/// from itself.
pub struct TestFailure {
    text: String,
    at: &'static Location<'static>,
}

impl<E: fmt::Display> From<E> for TestFailure {
    #[track_caller]
    fn from(error: E) -> Self {
        Self {
            text: error.to_string(),
            at: Location::caller(),
        }
    }
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, line, column) = (self.at.file(), self.at.line(), self.at.column());
        write!(f, "{file}:{line}:{column}: {}", self.text)
    }
}

/// A machine for one test on one engine: the object is loaded, its programs are accepted.
/// [`engine_tests!`](crate::engine_tests) calls it. On the checked engine `warn` gets, when the
/// test ends, each finding of uninitialised bytes that left a program.
///
/// # Errors
/// As of [`Vm::new`].
#[doc(hidden)]
pub fn vm_on(
    engine: EngineKind,
    package: &str,
    object: impl TestObject,
    warn: fn(&str),
) -> Result<(Vm, LeakWarnings)> {
    let mut vm = Vm::new(object.open(package)?)?;
    vm.set_engine(engine);
    vm.find_uninit(engine == EngineKind::Checked);
    let log = LeakLog::default();
    vm.machine().log_leaks(log.clone());
    Ok((vm, LeakWarnings { log, warn }))
}

/// The warnings about uninitialised bytes of one test.
#[doc(hidden)]
#[derive(Debug)]
pub struct LeakWarnings {
    log: LeakLog,
    warn: fn(&str),
}

impl Drop for LeakWarnings {
    fn drop(&mut self) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        for leak in log.iter() {
            (self.warn)(&leak.to_string());
        }
    }
}

/// What [`engine_tests!`](crate::engine_tests) takes as an object: a path relative to the
/// package, or an object that was opened.
#[doc(hidden)]
pub trait TestObject {
    /// The object.
    ///
    /// # Errors
    /// As of [`Object::open`].
    fn open(self, package: &str) -> Result<Object>;
}

impl TestObject for &str {
    fn open(self, package: &str) -> Result<Object> {
        Ok(Object::open(Path::new(package).join(self))?)
    }
}

impl<E> TestObject for std::result::Result<Object, E>
where
    Error: From<E>,
{
    fn open(self, _package: &str) -> Result<Object> {
        Ok(self?)
    }
}

/// Fails the test that calls it with the error, if there is one.
///
/// # Panics
/// With the error.
#[doc(hidden)]
#[track_caller]
pub fn passed(result: TestResult) {
    if let Err(error) = result {
        panic!("{error:?}");
    }
}

/// Whether tests can run on this engine here: machine code needs a processor that bpflab
/// generates code for.
#[doc(hidden)]
#[must_use]
pub fn is_here(engine: EngineKind) -> bool {
    engine != EngineKind::Jit || EngineKind::default() == EngineKind::Jit
}

/// Defines tests that run on each engine: `checked`, `interp` and `jit` of a module with the
/// test's name. The first parameter is the machine, with the programs of the object; the body is
/// that of a function that returns [`TestResult`](crate::harness::TestResult).
///
/// ```
/// bpflab::engine_tests! {
///     /// A write of 4096 bytes is in slot 12.
///     fn counts_by_power_of_two(vm: "examples/bpf/write_hist.bpf.o") {
///         vm.attach_all()?;
///         let event = vm.tracepoint("syscalls/sys_enter_write")?.set("count", 4096)?;
///         vm.fire(event)?;
///         assert_eq!(vm.map("hist")?.get::<u32, u64>(&12)?, Some(1));
///     }
/// }
/// ```
///
/// The object is a path relative to the package, or an expression of type
/// `Result<Object, _>`, to configure it first. Attributes such as
/// `#[should_panic]` and `#[ignore]` are those of each test. On the checked engine, uninitialised
/// bytes that leave the programs are a warning in the test's output. An engine that this machine doesn't
/// have is skipped, and the test's output says so.
#[macro_export]
macro_rules! engine_tests {
    ($($(#[$meta:meta])* fn $name:ident($vm:ident: $object:expr) $body:block)*) => {
        $(
            mod $name {
                #[allow(unused_imports)]
                use super::*;

                #[allow(unused_mut)]
                fn test(engine: $crate::harness::EngineKind) -> $crate::harness::TestResult {
                    if !$crate::harness::is_here(engine) {
                        eprintln!("skipped: this machine has no engine {engine}");
                        return Ok(());
                    }
                    let package = env!("CARGO_MANIFEST_DIR");
                    let warn = |text: &str| eprintln!("warning: {text}");
                    let (mut $vm, _warnings) =
                        $crate::harness::vm_on(engine, package, $object, warn)?;
                    $body
                    #[allow(unreachable_code)]
                    Ok(())
                }

                $(#[$meta])*
                #[test]
                fn checked() {
                    $crate::harness::passed(test($crate::harness::EngineKind::Checked));
                }

                $(#[$meta])*
                #[test]
                fn interp() {
                    $crate::harness::passed(test($crate::harness::EngineKind::Interp));
                }

                $(#[$meta])*
                #[test]
                fn jit() {
                    $crate::harness::passed(test($crate::harness::EngineKind::Jit));
                }
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_line_that_passed_it_on() {
        fn fails() -> TestResult {
            Err("broken")?;
            Ok(())
        }
        let text = format!("{:?}", fails().unwrap_err());
        let line = line!() - 4;
        assert!(text.contains(&format!("testing.rs:{line}:")), "{text}");
        assert!(text.ends_with(": broken"), "{text}");
    }
}
