//! Each instruction on other virtual machines, compared with RFC 9669 as bpflab has it. Their
//! machine code is for x86-64.

#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "machine code of peers is not checked")]

#[path = "peers/child.rs"]
mod child;
#[path = "peers/page.rs"]
mod page;
#[allow(dead_code, reason = "each target uses a part of it")]
#[path = "../../tests/shared/skip.rs"]
mod skip;
#[allow(dead_code, reason = "each target uses a part of it")]
#[path = "../suite/mod.rs"]
mod suite;

use std::fmt;
use std::panic::catch_unwind;

use bpflab::harness::RawProgram;
use bpflab::isa::assemble;
use child::Process;
use page::Page;
use skip::{Need, skip_part};
use suite::installed::Peer as Library;
use suite::llvmbpf::{LLVMBPF, Llvmbpf};
use suite::rbpf::Rbpf;
use suite::sbpf::Sbpf;
use suite::ubpf::{UBPF, Ubpf};

/// Operands near the limits of both widths.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    31,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1234_5678_9abc_def0,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Constants near the limits.
const CONSTANTS: [i32; 8] = [0, 1, 2, 31, 63, -1, i32::MAX, i32::MIN];

/// The operators of two operands. Signed division is of version 4.
const OPERATORS: [&str; 14] = [
    "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>=", "s>>=", "=", "s/=", "s%=",
];

const COMPARISONS: [&str; 11] = [
    "==", "!=", ">", ">=", "<", "<=", "s>", "s>=", "s<", "s<=", "&",
];

/// Operations on r3 alone.
const UNARY: [&str; 10] = [
    "r3 = -r3",
    "w3 = -w3",
    "r3 = le16 r3",
    "r3 = le32 r3",
    "r3 = le64 r3",
    "r3 = be16 r3",
    "r3 = be32 r3",
    "r3 = be64 r3",
    "r3 = bswap32 r3",
    "r3 = bswap64 r3",
];

/// Moves with sign extension, of version 4.
const EXTENSIONS: [&str; 5] = [
    "r3 = (s8)r4",
    "r3 = (s16)r4",
    "r3 = (s32)r4",
    "w3 = (s8)w4",
    "w3 = (s16)w4",
];

/// Atomic operations on the 8 bytes at r10 - 8, which have r3.
const ATOMICS: [&str; 12] = [
    "lock *(u64 *)(r10 -8) += r4",
    "lock *(u64 *)(r10 -8) |= r4",
    "lock *(u64 *)(r10 -8) &= r4",
    "lock *(u64 *)(r10 -8) ^= r4",
    "lock *(u32 *)(r10 -8) += r4",
    "r4 = atomic64_fetch_add((u64 *)(r10 -8), r4)",
    "r4 = atomic64_fetch_xor((u64 *)(r10 -8), r4)",
    "w4 = atomic_fetch_or((u32 *)(r10 -8), w4)",
    "r4 = xchg_64(r10 -8, r4)",
    "w4 = xchg32_32(r10 -8, w4)",
    "r0 = cmpxchg_64(r10 -8, r0, r4)",
    "w0 = cmpxchg32_32(r10 -8, w0, w4)",
];

/// Loads of the bytes at r10 - 8.
const LOADS: [&str; 7] = [
    "r3 = *(u8 *)(r10 -8)",
    "r3 = *(u16 *)(r10 -8)",
    "r3 = *(u32 *)(r10 -8)",
    "r3 = *(u64 *)(r10 -8)",
    "r3 = *(s8 *)(r10 -8)",
    "r3 = *(s16 *)(r10 -8)",
    "r3 = *(s32 *)(r10 -8)",
];

/// An instruction on many operands.
struct Group {
    name: String,
    programs: Vec<String>,
}

/// Programs that put pairs of numbers into r3 and r4, run `body`, and return r3.
fn on_pairs(body: &str) -> Vec<String> {
    let of = |b| on_numbers(&format!("r4 = {b:#x} ll\n{body}"));
    NUMBERS.map(of).concat()
}

/// Programs that put a number into r3, run `body`, and return r3.
fn on_numbers(body: &str) -> Vec<String> {
    let text = |a| format!("r3 = {a:#x} ll\n{body}\nr0 = r3\nexit");
    NUMBERS.map(text).into()
}

/// The operator on all pairs of registers.
fn on_registers(operator: &str, letter: char) -> Vec<String> {
    let pairs = (0..10).flat_map(|dst| (0..10).map(move |src| (dst, src)));
    let text = |(dst, src)| {
        format!(
            "r{dst} = 0x123456789abcdef0 ll\nr{src} = 0x8765432100000007 ll\n\
             {letter}{dst} {operator} {letter}{src}\nr0 = r{dst}\nexit"
        )
    };
    pairs.map(text).collect()
}

