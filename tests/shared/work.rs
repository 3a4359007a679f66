//! The recorded command: this test's own binary, run again with a task. Nothing needs to be
//! installed, and it does the same each time.

#[path = "marker.rs"]
mod marker;

use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable: the task.
const WORK: &str = "BPFLAB_LIVE_WORK";

/// A command that does a task so many times.
pub fn command(work: &str, count: u64) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // Arguments of libtest, to run one test only.
    command
        .args([
            "--exact",
            "work::does_what_it_is_told",
            "--ignored",
            "--test-threads=1",
        ])
        .env(WORK, format!("{work} {count}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
#[ignore = "what the other tests run"]
fn does_what_it_is_told() {
    let Ok(work) = std::env::var(WORK) else {
        eprintln!("nothing to do: {WORK} is not set");
        return;
    };
    let (what, count) = work.rsplit_once(' ').unwrap();
    let count: u64 = count.parse().unwrap();
    match what.split_once(' ').unwrap_or((what, "")) {
        ("writes", _) => writes(count),
        ("paced", rate) => paced(count, rate.parse().unwrap()),
        ("datagrams", port) => datagrams(count, port.parse().unwrap()),
        ("frames", device) => frames(count, device),
        ("processes", _) => processes(count),
        ("threads", _) => threads(count),
        ("reads", path) => reads(count, path),
        ("opens", disk) => opens(count, disk),
        ("randoms", _) => randoms(count),
        ("requests", _) => requests(count),
        ("hops", _) => hops(count),
        ("asks", _) => asks(count),
        ("grouped", folder) => {
            let me = std::process::id().to_string();
            std::fs::write(format!("{folder}/cgroup.procs"), me).unwrap();
            datagrams(count, 9);
        }
        ("races", _) => races(count),
        ("milliseconds", _) => burn(Duration::from_millis(count)),
        (other, _) => panic!("nobody knows how to do '{other}'"),
    }
}

/// Writes of all sizes to `/dev/null`.
fn writes(count: u64) {
    use std::io::Write;
    let mut sink = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .unwrap();
    let bytes = vec![0; 1 << 16];
    for number in 0..count {
        let len = 1usize << (number % 17);
        sink.write_all(&bytes[..len]).unwrap();
    }
}

/// Writes at a rate per second, one after the other.
fn paced(count: u64, rate: f64) {
    use std::io::Write;
    let mut sink = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .unwrap();
    let start = Instant::now();
    for number in 0..count {
        let due = Duration::from_secs_f64(number as f64 / rate);
        while start.elapsed() < due {
            std::hint::spin_loop();
        }
        sink.write_all(&[0]).unwrap();
    }
}

/// Datagrams to a port without a listener: the kernel drops them.
fn datagrams(count: u64, port: u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..count {
        // The ICMP error for the previous one makes every second send fail.
        let _ = socket.send_to(&number.to_le_bytes(), ("127.0.0.1", port));
    }
}

/// Frames with datagrams, straight out of a device.
#[expect(unsafe_code, reason = "the standard library has no such sockets")]
fn frames(count: u64, device: &str) {
    let name = std::ffi::CString::new(device).unwrap();
    // From 10.9.8.1, port 1000, to port 9 of 10.9.8.2.
    const HEADERS: [u8; 42] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 0, // Ethernet
        0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 8, 1, 10, 9, 8, 2, // IPv4
        0x3, 0xe8, 0, 9, 0, 16, 0, 0, // UDP
    ];
    // SAFETY: the calls take numbers, a text that ends with a zero byte, and structures and bytes
    // that they read, whose sizes are given.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        let mut place: libc::sockaddr_ll = std::mem::zeroed();
        place.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
        place.sll_ifindex = i32::try_from(libc::if_nametoindex(name.as_ptr())).unwrap();
        let len = u32::try_from(size_of_val(&place)).unwrap();
        assert_eq!(libc::bind(socket, (&raw const place).cast(), len), 0);
        for number in 0..count {
            let frame = [HEADERS.as_slice(), &number.to_le_bytes()].concat();
            libc::send(socket, frame.as_ptr().cast(), frame.len(), 0);
        }
        libc::close(socket);
    }
}

/// What `processes` starts.
pub const PROCESS: &str = "/bin/true";

