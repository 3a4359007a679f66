//! Programs that call helpers in sequence and log all results: return values, memory filled
//! by the helpers, fields of the context.

use std::sync::Arc;

use bpflab::isa::assemble_with;
use bpflab::program::{MapDef, Program};
use bpflab::spec::context::{Arch, layout};
use bpflab::spec::{AttachType, MapType, ProgType};

/// An argument of a helper after the context.
#[derive(Debug, Clone)]
pub enum Arg {
    /// A number.
    N(i64),
    /// Memory with these bytes before the call; its contents after the call are logged.
    M(Vec<u8>),
}

impl From<i64> for Arg {
    fn from(number: i64) -> Self {
        Self::N(number)
    }
}

impl<const N: usize> From<[u8; N]> for Arg {
    fn from(bytes: [u8; N]) -> Self {
        Self::M(bytes.to_vec())
    }
}

/// Size of the log in bytes.
const ROOM: u32 = 1024;

/// A program under construction.
#[derive(Debug, Clone)]
pub struct Snippet {
    prog_type: ProgType,
    attach: Option<AttachType>,
    body: String,
    at: u32,
    labels: u32,
}

#[allow(dead_code, reason = "each test uses some of them")]
impl Snippet {
    pub fn new(prog_type: ProgType) -> Self {
        Self {
            prog_type,
            attach: None,
            body: String::new(),
            at: 0,
            labels: 0,
        }
    }

    pub fn attached(mut self, to: AttachType) -> Self {
        self.attach = Some(to);
        self
    }

    fn line(mut self, line: impl AsRef<str>) -> Self {
        self.body += line.as_ref();
        self.body.push('\n');
        self
    }

    fn keep(mut self, register: &str, size: u32) -> Self {
        let at = self.at;
        self.at += 8;
        assert!(self.at <= ROOM, "the snippet writes down too much");
        self.line(format!("*(u{} *)(r7 + {at}) = {register}", size * 8))
    }

    /// Calls a helper on the context.
    pub fn call<const N: usize>(self, helper: &str, args: [Arg; N]) -> Self {
        self.call_on("r6", helper, args)
    }

    /// Calls a helper with this first argument, followed by the others.
    pub fn call_on<const N: usize>(mut self, first: &str, helper: &str, args: [Arg; N]) -> Self {
        let mut memory = Vec::new();
        let mut below = 16;
        for (number, arg) in args.iter().enumerate() {
            let register = number + 2;
            match arg {
                Arg::N(value) => self = self.line(format!("r{register} = {value} ll")),
                Arg::M(bytes) => {
                    below += bytes.len().next_multiple_of(8);
                    for (word, at) in bytes.chunks(8).zip((0..).step_by(8)) {
                        let mut value = [0; 8];
                        value[..word.len()].copy_from_slice(word);
                        let value = i64::from_le_bytes(value);
                        self = self.line(format!("r0 = {value} ll"));
                        self = self.line(format!("*(u64 *)(r10 - {}) = r0", below - at));
                    }
                    memory.push((below, bytes.len()));
                }
            }
        }
        let mut below = 16;
        for (number, arg) in args.iter().enumerate() {
            if let Arg::M(bytes) = arg {
                below += bytes.len().next_multiple_of(8);
                self = self.line(format!("r{0} = r10\nr{0} += -{below}", number + 2));
            }
        }
        self = self.line(format!("r1 = {first}\ncall {helper}"));
        self = self.keep("r0", 8);
        for (below, len) in memory {
            for at in (0..len).step_by(8) {
                self = self.line(format!("r1 = *(u64 *)(r10 - {})", below - at));
                self = self.keep("r1", 8);
            }
        }
        self
    }

    /// Calls a helper with memory as its first argument; r9 points to it.
    pub fn on_memory<const N: usize>(mut self, memory: Arg, helper: &str, args: [Arg; N]) -> Self {
        if let Arg::M(bytes) = memory {
            for (word, at) in bytes.chunks(8).zip((0..).step_by(8)) {
                let mut value = [0; 8];
                value[..word.len()].copy_from_slice(word);
                let value = i64::from_le_bytes(value);
                self = self.line(format!("r0 = {value} ll\n*(u64 *)(r9 + {at}) = r0"));
            }
        }
        self.call_on("r9", helper, args)
    }

    /// Logs a field of the context, or a part of it.
    pub fn see(self, fields: &[&str]) -> Self {
        let layout = layout(self.prog_type.info().context, Arch::HOST).unwrap();
        fields.iter().fold(self, |snippet, name| {
            let (offset, size) = layout
                .find(name)
                .unwrap_or_else(|| panic!("no field {name}"));
            snippet.load(offset, size.min(8))
        })
    }

    /// Logs the result of a load from the context.
    pub fn load(self, offset: u32, size: u32) -> Self {
        self.line(format!("r1 = *(u{} *)(r6 + {offset})", size * 8))
            .keep("r1", 8)
    }

    /// Sets a field of the context.
    pub fn set(self, field: &str, value: i64) -> Self {
        let layout = layout(self.prog_type.info().context, Arch::HOST).unwrap();
        let (offset, size) = layout.find(field).unwrap();
        self.line(format!(
            "r1 = {value} ll\n*(u{} *)(r6 + {offset}) = r1",
            size * 8
        ))
    }

    /// Logs these bytes of the packet, read through the context's pointers, if the packet is
    /// long enough.
    pub fn packet(mut self, len: u32) -> Self {
        let layout = layout(self.prog_type.info().context, Arch::HOST).unwrap();
        let pointer = |name| {
            let (offset, size) = layout.find(name).unwrap();
            format!("*(u{} *)(r6 + {offset})", size * 8)
        };
        self.labels += 1;
        let label = format!("short{}", self.labels);
        self = self.line(format!(
            "r1 = {}\nr2 = {}\nr3 = r1\nr3 += {len}\nif r3 > r2 goto {label}",
            pointer("data"),
            pointer("data_end"),
        ));
        for at in (0..len).step_by(8) {
            self = self.line(format!("r3 = *(u64 *)(r1 + {at})")).keep("r3", 8);
        }
        self.line(format!("{label}:"))
    }

    /// Adds lines of assembly; r6 is the context, r7 the log.
    pub fn asm(self, lines: &str) -> Self {
        self.line(lines)
    }

    /// The finished program; it returns `retval`.
    pub fn build(&self, retval: i32) -> Arc<Program> {
        let text = format!(
            "r6 = r1\n*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[idx:0]\n\
             call bpf_map_lookup_elem\nif r0 == 0 goto out\nr7 = r0\n{}out: r0 = {retval}\nexit\n",
            self.body
        );
        let mut program = Program::new("snippet", self.prog_type, Vec::new());
        program.maps = [MapDef::new("notes", MapType::Array, 4, ROOM, 1)].into();
        program.license = "GPL".into();
        program.expected_attach_type = self.attach;
        let assembly =
            assemble_with(&text, &program).unwrap_or_else(|error| panic!("{error}\n{text}"));
        program.insns = assembly.slots;
        Arc::new(program)
    }
}
