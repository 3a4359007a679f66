//! Formats compared with Linux 6.18: each row was run there with `bpf_trace_vprintk` and four
//! arguments.

use super::super::testing::Bench;
use super::*;

/// Placeholder for the address of `"hello"` in kernel memory, 32 bytes with its zeros.
const S: u64 = 0xfeed;

const fn n(number: i64) -> u64 {
    number.cast_unsigned()
}

/// Format, arguments (the rest are 0), text; `None` is `EINVAL`.
type Row = (&'static [u8], &'static [u64], Option<&'static [u8]>);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    (b"plain", &[], Some(b"plain")),
    (b"%d|%i|%u", &[n(-1), n(-2), n(-3)], Some(b"-1|-2|4294967293")),
    (b"%x %X", &[0xdeadbeef, 0xabcdef], Some(b"deadbeef ABCDEF")),
    (b"%ld %lu %lx", &[n(-5), n(-5), n(-5)], Some(b"-5 18446744073709551611 fffffffffffffffb")),
    (b"%lld %llu %llX", &[n(-5), n(-5), n(-5)], Some(b"-5 18446744073709551611 FFFFFFFFFFFFFFFB")),
    (b"%5d|%-5d|%05d|%+d", &[42, 42, 42, 42], Some(b"   42|42   |00042|+42")),
    (b"% d|%+5d|%-+5d|%05d", &[42, 42, 42, n(-42)], Some(b" 42|  +42|+42  |-0042")),
    (b"%08x|%-8x|%8X", &[171, 171, 171], Some(b"000000ab|ab      |      AB")),
    (b"%10s|%-10s|%s", &[S, S, S], Some(b"     hello|hello     |hello")),
    (b"%3s|%010s", &[S, S], Some(b"hello|     hello")),
    (b"%c%c%c", &[65, 66, 67], Some(b"ABC")),
    (b"%5c|%-5c|", &[65, 66], Some(b"    A|B    |")),
    (b"%05c|%+c", &[65, 66], Some(b"    A|B")),
    (b"100%%", &[], Some(b"100%")),
    (b"%%%d%%", &[7], Some(b"%7%")),
    (b"%5%", &[], None),
    (b"%", &[], None),
    (b"%d%", &[1], None),
    (b"%p%", &[1], None),
    (b"%p%d", &[0, 5], Some(b"00000000000000005")),
    (b"%p.", &[0], Some(b"0000000000000000.")),
    (b"%p\n", &[0], Some(b"0000000000000000\n")),
    (b"%pz", &[0], None),
    (b"%px", &[0xffff888000001234], Some(b"ffff888000001234")),
    (b"%px|%20px|%-20px|%5px", &[4660, 4660, 4660, 4660], Some(b"0000000000001234|                1234|1234                | 1234")),
    (b"%020px|", &[4660], Some(b"00000000000000001234|")),
    (b"%pxyz", &[1], Some(b"0000000000000001")),
    (b"%pKfoo|", &[0], Some(b"0000000000000000|")),
    (b"%pK", &[0], Some(b"0000000000000000")),
    (b"%p", &[0], Some(b"0000000000000000")),
    (b"%p", &[n(-22)], Some(b"ffffffffffffffea")),
    (b"%20p|%-20p|", &[0, 0], Some(b"                   0|0                   |")),
    (b"%ps|%pS|%pB", &[0, 4660, 4660], Some(b"0x0|0x1234|0x1234")),
    (b"%20ps|%-20pS|%20pB|", &[4660, 4660, 4660], Some(b"              0x1234|0x1234              |0x1234|")),
    (b"%pks|%pus", &[S, S], Some(b"hello|")),
    (b"%10pks|", &[S], Some(b"hello|")),
    (b"%pksx", &[S], None),
    (b"%s", &[0], Some(b"")),
    (b"%s|%d", &[0, 5], Some(b"|5")),
    (b"%s%d", &[S, 5], Some(b"hello5")),
    (b"%sx", &[S], None),
    (b"%s.", &[S], Some(b"hello.")),
    (b"%s\xa0", &[S], Some(b"hello\xa0")),
    (b"%pI4|%pi4", &[S, S], Some(b"104.101.108.108|104.101.108.108")),
    (b"%pI6", &[S], Some(b"6865:6c6c:6f00:0000:0000:0000:0000:0000")),
    (b"%pi6", &[S], Some(b"68656c6c6f0000000000000000000000")),
    (b"%pI4|%d", &[0, 5], Some(b"0.0.0.0|5")),
    (b"%20pI4|", &[S], Some(b"104.101.108.108|")),
    (b"%pI6c|", &[S], Some(b"6865:6c6c:6f00:0000:0000:0000:0000:0000|")),
    (b"%pI4h|", &[S], Some(b"104.101.108.108|")),
    (b"%pI5", &[S], None),
    (b"%pi", &[S], None),
    (b"%.3s", &[S], None),
    (b"%.3d", &[1], None),
    (b"%#x", &[1], None),
    (b"%*d", &[1, 2], None),
    (b"%hd", &[1], None),
    (b"%hhd", &[1], None),
    (b"%lld%d%c%lld", &[1, 2, 66, n(-1)], Some(b"12B-1")),
    (b"%c%lld|%c%d", &[65, 0x10000000000, 66, 7], Some(b"A1099511627776|B7")),
    (b"%o", &[1], None),
    (b"%n", &[1], None),
    (b"%lc", &[1], None),
    (b"%ls", &[S], None),
    (b"%lp", &[1], None),
    (b"%llld", &[1], None),
    (b"%zu", &[1], None),
    (b"%d %d %d %d %d", &[1, 2, 3, 4], None),
    (b"%00005d|%0-5d|%-05d|", &[1, 2, 3], Some(b"00001|2    |3    |")),
    (b"%+-0 5d|", &[9], Some(b"+9   |")),
    (b"%pe", &[n(-22)], None),
    (b"caf\xc3\xa9 %d", &[1], Some(b"caf\xc3\xa9 1")),
    (b"a\x01b", &[], None),
    (b"a\x7fb", &[], None),
    (b"a\tb\nc", &[], Some(b"a\tb\nc")),
    (b"%\xc3d", &[1], None),
    (b"x\n", &[], Some(b"x\n")),
    (b"%pKK|%d", &[0, 3], Some(b"0000000000000000|3")),
    (b"%px|%d", &[1, 2], Some(b"0000000000000001|2")),
    (b"%pk", &[S], None),
    (b"%pu", &[S], None),
    (b"%pa", &[S], None),
    (b"%p\xa1|", &[0], Some(b"0000000000000000\xa1|")),
    (b"%p\xc3|", &[0], None),
    (b"%s\xc3|", &[S], None),
    (b"%d", &[0x200000000], Some(b"0")),
    (b"%u", &[n(-1)], Some(b"4294967295")),
    (b"%x", &[n(-1)], Some(b"ffffffff")),
    (b"%lx", &[n(-1)], Some(b"ffffffffffffffff")),
    (b"%i", &[0x80000000], Some(b"-2147483648")),
    (b"%020lld|", &[n(-5)], Some(b"-0000000000000000005|")),
    (b"%-20lld|", &[n(-5)], Some(b"-5                  |")),
    (b"%+u|% u", &[5, 5], Some(b"5|5")),
    (b"%+x", &[5], Some(b"5")),
    (b"%s %s %s %s", &[S, S, S, S], Some(b"hello hello hello hello")),
    (b"%5pks|%-7s|", &[S, S], Some(b"hello|hello  |")),
    (b"%p0", &[0], None),
    (b"%pxA %d", &[1, 2], Some(b"0000000000000001 2")),
    (b"%pI4a %d", &[S, 2], Some(b"104.101.108.108 2")),
    (b"%2147483648d|", &[1], Some(b"1|")),
    (b"%4294967301d|", &[1], Some(b"    1|")),
];