/// Processes that do nothing.
fn processes(count: u64) {
    for _ in 0..count {
        let status = Command::new(PROCESS).status().unwrap();
        assert!(status.success());
    }
}

/// Two threads that wake each other.
fn threads(count: u64) {
    let (there, away) = std::sync::mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        scope.spawn(move || away.into_iter().sum::<u64>());
        for number in 0..count {
            there.send(number).unwrap();
        }
        drop(there);
    });
}

/// Reads of a page that bypass the page cache.
fn reads(count: u64, path: &str) {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::FileExt;
    const PAGE: usize = 4096;
    let options = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .clone();
    let mut file = options.open(path).unwrap();
    let len = file.seek(SeekFrom::End(0)).unwrap();
    let pages = len / PAGE as u64;
    // Direct reads need an aligned page of memory.
    let mut room = vec![0; 2 * PAGE];
    let start = room.as_ptr().align_offset(PAGE);
    for number in 0..count {
        let page = number * 7919 % pages;
        let room = &mut room[start..start + PAGE];
        file.read_exact_at(room, page * PAGE as u64).unwrap();
    }
}

/// Opens and reads files, with pauses, and a little of a disk if there is one.
fn opens(count: u64, disk: &str) {
    if !disk.is_empty() {
        reads(count / 16 + 1, disk);
    }
    use std::io::Read;
    let mut room = vec![0; 1 << 16];
    for number in 0..count {
        let mut file = std::fs::File::open("/dev/zero").unwrap();
        file.read_exact(&mut room[..1 << (number % 17)]).unwrap();
        if number % 16 == 0 {
            std::thread::sleep(Duration::from_micros(10));
        }
    }
}

/// Reads of random bytes.
fn randoms(count: u64) {
    use std::io::Read;
    let mut file = std::fs::File::open("/dev/urandom").unwrap();
    let mut room = [0; 64];
    for number in 0..count {
        let len = usize::try_from(number % 64).unwrap() + 1;
        file.read_exact(&mut room[..len]).unwrap();
    }
}

/// Calls of a function for uprobes, between two USDT probes.
fn requests(count: u64) {
    for number in 0..count {
        marker::request_start(number, c"/index");
        std::hint::black_box(handle_request(number, c"/index".as_ptr()));
        marker::request_done(number, if number % 10 == 0 { 500 } else { 200 });
    }
}

/// Calls of `lseek` with pseudo-random numbers.
fn seeks(count: u64, mut number: u64, mut before: impl FnMut(u64)) {
    use std::io::{Seek, SeekFrom};
    let mut file = std::fs::File::open("/dev/null").unwrap();
    for at in 0..count {
        before(at);
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        file.seek(SeekFrom::Start(number >> 1)).unwrap();
    }
}

/// The same from two threads at once, each on a CPU of its own.
fn races(count: u64) {
    let start = std::sync::Barrier::new(2);
    let seek = |cpu, number| {
        go_to(cpu);
        start.wait();
        seeks(count, number, |_| ());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| seek(0, 1 << 40));
        seek(1, 3 << 50);
    });
}

/// The same from one thread that moves between CPUs.
fn hops(count: u64) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let hop = |at: u64| {
        if at.is_multiple_of(5) {
            go_to(usize::try_from(at / 5).unwrap() % cpus);
        }
    };
    seeks(count, 5 << 45, hop);
}

/// Asks for its process group, of which programs at the hook refuse every third call.
#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn asks(count: u64) {
    let id = libc::pid_t::try_from(std::process::id()).unwrap();
    // SAFETY: the call takes a number.
    let refused = (0..count).filter(|_| unsafe { libc::getpgid(id) } == -1);
    assert_eq!(u64::try_from(refused.count()).unwrap(), count / 3);
}

/// Moves this thread to a CPU, if it may run there.
#[expect(unsafe_code, reason = "no crate of the tests does this")]
fn go_to(cpu: usize) {
    // SAFETY: a set of CPUs is plain bits, which the call reads.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// A stand-in for a server's request handler.
#[expect(unsafe_code, reason = "no other function has this name")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn handle_request(id: u64, path: *const std::ffi::c_char) -> u64 {
    std::hint::black_box((id, path));
    id.wrapping_mul(31)
}

/// Computes for a while.
fn burn(time: Duration) {
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed() < time {
        for number in 0..1000 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
    }
}
