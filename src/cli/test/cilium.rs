//! Tests in the form of Cilium's `bpf/tests`: programs in sections `tc/test/NAME/pktgen`, `…/setup`
//! and `…/check`.
//!
//! `pktgen` makes a packet, `setup` runs what is tested and returns its action, `check` looks at
//! the packet, which the action now precedes in 4 bytes. Its return value is the result, and the
//! map `suite_result_map` has the messages, as protocol buffers (Cilium's `bpf/tests/common.h`,
//! `bpf/tests/bpftest/bpf_test.go` and `trf.proto`). The tests of an object share its maps and run
//! in the order of their names.

use std::collections::BTreeMap;
use std::path::Path;

use super::messages::{Messages, TestResult};
use super::run::Ran;
use crate::btf::Kind;
use crate::cli::exit::{Exit, Failure};
use crate::cli::run::{SetupArguments, Uninit, choose_engine, machine};
use crate::harness::{EngineKind, Vm};
use crate::object::Object;
use crate::spec::{ContextKind, ProgType, UpdateFlags};
use crate::vm::events::Event;
use crate::vm::{Leak, Outcome};

/// The map of the messages.
const RESULTS: &str = "suite_result_map";
/// A map with the metadata of a packet, for tests that mock it.
const METADATA: &str = "mock_skb_meta_map";
/// Bytes of the first packet: a page without the room that the kernel's test run keeps.
const PACKET: usize = 4096 - 256 - 320;
/// The members of `struct __sk_buff` that a test run takes and gives
/// (`convert___skb_to_skb`, `net/bpf/test_run.c`).
const KEPT: &[&str] = &[
    "mark",
    "priority",
    "ifindex",
    "tstamp",
    "cb[0]",
    "cb[1]",
    "cb[2]",
    "cb[3]",
    "cb[4]",
    "gso_segs",
    "gso_size",
    "wire_len",
    "hwtstamp",
    "ingress_ifindex",
];

/// A program with this declaration tag is an entry of a map of programs: `tail:MAP/INDEX`.
const TAIL: &str = "tail:";

/// What `check` returns, and the status of a part of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Error,
    Pass,
    Fail,
    Skip,
}

impl Status {
    /// The statuses of `trf.proto`: from 100 on, in older versions from 0 on.
    const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 | 100 => Self::Error,
            1 | 101 => Self::Pass,
            2 | 102 => Self::Fail,
            3 | 103 => Self::Skip,
            _ => return None,
        })
    }

    /// Whether `pktgen` or `setup` says so: smaller numbers are actions.
    const fn is_failed_setup(number: u32) -> bool {
        matches!(number, 100 | 102)
    }
}

/// The tests of an object.
#[derive(Debug)]
pub(super) struct CiliumTests {
    /// By name, in the order in which they run.
    tests: BTreeMap<String, Programs>,
}

/// The names of a test's programs.
#[derive(Debug, Default)]
struct Programs {
    pktgen: Option<String>,
    setup: Option<String>,
    check: Option<String>,
}

impl CiliumTests {
    /// The tests of an object; none if it has no such sections.
    ///
    /// # Errors
    /// Two programs for the same part of a test, or a test without `check`.
    pub fn of(object: &Object) -> Result<Option<Self>, Failure> {
        let mut tests: BTreeMap<String, Programs> = BTreeMap::new();
        let programs = object.entries().iter();
        let programs = programs.map(|entry| (entry.section(), entry.name()));
        for (section, program) in programs.chain(object.static_functions()) {
            let parts: Vec<_> = section.split('/').collect();
            let &[_, "test", name, part] = parts.as_slice() else {
                continue;
            };
            let programs = tests.entry(name.to_owned()).or_default();
            let place = match part {
                "pktgen" => &mut programs.pktgen,
                "setup" => &mut programs.setup,
                "check" => &mut programs.check,
                _ => continue,
            };
            if let Some(other) = place.replace(program.to_owned()) {
                return Err(Failure::bad(format!(
                    "test '{name}' has two programs for {part}: {other} and {program}"
                )));
            }
        }
        match tests.iter().find(|(_, programs)| programs.check.is_none()) {
            Some((name, _)) => Err(Failure::bad(format!(
                "test '{name}' has no program in a section TYPE/test/{name}/check"
            ))),
            None if tests.is_empty() => Ok(None),
            None => Ok(Some(Self { tests })),
        }
    }

