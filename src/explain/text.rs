//! Finds the verifier's logs in a text: takes away what tools, terminals and `dmesg` add.

use crate::util::Errno;

/// One program's log in a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pasted {
    /// The program's name, if the tool that printed the log says so.
    pub program: Option<String>,
    /// The error number, if the tool says so.
    pub errno: Option<Errno>,
    /// The line of the text at which the log begins, from 1.
    pub line: usize,
    /// The lines of the log, without prefixes.
    pub(super) lines: Vec<String>,
}

impl Pasted {
    /// The log of one program, as the kernel wrote it.
    #[must_use]
    pub fn of_load(program: &str, errno: Option<Errno>, log: &str) -> Self {
        Self {
            program: Some(program.to_owned()),
            errno,
            line: 1,
            lines: log.lines().map(str::to_owned).collect(),
        }
    }

    /// Whether there is anything of a verifier's log in it.
    fn is_log(&self) -> bool {
        self.lines.iter().any(|line| is_insn(line) || is_end(line)) || self.has_known_error()
    }

    /// Whether a line is an error that has advice, so that one line alone can be explained.
    fn has_known_error(&self) -> bool {
        let lines = self.lines.iter();
        let mut lines = lines.map(|line| super::older::modern(line));
        lines.any(|line| crate::verifier::diagnose::has_advice(&line))
    }
}

/// The logs in a text, in its order.
#[must_use]
pub fn logs(text: &str) -> Vec<Pasted> {
    let lines: Vec<String> = text.lines().map(without_escapes).collect();
    let width = prefix_width(&lines);
    let mut all = Vec::new();
    let mut log = Pasted::default();
    // What a tool says before a log is about the next one, what it says after it about the last.
    let mut ended = false;
    for (at, line) in lines.iter().enumerate() {
        let line = bare(line.get(width..).unwrap_or(line));
        let said = Said::of(line);
        if let Some(said) = said {
            let begins = said.begins && (!log.lines.is_empty() || ended);
            let other = ended && said.program.is_some() && said.program != log.program;
            if begins || other {
                finish(&mut log, &mut all);
                ended = false;
            }
            log.program = said.program.or(log.program.take());
            log.errno = log.errno.or(said.errno);
            ended |= said.ends;
            for part in said.log {
                add(&mut log, at, part);
            }
            continue;
        }
        if line.is_empty() && log.lines.is_empty() {
            continue;
        }
        if ended {
            if !(is_insn(line) || is_start(line)) {
                continue;
            }
            finish(&mut log, &mut all);
        }
        add(&mut log, at, line);
        ended = is_end(line);
    }
    finish(&mut log, &mut all);
    all
}

fn add(log: &mut Pasted, at: usize, line: &str) {
    if log.lines.is_empty() {
        log.line = at + 1;
    }
    log.lines.push(line.to_owned());
}

fn finish(log: &mut Pasted, all: &mut Vec<Pasted>) {
    let log = std::mem::take(log);
    if log.is_log() {
        all.push(log);
    }
}

/// What a line says that is a tool's own.
#[derive(Default)]
struct Said<'l> {
    begins: bool,
    ends: bool,
    program: Option<String>,
    errno: Option<Errno>,
    /// Lines of the log that the tool's line contains.
    log: Vec<&'l str>,
}

impl<'l> Said<'l> {
    fn of(line: &'l str) -> Option<Self> {
        let mut said = Self::default();
        if let Some(rest) = line.strip_prefix("libbpf: ") {
            said.program = between(rest, "prog '", "'").map(str::to_owned);
            said.begins =
                rest.contains("BEGIN PROG LOAD LOG") || rest.contains("-- BEGIN DUMP LOG");
            said.ends = rest.contains("END PROG LOAD LOG") || rest.contains("-- END LOG");
            said.errno = errno(rest);
            return Some(said);
        }
        if line.contains("-- BEGIN PROG LOAD LOG --") || line.contains("-- END PROG LOAD LOG --") {
            said.begins = line.contains("BEGIN");
            said.ends = !said.begins;
            return Some(said);
        }
        // aya: the log follows in the same line.
        if let Some((before, rest)) = line.split_once("Verifier output: ") {
            said.begins = true;
            said.errno = errno(before);
            said.log = vec![rest];
            return Some(said);
        }
        // cilium/ebpf: `program NAME: load program: permission denied:`, then the log's lines; or
        // the last lines of the log in one, with the number of those left out.
        if let Some((before, rest)) = line.split_once("load program: ") {
            said.begins = true;
            said.program = between(before, "program ", ":").map(str::to_owned);
            said.errno = errno(rest);
            let rest = rest.split_once(':').map_or("", |(_, rest)| rest.trim());
            let rest = rest
                .split_once(" (")
                .filter(|(_, omitted)| omitted.contains("omitted)"))
                .map_or(rest, |(rest, _)| rest);
            let at = rest.rfind(": R").filter(|_| is_insn(rest));
            said.log = match at {
                Some(at) => vec![&rest[..at], &rest[at + 2..]],
                None => vec![rest],
            };
            said.log.retain(|line| !line.is_empty());
            return Some(said);
        }
        let own = [
            "Error: ",
            "Caused by:",
            "error: ",
            "thread '",
            "note: run with",
            "level=",
        ];
        own.iter().any(|word| line.starts_with(word)).then(|| {
            said.errno = errno(line);
            said
        })
    }
}

