# type: socket_filter
    call bpf_ktime_get_ns
    r1 = 0x4000000000000000 ll
    if r0 > r1 goto out
    r2 = r0
    r2 <<= 1
    r3 = r0
    r3 <<= 2
    r0 += 1
    r0 <<= 1
out:
    r0 = 0
    exit
