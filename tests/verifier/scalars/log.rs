//! The register states in the kernel's log.

use bpflab::verifier::scalar::Scalar;
use bpflab::verifier::tnum::Tnum;

/// Where in the program a line of the log shows registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Behind the instruction, on the way that the walk goes on.
    After(usize),
    /// On the edge of a jump that was put off.
    Edge(usize, usize),
}

/// The registers of a place, by number; those that hold no number are left out.
#[derive(Debug)]
pub struct State {
    pub place: Place,
    pub registers: Vec<(usize, Scalar)>,
    pub line: String,
}

/// The states in a log of level 2, and the instructions that were walked, in order.
pub fn parse(log: &str) -> (Vec<State>, Vec<usize>) {
    let (mut states, mut walked) = (Vec::new(), Vec::new());
    let mut edge = None;
    for line in log.lines() {
        let mut show = |place, text: &str| {
            states.push(State {
                place,
                registers: registers(text),
                line: line.to_owned(),
            });
        };
        if let Some((from, rest)) = line
            .strip_prefix("from ")
            .and_then(|l| l.split_once(" to "))
        {
            let Some((to, text)) = rest.split_once(": ") else {
                continue;
            };
            let place = Place::Edge(from.parse().unwrap(), to.parse().unwrap());
            edge = Some(place);
            show(place, text);
            continue;
        }
        let Some((pc, text)) = line.split_once(": ") else {
            continue;
        };
        let Ok(pc) = pc.parse() else {
            continue;
        };
        if text.starts_with('(') {
            edge = None;
            walked.push(pc);
            if let Some((_, text)) = text.split_once(" ; ") {
                show(Place::After(pc), text);
            }
        } else if let Some(place) = edge {
            show(place, text);
        } else if walked.last() == Some(&pc) {
            show(Place::After(pc), text);
        }
    }
    (states, walked)
}

/// `R6=scalar(smin=1,var_off=(0x0; 0xf)) R7=P8 R10=fp0`: the numbers.
fn registers(text: &str) -> Vec<(usize, Scalar)> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // An item ends at the first blank outside brackets.
        let mut depth = 0;
        let end = rest.find(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            c == ' ' && depth == 0
        });
        let (item, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.trim_start();
        if let Some((name, value)) = item.split_once('=')
            && let Some(Ok(number)) = name.strip_prefix('R').map(str::parse)
            && let Some(scalar) = scalar(value.strip_prefix('P').unwrap_or(value))
        {
            all.push((number, scalar));
        }
    }
    all
}

/// `scalar(…)`, or the number itself.
fn scalar(text: &str) -> Option<Scalar> {
    let Some(inner) = text.strip_prefix("scalar(") else {
        return Some(Scalar::constant(number(text)?));
    };
    let (ranges, bits) = match inner.strip_suffix(')')?.split_once("var_off=") {
        Some((ranges, bits)) => (ranges, Some(bits)),
        None => (inner.strip_suffix(')')?, None),
    };
    let mut all = Scalar::UNKNOWN;
    if let Some((value, mask)) = bits
        .map(|bits| bits.trim_matches(['(', ')']))
        .and_then(|bits| bits.split_once("; "))
    {
        all.bits = Tnum {
            value: number(value)?,
            mask: number(mask)?,
        };
    }
    for item in ranges.split(',').filter(|item| !item.is_empty()) {
        let mut names: Vec<&str> = item.split('=').collect();
        let value = number(names.pop()?)?;
        let low = u32::try_from(value & u64::from(u32::MAX)).ok()?;
        for name in names {
            match name {
                "umin" => all.umin = value,
                "umax" => all.umax = value,
                "smin" => all.smin = value.cast_signed(),
                "smax" => all.smax = value.cast_signed(),
                "umin32" => all.umin32 = low,
                "umax32" => all.umax32 = low,
                "smin32" => all.smin32 = low.cast_signed(),
                "smax32" => all.smax32 = low.cast_signed(),
                "id" => {}
                // Pointers and the like are not read.
                _ => return None,
            }
        }
    }
    Some(all)
}

/// A number in decimal or hex, a negative one as its 64 bits.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text
            .parse()
            .ok()
            .or_else(|| text.parse().ok().map(i64::cast_unsigned)),
    }
}

#[test]
fn states_are_read() {
    let log = "0: R1=ctx() R10=fp0\n\
        3: (57) r6 &= 255        ; R6=scalar(id=4,smin=smin32=-2,umax=0x10000,var_off=(0x8; 0xff))\n\
        mark_precise: frame0: last_idx 8\n\
        3: R7=Pscalar() R8=fp-8 R9=P-1\n\
        from 3 to 9: R6=7\n\
        9: R6=7";
    let (states, walked) = parse(log);
    assert_eq!(walked, [3]);
    let places: Vec<Place> = states.iter().map(|state| state.place).collect();
    let (after, edge) = (Place::After(3), Place::Edge(3, 9));
    assert_eq!(places, [after, after, edge, edge]);
    let [(6, r6)] = states[0].registers[..] else {
        panic!("{states:?}");
    };
    assert_eq!((r6.smin, r6.smin32, r6.umax), (-2, -2, 1 << 16));
    assert_eq!((r6.bits.value, r6.bits.mask, r6.umax32), (8, 255, u32::MAX));
    let expected = [(7, Scalar::UNKNOWN), (9, Scalar::constant(u64::MAX))];
    assert_eq!(states[1].registers, expected);
    assert_eq!(states[3].registers, [(6, Scalar::constant(7))]);
}