    /// The names of the tests.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(String::as_str)
    }

    /// A machine with all programs of the tests.
    ///
    /// # Errors
    /// The object can't be loaded, or a program is not accepted.
    pub fn load(
        &self,
        file: &Path,
        setup: &SetupArguments,
        engine: EngineKind,
    ) -> Result<Vm, Failure> {
        let mut object = setup.kernel.open(file)?;
        set_types(&mut object)?;
        // Others have no test run with a packet, and Cilium leaves them out, too.
        let others = object.entries().iter().filter(|entry| {
            !matches!(
                entry.prog_type(),
                Some(ProgType::SchedCls | ProgType::SchedAct | ProgType::Xdp)
            )
        });
        let others: Vec<_> = others.map(|entry| entry.name().to_owned()).collect();
        for name in others {
            object.entry_mut(&name)?.set_autoload(false);
        }
        let tails = tails(&object)?;
        let mut vm = machine(object, &[], setup)?;
        match engine {
            EngineKind::Checked => {
                vm.set_engine(engine);
            }
            engine => choose_engine(&mut vm, engine, &[])?,
        }
        for Tail {
            map,
            index,
            program,
        } in tails
        {
            let program = vm.program_handle(&program)?;
            vm.map(&map)?.set_program(index, program)?;
        }
        Ok(vm)
    }

    /// Runs a test.
    ///
    /// # Errors
    /// A fault, or no result that a test has.
    pub fn run(&self, vm: &mut Vm, name: &str, uninit: Uninit) -> Result<Ran, Failure> {
        let Some(programs) = self.tests.get(name) else {
            return Ok(Ran::default());
        };
        let mut leaks = Vec::new();
        let mut ran = programs.run(vm, &mut leaks)?;
        ran.leaked(&leaks, uninit);
        Ok(ran)
    }
}

/// Sets the types of sections such as `tc/tail`, of which libbpf knows only the first part. Static
/// functions in them become programs, which they are for Cilium's loader.
fn set_types(object: &mut Object) -> Result<(), Failure> {
    let typed = |section: &str| match section.split_once('/')?.0 {
        "tc" => Some(ProgType::SchedCls),
        "xdp" => Some(ProgType::Xdp),
        _ => None,
    };
    let untyped = object
        .untyped()
        .map(|entry| (entry.section(), entry.name()));
    let found: Vec<_> = untyped
        .chain(object.static_functions())
        .filter_map(|(section, name)| Some((name.to_owned(), typed(section)?)))
        .collect();
    for (name, prog_type) in found {
        object.add_entry(&name, prog_type)?;
    }
    Ok(())
}

impl Programs {
    /// Runs the programs of a test; `leaks` gets the uninitialised bytes that left the one that is
    /// tested.
    fn run(&self, vm: &mut Vm, leaks: &mut Vec<Leak>) -> Result<Ran, Failure> {
        let mut packet = vec![0; PACKET];
        let mut context = Vec::new();
        let mut action = None;
        if let Some(program) = &self.pktgen {
            let (returned, after) = run(vm, program, packet, &context)?;
            if Status::is_failed_setup(returned) {
                return Ok(Ran::failed(format!("{program} returned {returned}")));
            }
            context = kept(&after);
            packet = left(after);
        }
        if let Some(program) = &self.setup {
            let (returned, mut after) = run(vm, program, packet, &context)?;
            leaks.append(&mut after.leaks);
            if Status::is_failed_setup(returned) {
                return Ok(Ran::failed(format!("{program} returned {returned}")));
            }
            context = kept(&after);
            action = Some(returned);
            packet = [returned.to_le_bytes().to_vec(), left(after)].concat();
        }
        let Some(program) = &self.check else {
            return Ok(Ran::default());
        };
        let (returned, _) = run(vm, program, packet, &context)?;
        let mut ran = result(returned, &taken(vm)?)?;
        if let Some(action) = action.filter(|_| !ran.differences.is_empty()) {
            ran.differences.push(format!("setup returned {action}"));
        }
        Ok(ran)
    }
}

