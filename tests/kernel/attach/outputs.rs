//! Programs' outputs, and the contents of their maps.

use std::sync::Arc;
use std::time::Duration;

use bpflab::kernel::LoadedMaps;
use bpflab::kernel::attach::{Attachment, attach};
use bpflab::kernel::outputs::{Contents, PerfBuffer, PrintkLines};
use bpflab::program::{MapDef, Program};
use bpflab::spec::{MapFlags, MapType, ProgType, UpdateFlags};
use bpflab::util::{Errno, MapId};

use super::rig::{attached, fire, is_there, loaded, pid_tgid, point, program};

const FIRST: MapId = MapId(0);
const SHORT: Option<Duration> = Some(Duration::from_millis(20));

/// Loads a program for this thread with its maps and attaches it.
fn with_maps(program: &Program) -> (LoadedMaps, Attachment) {
    let maps = LoadedMaps::create(&program.maps, None).unwrap();
    let attachment = attach(&loaded(program, &maps), &point()).unwrap();
    (maps, attachment)
}

/// Sends the system call's second argument, `size` bytes of it.
fn sending(call: &str, map: MapDef, size: u32) -> Arc<Program> {
    let body = format!(
        "r1 = *(u64 *)(r6 + 24)
         *(u64 *)(r10 - 8) = r1
         *(u64 *)(r10 - 16) = r1
         {call}
         r0 = 1"
    );
    let body = body.replace("SIZE", &size.to_string());
    program("sends", ProgType::Tracepoint, &[map], &body)
}

const RINGBUF_OUTPUT: &str = "
    r1 = map[idx:0]
    r2 = r10
    r2 += -16
    r3 = SIZE
    r4 = 0
    call bpf_ringbuf_output";

const PERF_OUTPUT: &str = "
    r1 = r6
    r2 = map[idx:0]
    r3 = 0xffffffff ll
    r4 = r10
    r4 += -16
    r5 = SIZE
    call bpf_perf_event_output";

fn number(record: &[u8]) -> u32 {
    u32::from_ne_bytes(record[..4].try_into().unwrap())
}

#[test]
fn a_ring_is_read_as_it_fills() {
    if !is_there() {
        return;
    }
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let program = sending(RINGBUF_OUTPUT, ring, 12);
    let (maps, _attachment) = with_maps(&program);
    let map = maps.map(FIRST).unwrap();
    let ring = map.ring().unwrap();
    assert_eq!(map.ring().unwrap_err(), Errno::EBUSY, "a second reader");
    assert_eq!(ring.wait(SHORT), Ok(false));
    // 24 bytes each, so that the ring of 4096 wraps many times.
    let mut seen = Vec::new();
    for round in 0..100u32 {
        let numbers = round * 10..round * 10 + 10;
        numbers.for_each(|number| fire(number, 1));
        assert_eq!(ring.wait(SHORT), Ok(true));
        assert_eq!(ring.filled(), 240);
        let count = ring.drain(|record| {
            assert_eq!(record.len(), 12);
            assert_eq!(ring.drain(|_| panic!("a reading inside")), 0);
            seen.push(number(record));
        });
        assert_eq!((count, ring.filled()), (10, 0));
    }
    assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    drop(ring);
    assert!(map.ring().is_ok(), "the next reader");
}

#[test]
fn a_full_ring_keeps_what_it_has() {
    if !is_there() {
        return;
    }
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 4096);
    let (maps, _attachment) = with_maps(&sending(RINGBUF_OUTPUT, ring, 12));
    let ring = maps.map(FIRST).unwrap().ring().unwrap();
    (0..1000).for_each(|number| fire(number, 1));
    let kept = 4096 / 24;
    let taken = ring.take();
    let expected: Vec<u32> = (0..u32::try_from(taken.len()).unwrap()).collect();
    assert!((kept - 1..=kept).contains(&taken.len()), "{}", taken.len());
    let numbers = taken.iter().map(|record| number(record));
    assert_eq!(numbers.collect::<Vec<_>>(), expected);
}

/// A reader in another thread, while records arrive as fast as possible.
#[test]
fn a_ring_is_read_from_another_thread() {
    if !is_there() {
        return;
    }
    const COUNT: u32 = 20_000;
    let ring = MapDef::new("ring", MapType::Ringbuf, 0, 0, 1 << 20);
    let (maps, _attachment) = with_maps(&sending(RINGBUF_OUTPUT, ring, 16));
    let ring = maps.map(FIRST).unwrap().ring().unwrap();
    let reader = std::thread::spawn(move || {
        let mut next = 0;
        while next < COUNT && ring.wait(Some(Duration::from_secs(5))).unwrap() {
            ring.drain(|record| {
                assert_eq!(number(record), next);
                next += 1;
            });
        }
        next
    });
    (0..COUNT).for_each(|number| fire(number, 1));
    assert_eq!(reader.join().unwrap(), COUNT);
}

