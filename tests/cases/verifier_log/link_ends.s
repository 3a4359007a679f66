# type: socket_filter
    call bpf_get_prandom_u32
    r0 &= 0xff
    r6 = r0
    r6 = le64 r6
    r7 = r0
    r7 = le16 r7
    r8 = r0
    r8 += 3
    r8 = le64 r8
    r1 = r0
    r1 += 300
    *(u64 *)(r10 -8) = r1
    r2 = *(u8 *)(r10 -8)
    if r2 > 7 goto out
    if r0 > 20 goto out
    r0 = r6
    exit
out:
    r0 = r8
    exit
