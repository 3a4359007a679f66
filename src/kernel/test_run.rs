//! `BPF_PROG_TEST_RUN`: running a loaded program on given input.

use super::error::{Command, KernelError};
use super::loaded_program::LoadedProgram;
use super::sys::{RunRequest, page_size};
use crate::spec::{ProgType, TestRunFlags};

/// Pages that a program may add to a packet, beyond what it was given: helpers make
/// packets of up to four.
const ROOM: usize = 4;

/// What a program is run on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestRun {
    /// The packet, from the Ethernet header on, for types that run on packets; at
    /// least 14 bytes.
    pub data: Vec<u8>,
    /// The context: `struct __sk_buff` or `xdp_md` (what the kernel lets one set),
    /// a raw tracepoint's arguments, or the bytes that a syscall program takes.
    pub context: Vec<u8>,
    /// How often it runs; 0 counts as 1. Types that take no packet ask for 0.
    pub repeat: u32,
    /// How it runs.
    pub flags: TestRunFlags,
    /// The CPU that [`TestRunFlags::ON_CPU`] runs it on.
    pub cpu: u32,
}

impl TestRun {
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

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestRunResult {
    /// The low 32 bits of r0.
    pub retval: u32,
    /// The packet behind the last run.
    pub data: Vec<u8>,
    /// The context behind the last run; empty for types that don't show it.
    pub context: Vec<u8>,
    /// Mean nanoseconds of a run, whole ones only.
    pub duration_ns: u32,
}

impl LoadedProgram {
    /// Runs the program.
    ///
    /// # Errors
    /// What the kernel says: `ENOTSUPP` for types that can't be run like this,
    /// `EINVAL` for input that doesn't fit the type.
    pub fn test_run(&self, run: &TestRun) -> Result<TestRunResult, KernelError> {
        let in_place = self.prog_type() == ProgType::Syscall;
        // A raw tracepoint's arguments are given, and never given back.
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
