# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r7 = r6
    r7 &= 0xff
    r7 <<= 3
    r6 s>>= 40
    w8 = w7
    r8 -= 100
    w9 = -1
    r9 += 1
    r2 = 0x123456789abcdef0 ll
    r2 ^= r7
    r7 = (s8)r7
    r7 *= 70000
    w7 /= 3
    r7 %= 10
    r0 = be16 r0
    exit