/// The error number that a tool's line names.
fn errno(line: &str) -> Option<Errno> {
    const TEXTS: [(&str, Errno); 5] = [
        ("permission denied", Errno::EACCES),
        ("invalid argument", Errno::EINVAL),
        ("argument list too long", Errno::E2BIG),
        ("operation not permitted", Errno::EPERM),
        ("no such file or directory", Errno::ENOENT),
    ];
    let failed = line
        .rsplit_once(": -")
        .and_then(|(_, number)| number.trim().parse().ok());
    let code = || between(line, "os error ", ")").and_then(|number| number.parse().ok());
    let lower = line.to_lowercase();
    let text = || {
        TEXTS
            .iter()
            .find(|(text, _)| lower.contains(text))
            .map(|(_, errno)| *errno)
    };
    failed.or_else(code).map(Errno).or_else(text)
}

fn between<'l>(line: &'l str, from: &str, to: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(from)?;
    rest.split_once(to).map(|(name, _)| name)
}

/// A line without ANSI escapes and the carriage return at its end.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            // A control sequence ends with a letter.
            '\x1b' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(char::is_ascii_alphabetic);
                }
            }
            '\r' => {}
            c => plain.push(c),
        }
    }
    plain
}

/// A line without indentation, frames, marks of quotations and the time that `dmesg` prints.
fn bare(line: &str) -> &str {
    let mut line = line.trim();
    loop {
        let rest = line
            .strip_prefix(['|', '│', '>'])
            .unwrap_or(line)
            .trim_start();
        let rest = rest
            .strip_prefix('[')
            .map_or(rest, |inside| match inside.split_once(']') {
                Some((time, rest)) if is_time(time) => rest.trim_start(),
                _ => rest,
            });
        if rest == line {
            return line;
        }
        line = rest;
    }
}

fn is_time(text: &str) -> bool {
    text.contains('.')
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || c == '.' || c == ' ')
}

/// The width of a prefix that most lines with an instruction have, such as a logger's time and
/// level.
fn prefix_width(lines: &[String]) -> usize {
    let mut widths = std::collections::BTreeMap::new();
    for line in lines {
        if let Some(at) = insn_at(line) {
            *widths.entry(at).or_insert(0_usize) += 1;
        }
    }
    let common = widths.iter().max_by_key(|(_, count)| **count);
    match common {
        Some((width, count)) if *width > 0 && *count > 1 && !widths.contains_key(&0) => *width,
        _ => 0,
    }
}

/// Where in a line an instruction is, `3: (b7) r0 = 0`. Lines of the precision's backtracking
/// repeat instructions, and don't count.
fn insn_at(line: &str) -> Option<usize> {
    let open = line.match_indices(": (").map(|(at, _)| at);
    let mut starts = open.filter_map(|at| {
        let before = &line[..at];
        let start = before
            .rfind(|c: char| !c.is_ascii_digit())
            .map_or(0, |at| at + 1);
        let is_one = is_insn(&line[start..]) && !before.ends_with(|c: char| !c.is_ascii_digit());
        let again = before[..start].ends_with("before ");
        (is_one && !again && before.is_char_boundary(start)).then_some(start)
    });
    starts.next()
}

/// Whether a line begins with an instruction.
pub(super) fn is_insn(line: &str) -> bool {
    insn(line).is_some()
}

/// The number, opcode and text of a line with an instruction.
pub(crate) fn insn(line: &str) -> Option<(u32, u8, &str)> {
    let (number, rest) = line.split_once(": (")?;
    let (opcode, text) = rest.split_once(") ")?;
    if opcode.len() != 2 {
        return None;
    }
    let opcode = u8::from_str_radix(opcode, 16).ok()?;
    Some((number.parse().ok()?, opcode, text))
}

/// Whether a log may begin with this line.
fn is_start(line: &str) -> bool {
    [
        "func#0 @",
        "0: R1=",
        "; ",
        "arg#0 ",
        "Live regs",
        "reg type unsupported",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Whether this is the statistics' last line.
pub(super) fn is_end(line: &str) -> bool {
    line.starts_with("processed ") && line.contains(" insns (limit ")
}
