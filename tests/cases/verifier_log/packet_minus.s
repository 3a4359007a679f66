# type: xdp
    r2 = *(u32 *)(r1 +0)
    r3 = *(u32 *)(r1 +4)
    r4 = r2
    r4 += 24
    if r4 > r3 goto out
    r6 = *(u8 *)(r2 +0)
    r5 = r2
    r5 += 8
    r6 &= 7
    r5 -= r6
    r7 = r2
    r7 += 8
    r6 |= 1
    r7 -= r6
    r8 = r2
    r6 -= 9
    r8 -= r6
    r9 = r2
    r9 += r6
    r5 -= 1
    r9 = r2
    r9 -= -3
out:
    r0 = 2
    exit
