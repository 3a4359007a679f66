//! Uninitialised bytes that leave programs (`tests/objects/uninit.bpf.c`).

use std::sync::Arc;

use bpflab::harness::{EngineKind, Fallback, RanOn};
use bpflab::isa::assemble;
use bpflab::program::Program;
use bpflab::spec::ProgType;
use bpflab::vm::events::Event;
use bpflab::vm::{Leak, LeakTarget, Outcome, World};
use bpflab::{Object, Vm};

const OBJECT: &str = "tests/objects/uninit.bpf.o";

fn vm() -> Vm {
    let mut vm = Vm::new(Object::open(OBJECT).unwrap()).unwrap();
    vm.find_uninit(true);
    vm
}

fn run_on(vm: &mut Vm, program: &str, event: &Event) -> Outcome {
    vm.run(program, event).unwrap()
}

fn run(program: &str) -> Outcome {
    run_on(&mut vm(), program, &Event::bytes(vec![0; 64]))
}

/// The names of what left the program.
fn names(leak: &Leak) -> Vec<String> {
    leak.bytes.iter().map(ToString::to_string).collect()
}

const AFTER_COMM_LEN: &str = "3 bytes of padding after field `comm_len` of struct event (offset 9)";
const AFTER_PORT: &str = "6 bytes of padding after field `port` of struct event (offset 34)";
const AFTER_PROTO: &str = "3 bytes of padding after field `proto` of struct key (offset 1)";

/// The text of the line of C that sent the bytes.
fn line(leak: &Leak) -> &str {
    leak.source.as_ref().map_or("", |line| line.text.trim())
}

#[test]
fn a_records_padding_has_a_name_and_a_line() {
    let outcome = run("record_padding");
    let [leak] = &outcome.leaks[..] else {
        panic!("{:#?}", outcome.leaks);
    };
    assert_eq!(names(leak), [AFTER_COMM_LEN, AFTER_PORT]);
    assert_eq!((leak.to, leak.size), (LeakTarget::RingBuffer, 40));
    assert_eq!(line(leak), "bpf_ringbuf_submit(event, 0);");
    let text = leak.to_string();
    let (first, _) = text.split_once('\n').unwrap();
    assert_eq!(
        first,
        "program record_padding: 9 of the 40 bytes in a record of ring buffer `events` are \
         uninitialised"
    );
    assert!(
        text.contains("sent by bpf_ringbuf_submit at instruction 22\n  at "),
        "{text}"
    );
    assert!(
        text.contains("uninit.bpf.c:77:2: bpf_ringbuf_submit(event, 0);"),
        "{text}"
    );
    assert!(
        text.contains("reserved at ") && text.contains("bpf_ringbuf_reserve(&events"),
        "{text}"
    );
}

#[test]
fn fields_that_are_not_written_have_names() {
    let outcome = run("record_fields");
    let [leak] = &outcome.leaks[..] else {
        panic!("{:#?}", outcome.leaks);
    };
    let comm = "bytes 4 to 15 of field `comm` of struct event (offset 20)";
    assert_eq!(names(leak), [comm, AFTER_PORT]);
}

#[test]
fn what_stays_or_is_written_is_not_reported() {
    for program in ["record_clean", "bitfields_clean"] {
        let outcome = run(program);
        assert_eq!(outcome.returned(program), Some(0));
        assert_eq!(outcome.leaks, [], "{program}");
    }
    let outcome = run("update_fails");
    assert_eq!(outcome.returned("update_fails"), Some(1));
    assert_eq!(outcome.leaks, []);
}