/// Prints a format on a machine with `"hello"` in memory.
fn run(text: &[u8], args: &[u64], room: usize) -> Result<Line, Errno> {
    let mut bench = Bench::new();
    let mut hello = b"hello".to_vec();
    hello.resize(32, 0);
    let hello = bench.memory(&hello);
    let args: Vec<u64> = args
        .iter()
        .map(|arg| if *arg == S { hello } else { *arg })
        .collect();
    Ok(Format::prepare(text, &args, &mut bench.machine)?.print(room))
}

#[test]
fn texts_are_the_kernels() {
    for (text, args, want) in ROWS {
        let mut args = args.to_vec();
        args.resize(4, 0);
        let got = run(text, &args, 1024).map(|line| {
            assert_eq!(line.len, line.text.len() as u64);
            line.text
        });
        let want = want.map(<[u8]>::to_vec).ok_or(Errno::EINVAL);
        assert_eq!(got, want, "{}", text.escape_ascii());
    }
}

#[test]
fn a_width_has_a_limit_and_the_room_another() {
    let line = run(b"%99999999d|", &[1], 1024).unwrap();
    assert_eq!((line.len, line.text), (8_388_608, vec![b' '; 1023]));
}

#[test]
fn an_address_behind_the_end_is_not_counted() {
    let line = run(b"%5d%pI4", &[1, 0], 5).unwrap();
    assert_eq!((line.len, &line.text[..]), (5, &b"    "[..]));
    let line = run(b"%4d%pI4", &[1, 0], 5).unwrap();
    assert_eq!((line.len, &line.text[..]), (11, &b"   1"[..]));
}
