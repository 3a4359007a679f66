# type: socket_filter
    r6 = *(u32 *)(r1 +0)
    r7 = 0
    r8 = 0
again:
    may_goto done
    if r6 > 5 goto next
    r8 = 1
next:
    r7 += 1
    if r6 < 90000 goto done
    if r7 > 3 goto +1
    goto again
    r7 = 0
    goto again
done:
    r1 = 3
inner:
    may_goto out
    if r6 == 90001 goto inner
    if r6 > 90002 goto inner
out:
    r0 = r8
    exit