#[test]
fn structures_on_the_stack_are_followed() {
    let outcome = run("perf_padding");
    assert_eq!(outcome.leaks.len(), 1);
    assert_eq!(names(&outcome.leaks[0]), [AFTER_COMM_LEN, AFTER_PORT]);
    assert_eq!(outcome.leaks[0].to, LeakTarget::PerfBuffer);
    // A copy by stores of 8 bytes, one leak for all.
    let outcome = run("value_copied");
    assert_eq!(outcome.leaks.len(), 1, "{:#?}", outcome.leaks);
    let leak = &outcome.leaks[0];
    assert_eq!(
        (leak.to, leak.map.as_deref()),
        (LeakTarget::MapValue, Some("slots"))
    );
    assert_eq!((leak.by.as_deref(), line(leak)), (None, "*value = event;"));
    assert_eq!(names(leak), [AFTER_COMM_LEN, AFTER_PORT]);
    // Through the frame and the registers of another function.
    let outcome = run("through_function");
    assert_eq!(names(&outcome.leaks[0]), [AFTER_COMM_LEN, AFTER_PORT]);
    // A callback wrote the fields.
    let outcome = run("in_callback");
    assert_eq!(outcome.leaks.len(), 1, "{:#?}", outcome.leaks);
    assert_eq!(names(&outcome.leaks[0]), [AFTER_PROTO]);
}

#[test]
fn keys_are_reported_for_each_line() {
    let outcome = run("key_padding");
    let seen: Vec<_> = outcome
        .leaks
        .iter()
        .map(|leak| (leak.by.as_deref(), names(leak)))
        .collect();
    let key = |by| (Some(by), vec![AFTER_PROTO.to_owned()]);
    assert_eq!(
        seen,
        [key("bpf_map_update_elem"), key("bpf_map_lookup_elem")]
    );
    assert_eq!(outcome.leaks[0].target(), "a key of map `by_key`");
}

#[test]
fn dynptrs_packets_and_user_memory() {
    let outcome = run("record_dynptr");
    assert_eq!(outcome.leaks.len(), 1, "{:#?}", outcome.leaks);
    assert_eq!(names(&outcome.leaks[0]), ["bytes 1 to 3", "bytes 8 to 11"]);

    let mut vm = vm();
    let outcome = run_on(&mut vm, "to_packet", &Event::packet(vec![0; 64]));
    assert_eq!(outcome.returned("to_packet"), Some(0));
    assert_eq!(outcome.leaks[0].to, LeakTarget::Packet);
    assert_eq!(names(&outcome.leaks[0]), ["bytes 1 to 3"]);
}

/// A kernel that is locked down lacks the helper, so this is no program of the object.
#[test]
fn user_memory() {
    let text = "r6 = *(u64 *)(r1 +0)\n*(u8 *)(r10 -8) = 6\n*(u32 *)(r10 -4) = 7\nr1 = r6\n\
                r2 = r10\nr2 += -8\nr3 = 8\ncall 36\nexit";
    let mut program = Program::new("to_user", ProgType::RawTracepoint, assemble(text).unwrap());
    program.license = "GPL".into();
    let mut vm = Vm::with_world(World::default());
    vm.find_uninit(true);
    vm.load_programs(&[], vec![Arc::new(program)]).unwrap();
    let user = 0x10_0000u64;
    vm.world().user().map(user, &[0; 8]);
    let outcome = run_on(&mut vm, "to_user", &Event::bytes(user.to_le_bytes()));
    assert_eq!(outcome.returned("to_user"), Some(0));
    assert_eq!(outcome.leaks[0].to, LeakTarget::UserMemory);
    assert_eq!(names(&outcome.leaks[0]), ["bytes 1 to 3"]);
    // A write that fails sends nothing.
    let outcome = run_on(&mut vm, "to_user", &Event::bytes(1u64.to_le_bytes()));
    assert_eq!(outcome.leaks, []);
}

#[test]
fn nothing_is_looked_for_unless_asked() {
    let mut vm = vm();
    let event = Event::bytes(vec![0; 64]);
    vm.set_engine(EngineKind::Interp);
    let mut on = run_on(&mut vm, "record_padding", &event);
    assert_eq!(on.runs[0].ran_on, RanOn::checked(Fallback::Uninit));
    vm.find_uninit(false);
    let off = run_on(&mut vm, "record_padding", &event);
    assert_eq!(off.runs[0].ran_on, RanOn::chosen(EngineKind::Interp));
    assert_eq!((off.leaks.len(), on.leaks.len()), (0, 1));
    // It changes no result.
    on.leaks.clear();
    assert_eq!(on, off);
}