#[test]
fn a_perf_buffer_is_read_and_gives_its_slots_back() {
    if !is_there() {
        return;
    }
    let array = MapDef::new("events", MapType::PerfEventArray, 4, 4, 0);
    let (maps, _attachment) = with_maps(&sending(PERF_OUTPUT, array, 12));
    let map = maps.map(FIRST).unwrap();
    let mut buffer = PerfBuffer::open(&map, 2).unwrap();
    assert!(!buffer.wait(SHORT).unwrap());
    for round in 0..10 {
        let numbers = round * 50..round * 50 + 50;
        numbers.clone().for_each(|number| fire(number, 1));
        assert!(buffer.wait(SHORT).unwrap());
        let mut seen = Vec::new();
        let count = buffer.drain(|_, record| {
            // Padded so that its length plus 4 is a multiple of 8.
            assert_eq!(record.len(), 12);
            seen.push(number(record));
        });
        seen.sort_unstable();
        assert_eq!((count, seen), (50, numbers.collect()));
    }
    assert_eq!(buffer.lost(), 0);
    // 8192 bytes per CPU hold some 340 records of 24 bytes; the thread may migrate.
    let fired = 10_000;
    (0..fired).for_each(|number| fire(number, 1));
    let mut kept = 0;
    buffer.drain(|_, _| kept += 1);
    assert!(kept >= 300, "{kept}");
    assert_eq!(buffer.lost(), u64::from(fired) - kept);
    drop(buffer);
    fire(1, 1);
    let mut again = PerfBuffer::open(&map, 1).unwrap();
    assert_eq!(again.drain(|_, _| ()), 0);
    let wrong = PerfBuffer::open(&map, 3).unwrap_err();
    assert_eq!(wrong.errno, Errno::EINVAL, "{wrong}");
}

/// Lines of this thread, including those that a program prints in a perf tracepoint.
#[test]
fn lines_are_heard_by_everyone_who_listens() {
    if !is_there() {
        return;
    }
    let body = "r1 = 0x6425206f6c6c6568 ll
         *(u64 *)(r10 - 16) = r1
         r1 = 0x0a
         *(u64 *)(r10 - 8) = r1
         r3 = *(u64 *)(r6 + 24)
         r1 = r10
         r1 += -16
         r2 = 10
         call bpf_trace_printk
         r0 = 1";
    let printing = program("prints", ProgType::Tracepoint, &[], body);
    let _attachment = attached(&printing, &point()).unwrap();
    let listeners = [PrintkLines::open().unwrap(), PrintkLines::open().unwrap()];
    (0..10).for_each(|number| fire(number, 1));
    let own = pid_tgid();
    for lines in &listeners {
        assert!(lines.wait(SHORT).unwrap());
        let mut heard = Vec::new();
        lines.drain(|line| {
            if u64::from(line.pid) << 32 | u64::from(line.tid) == own {
                assert!(line.time > 0 && !line.comm.is_empty());
                heard.push(String::from_utf8(line.text.to_vec()).unwrap());
            }
        });
        let expected: Vec<_> = (0..10).map(|number| format!("hello {number}")).collect();
        assert_eq!(heard, expected);
        assert_eq!(lines.lost().unwrap(), 0);
    }
}

#[test]
fn maps_are_read_whole() {
    if !is_there() {
        return;
    }
    let defs = [
        MapDef::new("hash", MapType::Hash, 4, 8, 5000),
        MapDef::new("array", MapType::Array, 4, 4, 1000),
        MapDef::new("percpu", MapType::PercpuHash, 4, 4, 100),
        MapDef::new("trie", MapType::LpmTrie, 8, 4, 100).with_flags(MapFlags::NO_PREALLOC),
        MapDef::new("empty", MapType::Hash, 4, 8, 10),
        MapDef::new("queue", MapType::Queue, 0, 8, 10),
    ];
    let maps = LoadedMaps::create(&defs, None).unwrap();
    let map = |index| maps.map(MapId(index)).unwrap();
    let any = UpdateFlags::empty();
    for key in 0..4321u32 {
        let value = u64::from(key) * 3;
        map(0)
            .update(&key.to_ne_bytes(), &value.to_ne_bytes(), any)
            .unwrap();
    }
    let hash = Contents::read(&map(0)).unwrap();
    let mut read: Vec<_> = hash
        .iter()
        .map(|(key, value)| (number(key), u64::from_ne_bytes(value.try_into().unwrap())))
        .collect();
    read.sort_unstable();
    let expected = (0..4321).map(|key| (key, u64::from(key) * 3));
    assert_eq!(read, expected.collect::<Vec<_>>());

    map(1).update(&7u32.to_ne_bytes(), &[1; 4], any).unwrap();
    let array = Contents::read(&map(1)).unwrap();
    let filled: Vec<_> = array.iter().filter(|(_, value)| *value != [0; 4]).collect();
    assert_eq!(
        (array.len(), filled),
        (1000, vec![(&[7, 0, 0, 0][..], &[1; 4][..])])
    );

    let cpus = map(2).value_size() / 8;
    let values: Vec<u8> = (0..cpus)
        .flat_map(|cpu| [cpu.to_le_bytes()[0]; 8])
        .collect();
    map(2).update(&[1; 4], &values, any).unwrap();
    let percpu = Contents::read(&map(2)).unwrap();
    let (key, of_cpus) = percpu.per_cpu(4).next().unwrap();
    assert_eq!(key, [1; 4]);
    for (cpu, value) in of_cpus.enumerate() {
        assert_eq!(value, [cpu.to_le_bytes()[0]; 4]);
    }

    map(3)
        .update(&[32, 0, 0, 0, 10, 0, 0, 1], &[5; 4], any)
        .unwrap();
    let trie = Contents::read(&map(3)).unwrap();
    assert_eq!(trie.iter().next().unwrap().1, [5; 4]);
    assert!(Contents::read(&map(4)).unwrap().is_empty());
    assert!(Contents::read(&map(5)).is_err(), "a queue has no keys");
}