fn groups() -> Vec<Group> {
    let mut groups = Vec::new();
    let mut add = |name: &str, programs| {
        let name = name.to_owned();
        groups.push(Group { name, programs });
    };
    for letter in ['r', 'w'] {
        for operator in OPERATORS {
            let mut programs = on_pairs(&format!("{letter}3 {operator} {letter}4"));
            programs.extend(on_registers(operator, letter));
            add(&format!("{letter}3 {operator} {letter}4"), programs);
            // A constant that no verifier accepts is no operand.
            let divides = operator.contains(['/', '%']);
            let most = if letter == 'r' { 64 } else { 32 };
            let is_valid = |constant: &i32| match operator {
                "<<=" | ">>=" | "s>>=" => (0..most).contains(constant),
                _ => !(divides && *constant == 0),
            };
            let constants = CONSTANTS.into_iter().filter(is_valid);
            let body = |constant| on_numbers(&format!("{letter}3 {operator} {constant}"));
            let programs = constants.flat_map(body).collect();
            add(&format!("{letter}3 {operator} constant"), programs);
        }
        for comparison in COMPARISONS {
            let branch = |right: &str| {
                let condition = format!("if {letter}3 {comparison} {right} goto +1");
                format!("r5 = 1\n{condition}\nr5 = 0\nr3 = r5")
            };
            let programs = on_pairs(&branch(&format!("{letter}4")));
            add(&format!("if {letter}3 {comparison} {letter}4"), programs);
            let constants = CONSTANTS.map(|constant| on_numbers(&branch(&constant.to_string())));
            add(
                &format!("if {letter}3 {comparison} constant"),
                constants.concat(),
            );
        }
    }
    UNARY.iter().for_each(|body| add(body, on_numbers(body)));
    EXTENSIONS.iter().for_each(|body| add(body, on_pairs(body)));
    for body in ATOMICS {
        let body = format!(
            "r0 = r4\n*(u64 *)(r10 -8) = r3\n{body}\nr3 = *(u64 *)(r10 -8)\nr3 ^= r4\nr3 ^= r0"
        );
        add(body.lines().nth(2).unwrap_or_default(), on_pairs(&body));
    }
    for body in LOADS {
        add(body, on_numbers(&format!("*(u64 *)(r10 -8) = r3\n{body}")));
    }
    for size in ["u8", "u16", "u32", "u64"] {
        let store = |what: &str| {
            format!("*(u64 *)(r10 -8) = -1\n*({size} *)(r10 -8) = {what}\nr3 = *(u64 *)(r10 -8)")
        };
        add(
            &format!("*({size} *)(r10 -8) = r3"),
            on_numbers(&store("r3")),
        );
        let constants = CONSTANTS.map(|constant| on_numbers(&store(&constant.to_string())));
        add(
            &format!("*({size} *)(r10 -8) = constant"),
            constants.concat(),
        );
    }
    groups
}

fn rbpf(is_jit: bool, code: Vec<u8>) -> Result<u64, String> {
    // SAFETY: the only memory of `groups` is the 8 bytes at r10 - 8.
    unsafe { Rbpf { is_jit }.result(code, &[]) }
}

fn ubpf(is_jit: bool, code: &[u8]) -> Result<u64, String> {
    // SAFETY: the only memory of `groups` is the 8 bytes at r10 - 8.
    unsafe { Ubpf { is_jit }.result(code, &[]) }
}

fn llvmbpf(code: &[u8]) -> Result<u64, String> {
    // SAFETY: the only memory of `groups` is the 8 bytes at r10 - 8.
    unsafe { Llvmbpf.result(code, &[]) }
}

/// A virtual machine.
struct Peer {
    /// The title of its column.
    title: &'static str,
    /// Code and its result.
    run: fn(Vec<u8>) -> Result<u64, String>,
    /// The library that it needs. It runs in a process of its own.
    library: Option<Library>,
}

/// In the order of the table's columns.
const PEERS: [Peer; 7] = [
    Peer::here("rbpf interp", |code| rbpf(false, code)),
    Peer::here("rbpf jit", |code| rbpf(true, code)),
    Peer::here("sbpf interp", |code| {
        Sbpf { is_jit: false }.result(&code, &[])
    }),
    Peer::here("sbpf jit", |code| Sbpf { is_jit: true }.result(&code, &[])),
    Peer::of(UBPF, "uBPF interp", |code| ubpf(false, &code)),
    Peer::of(UBPF, "uBPF jit", |code| ubpf(true, &code)),
    Peer::of(LLVMBPF, "llvmbpf", |code| llvmbpf(&code)),
];

impl Peer {
    /// A crate.
    const fn here(title: &'static str, run: fn(Vec<u8>) -> Result<u64, String>) -> Self {
        Self {
            title,
            run,
            library: None,
        }
    }

    /// A library.
    const fn of(
        library: Library,
        title: &'static str,
        run: fn(Vec<u8>) -> Result<u64, String>,
    ) -> Self {
        Self {
            title,
            run,
            library: Some(library),
        }
    }

