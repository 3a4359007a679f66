# type: tracepoint
# map: ringbuf events 0 0 4096
    r1 = map[idx:0]
    r2 = 16
    r3 = 0
    call bpf_ringbuf_reserve
    if r0 == 0 goto none
    r6 = r0
    *(u64 *)(r6 +8) = 1
    r1 = r6
    r2 = 0
    call bpf_ringbuf_submit
none:
    r0 = 0
    exit
