use super::*;

/// Independent bits and intervals: syncing keeps their common members, and the result is
/// consistent.
#[test]
fn syncing_loses_no_member() {
    for window in windows(3) {
        let mut numbers = Vec::new();
        for (x, y) in pairs(&window) {
            numbers.push((Tnum::constant(x).union(Tnum::constant(y)), ends(x, y)));
        }
        for (bits, _) in &numbers {
            for (_, whole) in &numbers {
                for (_, signed) in &numbers {
                    for (_, half) in numbers.iter().step_by(4) {
                        let number = Scalar {
                            bits: *bits,
                            umin: whole.umin,
                            umax: whole.umax,
                            smin: signed.smin,
                            smax: signed.smax,
                            umin32: half.umin32,
                            umax32: half.umax32,
                            smin32: whole.smin32,
                            smax32: whole.smax32,
                        };
                        let synced = number.synced();
                        for &x in &window {
                            if number.contains(x) {
                                assert!(synced.contains(x), "{x:#x} in {number:x?}");
                                assert!(synced.is_consistent(), "{number:x?}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_subset_has_no_other_members() {
    let all: Vec<Set> = windows(3).iter().flat_map(|window| sets(window)).collect();
    for a in &all {
        for b in &all {
            let both = a.number.intersect(&b.number);
            for &x in &a.members {
                if a.number.is_subset_of(&b.number) {
                    assert!(b.number.contains(x), "{:x?} in {:x?}", a.number, b.number);
                }
                assert!(!b.number.contains(x) || both.contains(x));
            }
        }
        assert!(a.number.is_subset_of(&a.number) && a.number.is_subset_of(&Scalar::UNKNOWN));
    }
}

#[test]
fn constants_are_themselves() {
    for x in windows(4).into_iter().flatten() {
        let number = Scalar::constant(x);
        assert_eq!((number.value(), number.synced()), (Some(x), number));
        assert_eq!(Scalar::range(x, x), number);
        assert!(number.is_const() && number.is_consistent() && !number.is_unknown());
        assert!(number.contains(x) && !number.contains(x ^ 1));
    }
    assert!(Scalar::UNKNOWN.is_unknown() && Scalar::UNKNOWN.is_consistent());
    assert_eq!(Scalar::UNKNOWN.synced(), Scalar::UNKNOWN);
    assert_eq!(Scalar::range(0, u64::MAX), Scalar::UNKNOWN);
}

#[test]
fn contradictions_are_named() {
    let has = |number: &Scalar, words: &str| {
        let line = number.violation("alu");
        line.is_some_and(|line| line.contains(&format!("(alu): {words} u64=")))
    };
    let mut number = Scalar::range(3, 9);
    assert_eq!(number.violation("alu"), None);
    number.umin = 10;
    let line = "verifier bug: REG INVARIANTS VIOLATION (true_reg1): range bounds violation \
        u64=[0xa, 0x9] s64=[0x3, 0x9] u32=[0x3, 0x9] s32=[0x3, 0x9] var_off=(0x0, 0xf)";
    assert_eq!(number.violation("true_reg1").as_deref(), Some(line));
    let sane = number.sanitized();
    let expected = (number.bits, u64::MAX, i32::MIN);
    assert_eq!((sane.bits, sane.umax, sane.smin32), expected);

    let mut number = Scalar::constant(7);
    number.umax = 8;
    assert!(has(&number, "const tnum out of sync with range bounds"));

    let mut number = Scalar::UNKNOWN.with_low32(&Scalar::constant(7));
    assert!(number.is_consistent());
    number.smax32 = 8;
    assert!(has(
        &number,
        "const subreg tnum out of sync with range bounds"
    ));
}
