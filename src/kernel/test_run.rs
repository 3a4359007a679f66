//! `BPF_PROG_TEST_RUN`: runs a loaded program on given input.

use super::error::{Command, KernelError};
use super::loaded_program::LoadedProgram;
use super::sys::{RunRequest, page_size};
use crate::spec::{ProgType, TestRunFlags};
use crate::util::with;

/// Pages that a program may add to a packet: helpers grow packets to up to four.
const ROOM: usize = 4;

/// The input of a test run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TestRun {
    /// The packet, from the Ethernet header on, for types that run on packets; at
    /// least 14 bytes.
    pub data: Vec<u8>,
    /// The context: `struct __sk_buff` or `xdp_md` (the fields that the kernel lets one set), a
    /// raw tracepoint's arguments, or the bytes for a syscall program.
    pub context: Vec<u8>,
    /// How often it runs; 0 counts as 1. Must be 0 for types that take no packet.
    pub repeat: u32,
    /// Flags of the run.
    pub flags: TestRunFlags,
    /// The CPU that [`TestRunFlags::ON_CPU`] runs it on.
    pub cpu: u32,
}

impl TestRun {
    with! {
        with_data(data: impl Into<Vec<u8>>);
        with_context(context: impl Into<Vec<u8>>);
        with_repeat(repeat: u32);
        with_flags(flags: TestRunFlags);
        with_cpu(cpu: u32);
    }

    /// A run on a packet.
    #[must_use]
    pub fn packet(data: &[u8]) -> Self {
        Self {
            data: data.to_vec(),
            ..Self::default()
        }
    }

    /// A run on a context.
    #[must_use]
    pub fn context(context: &[u8]) -> Self {
        Self {
            context: context.to_vec(),
            ..Self::default()
        }
    }
}

/// The result of a test run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestRunResult {
    /// The low 32 bits of r0.
    pub retval: u32,
    /// The packet after the last run.
    pub data: Vec<u8>,
    /// The context after the last run; empty for types that don't return it.
    pub context: Vec<u8>,
    /// Mean time of a run in whole nanoseconds.
    pub duration_ns: u32,
}

impl LoadedProgram {
    /// Runs the program.
    ///
    /// # Errors
    /// The kernel's error: `ENOTSUPP` for types without test runs, `EINVAL` for input that does
    /// not fit the type.
    pub fn test_run(&self, run: &TestRun) -> Result<TestRunResult, KernelError> {
        let in_place = self.prog_type() == ProgType::Syscall;
        // The kernel takes a raw tracepoint's arguments but does not return them.
        let shows = !in_place && self.prog_type() != ProgType::RawTracepoint;
        let mut data_out = match run.data.len() {
            0 => Vec::new(),
            len => vec![0; len + ROOM * page_size()],
        };
        let mut context = run.context.clone();
        let mut ctx_out = if shows {
            vec![0; context.len()]
        } else {
            Vec::new()
        };
        let mut request = RunRequest {
            data_in: &run.data,
            data_out: &mut data_out,
            ctx_in: &mut context,
            ctx_out: &mut ctx_out,
            repeat: run.repeat,
            flags: run.flags.bits(),
            cpu: run.cpu,
        };
        let result = self.fd().test_run(&mut request).map_err(|errno| {
            let object = format!("program {}", self.name());
            KernelError::new(Command::ProgTestRun, object, errno)
        })?;
        data_out.truncate(result.data_len);
        ctx_out.truncate(result.ctx_len);
        Ok(TestRunResult {
            retval: result.retval,
            data: data_out,
            context: if in_place { context } else { ctx_out },
            duration_ns: result.duration_ns,
        })
    }
}