    /// Runs it; none where the machine does not have the library.
    fn runner(&self) -> Option<Runner> {
        let Some(library) = self.library else {
            let run = self.run;
            return Some(Box::new(move |code| {
                let code = code.to_vec();
                catch_unwind(|| run(code)).map_or(Made::Panicked, Made::of)
            }));
        };
        if library.missing().is_some() {
            return None;
        }
        let mut process = Process::new(self.title);
        Some(Box::new(move |code| process.run(code)))
    }
}

/// Runs code.
type Runner = Box<dyn FnMut(&[u8]) -> Made>;

/// What a virtual machine makes of a program.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Result(u64),
    /// An error, with its text.
    Refused(String),
    Panicked,
    /// The process ended, with this status.
    Ended(String),
    /// The program did not end.
    Endless,
}

impl Made {
    fn of(result: Result<u64, String>) -> Self {
        result.map_or_else(Self::Refused, Self::Result)
    }

    /// An answer of a child: what [`fmt::Display`] writes for a result or an error.
    fn parse(answer: &str) -> Option<Self> {
        match answer.split_once(' ')? {
            ("r0", number) => Some(Self::Result(number.parse().ok()?)),
            ("refused", why) => Some(Self::Refused(why.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(number) => write!(f, "r0 {number}"),
            Self::Refused(why) => write!(f, "refused {}", why.replace('\n', " ")),
            Self::Panicked => f.write_str("panic"),
            Self::Ended(status) => f.write_str(status),
            Self::Endless => f.write_str("no end"),
        }
    }
}

/// What a virtual machine makes of an instruction.
#[derive(Default)]
struct Found {
    programs: usize,
    refused: usize,
    panicked: usize,
    ended: usize,
    endless: usize,
    differ: usize,
    /// The first program with another result, or without an end of its own.
    example: Option<String>,
}

impl Found {
    const fn is_equal(&self) -> bool {
        self.differ + self.panicked + self.ended + self.endless + self.refused == 0
    }
}

/// A cell of the table.
impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_equal() {
            return f.write_str("equal");
        }
        if self.refused == self.programs {
            return f.write_str("refused");
        }
        let counts = [
            (self.differ, "differ"),
            (self.panicked, "panic"),
            (self.ended, "crash"),
            (self.endless, "endless"),
            (self.refused, "refused"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{count} {what}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        write!(f, "{counts} of {}", self.programs)
    }
}

fn compare(group: &Group, run: &mut Runner) -> Found {
    let mut found = Found::default();
    for text in &group.programs {
        let insns = assemble(text).expect("it is assembly");
        let code: Vec<u8> = insns.iter().flat_map(|insn| insn.to_bytes()).collect();
        let ours = RawProgram::from(insns).checked(&[]);
        let expected = ours.and_then(|mut vm| vm.run()).expect("it runs").r0;
        found.programs += 1;
        let made = run(&code);
        let counter = match &made {
            Made::Result(result) if *result == expected => continue,
            Made::Result(_) => &mut found.differ,
            Made::Refused(_) => &mut found.refused,
            Made::Panicked => &mut found.panicked,
            Made::Ended(_) => &mut found.ended,
            Made::Endless => &mut found.endless,
        };
        *counter += 1;
        let what = match made {
            Made::Refused(_) => continue,
            Made::Result(result) => format!("r0 = {result:#x}"),
            made => made.to_string(),
        };
        let text = text.replace('\n', "; ");
        found
            .example
            .get_or_insert(format!("{what} for {expected:#x}: `{text}`"));
    }
    found
}

/// Started by the other test, in a process for each peer in a library.
#[test]
#[ignore = "only as a process of the test below"]
fn serve() {
    child::serve(&PEERS);
}

/// `docs/peers.md` has the table; `BLESS=1` writes it anew, and needs all peers. Columns of peers
/// that are not installed are not compared.
#[test]
fn the_page_has_the_table() {
    let bless = std::env::var_os("BLESS").is_some();
    for why in [UBPF, LLVMBPF].into_iter().filter_map(Library::missing) {
        assert!(!bless, "BLESS=1 writes all columns, but {why}");
        skip_part(Need::Peers, format_args!("not compared: {why}"));
    }
    let groups = groups();
    let programs: usize = groups.iter().map(|group| group.programs.len()).sum();
    eprintln!("{} instructions, {programs} programs", groups.len());
    let page = Page::read();
    let mut runners = PEERS.map(|peer| peer.runner());
    let mut rows = String::new();
    for group in groups {
        let found = runners.each_mut().map(|runner| {
            let run = runner.as_mut()?;
            Some(compare(&group, run))
        });
        rows += &page.row(&group.name, &found);
    }
    let table = page::table(&PEERS.map(|peer| peer.title), &rows);
    if bless {
        page.write(&table);
    } else {
        assert_eq!(page.table, table, "docs/peers.md: BLESS=1 writes it anew");
    }
}
