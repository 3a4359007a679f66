use super::*;

fn every_layout() -> impl Iterator<Item = &'static Layout> {
    let contexts = ProgType::ALL.iter().flat_map(|prog_type| {
        [Arch::X86_64, Arch::Arm64]
            .into_iter()
            .filter_map(|machine| layout(prog_type.info().context, machine))
    });
    let objects = [Object::Socket, Object::TcpSock, Object::XdpSock]
        .into_iter()
        .map(Object::layout);
    contexts.chain(objects).chain([&FLOW_KEYS])
}

#[test]
fn fields_lie_where_c_puts_them() {
    for layout in every_layout() {
        let mut covered = 0;
        for field in layout.fields {
            let name = format!("{}.{}", layout.name, field.name);
            assert!(
                field.offset.is_multiple_of(field.element.size()),
                "{name} is aligned"
            );
            assert!(
                field.offset + field.size() <= layout.size,
                "{name} lies inside"
            );
            let in_union = field.offset < covered;
            let padding = field.offset.saturating_sub(covered);
            assert!(in_union || padding < 8, "{name} leaves no hole");
            covered = covered.max(field.offset + field.size());
            assert_eq!(
                layout.find(field.name),
                Some((field.offset, field.size())),
                "{name} is unique"
            );
        }
        assert!(
            layout.size - covered < 8,
            "{} has no fields left out",
            layout.name
        );
    }
}

#[test]
fn elements_are_found_by_index() {
    let skb = layout(ContextKind::SkBuff, Arch::HOST).unwrap();
    assert_eq!(skb.find("cb"), Some((48, 20)));
    assert_eq!(skb.find("cb[4]"), Some((64, 4)));
    for wrong in ["cb[5]", "cb[-1]", "cb[", "cb]", "len[0]", "nothing"] {
        assert_eq!(skb.find(wrong), None, "{wrong}");
    }
    assert_eq!(skb.at(57).map(|field| field.name), Some("cb"));
    assert_eq!(skb.at(181).map(|field| field.name), None);
}

/// Asks about a program with its default attach type on x86-64.
fn ask(prog_type: ProgType, offset: u32, size: u32, mode: Mode) -> Option<Yield> {
    check(
        prog_type,
        prog_type.attach_type(None),
        Arch::X86_64,
        offset,
        size,
        mode,
    )
}

#[test]
fn packet_pointers_are_loaded_whole_and_without_sign() {
    assert_eq!(ask(ProgType::Xdp, 0, 4, Mode::Read), Some(Yield::Packet));
    assert_eq!(ask(ProgType::Xdp, 4, 4, Mode::Read), Some(Yield::PacketEnd));
    assert_eq!(ask(ProgType::Xdp, 0, 4, Mode::ReadSigned), None);
    assert_eq!(ask(ProgType::Xdp, 0, 2, Mode::Read), None);
    assert_eq!(ask(ProgType::Xdp, 0, 8, Mode::Read), None);
    assert_eq!(
        ask(ProgType::Xdp, 20, 4, Mode::Read),
        None,
        "only in a device map"
    );
    assert_eq!(
        check(
            ProgType::Xdp,
            Some(At::XdpDevmap),
            Arch::X86_64,
            20,
            4,
            Mode::Read
        ),
        Some(Yield::Scalar)
    );
    assert_eq!(
        ask(ProgType::SocketFilter, 76, 4, Mode::Read),
        None,
        "a socket filter sees no pointers"
    );
}

#[test]
fn one_field_has_different_rules_for_different_types() {
    let tc_index = |prog_type, mode| ask(prog_type, 44, 4, mode);
    assert!(tc_index(ProgType::SchedAct, Mode::Write).is_some());
    assert!(tc_index(ProgType::SocketFilter, Mode::Write).is_none());
    assert!(tc_index(ProgType::SocketFilter, Mode::Read).is_some());
    assert!(tc_index(ProgType::FlowDissector, Mode::Read).is_none());
    assert!(
        ask(ProgType::SchedCls, 44, 2, Mode::Write).is_none(),
        "stores are whole"
    );
    assert!(
        ask(ProgType::SocketFilter, 48, 8, Mode::Write).is_some(),
        "two words of cb at once"
    );
    assert!(ask(ProgType::SocketFilter, 52, 8, Mode::Read).is_none());
    assert!(
        ask(ProgType::SocketFilter, 64, 8, Mode::Read).is_none(),
        "past the end of cb"
    );
}

#[test]
fn ports_are_read_with_or_without_padding() {
    let port = |size| Object::Socket.check(48, size);
    assert!(port(1) && port(2) && port(4) && !port(8));
    assert!(
        !Object::Socket.check(50, 2),
        "padding is not read by itself"
    );
    let lookup = |offset, size| {
        check(
            ProgType::SkLookup,
            Some(At::SkLookup),
            Arch::X86_64,
            offset,
            size,
            Mode::Read,
        )
    };
    assert!(lookup(38, 2).is_some() && lookup(36, 4).is_some());
    assert_eq!(lookup(0, 8), Some(Yield::SocketOrNull));
}

#[test]
fn tracepoints_hide_their_first_eight_bytes() {
    let read = |offset, size| ask(ProgType::Tracepoint, offset, size, Mode::Read);
    assert_eq!(read(7, 1), None);
    assert_eq!(read(8, 8), Some(Yield::Scalar));
    assert_eq!(read(12, 8), None, "not aligned");
    assert_eq!(read(8184, 8), Some(Yield::Scalar));
    assert_eq!(read(8192, 1), None);
    assert_eq!(ask(ProgType::Tracepoint, 8, 8, Mode::Write), None);
    assert_eq!(ask(ProgType::Tracepoint, u32::MAX - 7, 8, Mode::Read), None);
}

#[test]
fn raw_tracepoints_and_functions_have_twelve_arguments() {
    assert_eq!(
        ask(ProgType::RawTracepoint, 88, 8, Mode::Read),
        Some(Yield::Scalar)
    );
    assert_eq!(ask(ProgType::RawTracepoint, 96, 8, Mode::Read), None);
    assert_eq!(
        ask(ProgType::RawTracepoint, 90, 2, Mode::Read),
        Some(Yield::Scalar)
    );
    assert_eq!(
        ask(ProgType::RawTracepointWritable, 0, 8, Mode::Read),
        Some(Yield::TracepointBuffer)
    );
    assert_eq!(ask(ProgType::RawTracepointWritable, 0, 4, Mode::Read), None);
    assert_eq!(
        ask(ProgType::Tracing, 16, 8, Mode::Read),
        Some(Yield::Argument(2))
    );
}

#[test]
fn registers_are_read_in_parts_except_in_perf_events() {
    assert!(ask(ProgType::Kprobe, 161, 1, Mode::Read).is_some());
    assert!(ask(ProgType::Kprobe, 168, 8, Mode::Read).is_none());
    assert!(ask(ProgType::PerfEvent, 160, 4, Mode::Read).is_none());
    assert!(ask(ProgType::PerfEvent, 176, 4, Mode::Read).is_some());
    let arm = check(ProgType::Kprobe, None, Arch::Arm64, 264, 8, Mode::Read);
    assert_eq!(arm, Some(Yield::Scalar));
}

#[test]
fn a_syscall_program_writes_its_context() {
    assert!(ask(ProgType::Syscall, 65_528, 8, Mode::Write).is_some());
    assert!(ask(ProgType::Syscall, 65_535, 1, Mode::Read).is_none());
    assert!(ask(ProgType::Syscall, 65_536, 8, Mode::Write).is_none());
}
