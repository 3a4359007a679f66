# type: socket_filter
    call bpf_ktime_get_ns
    r0 &= 3
    if r0 s>= r0 goto +4
    if w0 <= w0 goto +3
    if r0 s< 154 goto +2
    if r0 > 9 goto +1
    r0 = 1
    exit
