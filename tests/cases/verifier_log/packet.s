# type: xdp
    r2 = *(u32 *)(r1 +0)
    r3 = *(u32 *)(r1 +4)
    r4 = r2
    r4 += 14
    if r4 > r3 goto out
    r5 = *(u8 *)(r2 +13)
    r5 &= 0x3c
    r4 += r5
    r5 = r4
    r5 += 20
    if r5 > r3 goto out
    r0 = *(u16 *)(r4 +18)
out:
    r0 = 2
    exit