/// Runs a program on a packet; gives its return value, and what it left.
fn run(
    vm: &mut Vm,
    program: &str,
    packet: Vec<u8>,
    context: &[(&str, u64)],
) -> Result<(u32, Outcome), Failure> {
    let mut event = Event::packet(packet);
    for (field, value) in context {
        event = event.set(field, *value)?;
    }
    let mut outcome = vm.run(program, &event)?;
    let returned = outcome.runs.pop().map_or(0, |run| run.returned());
    Ok((returned, outcome))
}

/// The packet that a test run gives back: that of XDP with its metadata
/// (`bpf_prog_test_run_xdp`, `net/bpf/test_run.c`).
fn left(outcome: Outcome) -> Vec<u8> {
    let packet = outcome.packet.unwrap_or_default();
    match outcome.context_kind {
        Some(ContextKind::XdpMd) => [outcome.metadata, packet].concat(),
        _ => packet,
    }
}

/// The members of a context that the next program gets.
fn kept(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    let kept = KEPT
        .iter()
        .filter_map(|field| Some((*field, outcome.field(field)?)));
    kept.filter(|(_, value)| *value != 0).collect()
}

/// The messages of a test. They and the mocked metadata are cleared for the next.
fn taken(vm: &Vm) -> Result<Vec<u8>, Failure> {
    let key = [0; 4];
    let value = vm.map(RESULTS)?.get_bytes(&key)?.unwrap_or_default();
    let both = [vm.map(RESULTS).ok(), vm.map(METADATA).ok()];
    for map in both.into_iter().flatten() {
        let zeros = vec![0; map.def().value_size as usize];
        map.set_bytes(&key, &zeros, UpdateFlags::empty())?;
    }
    Ok(value)
}

/// The result of a test, from what `check` returned and from its messages.
fn result(returned: u32, bytes: &[u8]) -> Result<Ran, Failure> {
    let messages =
        Messages::read(bytes).map_err(|error| Failure::bad(format!("{RESULTS}: {error}")))?;
    let mut ran = Ran::default();
    for TestResult { name, status, log } in &messages.tests {
        if !matches!(
            Status::from_number(*status),
            Some(Status::Pass | Status::Skip)
        ) {
            let said = match log.is_empty() {
                true => "failed".to_owned(),
                false => log.join("\n"),
            };
            ran.differences.push(format!("{name}: {said}"));
        }
    }
    match Status::from_number(returned) {
        Some(Status::Pass) => {}
        Some(Status::Skip) => ran.skipped = Some("the test skips itself".to_owned()),
        Some(Status::Fail) => {
            ran.differences.extend(messages.log);
            if ran.differences.is_empty() {
                ran.differences.push("failed without a message".to_owned());
            }
        }
        Some(Status::Error) | None => {
            let text = format!("check returned {returned}: neither passed nor failed");
            return Err(Failure::with(Exit::No, text));
        }
    }
    Ok(ran)
}

/// An entry of a map of programs.
struct Tail {
    map: String,
    index: u32,
    program: String,
}

/// The entries of maps that declaration tags of programs name.
fn tails(object: &Object) -> Result<Vec<Tail>, Failure> {
    let mut tails = Vec::new();
    let Some(btf) = object.btf() else {
        return Ok(tails);
    };
    for function in btf.own_types().filter(|ty| ty.kind() == Kind::Func) {
        let tags = btf.decl_tags(function.id());
        for place in tags.filter_map(|tag| tag.name().strip_prefix(TAIL)) {
            let (program, known) = (function.name(), place.split_once('/'));
            let known = known.and_then(|(map, index)| Some((map, index.parse().ok()?)));
            let (map, index) = known.ok_or_else(|| {
                Failure::bad(format!(
                    "function '{program}': tag '{TAIL}{place}' is not {TAIL}MAP/INDEX"
                ))
            })?;
            tails.push(Tail {
                map: map.to_owned(),
                index,
                program: program.to_owned(),
            });
        }
    }
    Ok(tails)
}
