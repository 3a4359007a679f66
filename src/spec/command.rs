//! Commands of `bpf(2)` (`enum bpf_cmd`, `include/uapi/linux/bpf.h`).

use super::numbered::numbered;

numbered! {
    /// A command of `bpf(2)`.
    #[non_exhaustive]
    pub enum BpfCommand {
        MapCreate = 0, "map_create";
        MapLookupElem = 1, "map_lookup_elem";
        MapUpdateElem = 2, "map_update_elem";
        MapDeleteElem = 3, "map_delete_elem";
        MapGetNextKey = 4, "map_get_next_key";
        ProgLoad = 5, "prog_load";
        ObjPin = 6, "obj_pin";
        ObjGet = 7, "obj_get";
        ProgAttach = 8, "prog_attach";
        ProgDetach = 9, "prog_detach";
        ProgTestRun = 10, "prog_test_run";
        ProgGetNextId = 11, "prog_get_next_id";
        MapGetNextId = 12, "map_get_next_id";
        ProgGetFdById = 13, "prog_get_fd_by_id";
        MapGetFdById = 14, "map_get_fd_by_id";
        ObjGetInfoByFd = 15, "obj_get_info_by_fd";
        ProgQuery = 16, "prog_query";
        RawTracepointOpen = 17, "raw_tracepoint_open";
        BtfLoad = 18, "btf_load";
        BtfGetFdById = 19, "btf_get_fd_by_id";
        TaskFdQuery = 20, "task_fd_query";
        MapLookupAndDeleteElem = 21, "map_lookup_and_delete_elem";
        MapFreeze = 22, "map_freeze";
        BtfGetNextId = 23, "btf_get_next_id";
        MapLookupBatch = 24, "map_lookup_batch";
        MapLookupAndDeleteBatch = 25, "map_lookup_and_delete_batch";
        MapUpdateBatch = 26, "map_update_batch";
        MapDeleteBatch = 27, "map_delete_batch";
        LinkCreate = 28, "link_create";
        LinkUpdate = 29, "link_update";
        LinkGetFdById = 30, "link_get_fd_by_id";
        LinkGetNextId = 31, "link_get_next_id";
        EnableStats = 32, "enable_stats";
        IterCreate = 33, "iter_create";
        LinkDetach = 34, "link_detach";
        ProgBindMap = 35, "prog_bind_map";
        TokenCreate = 36, "token_create";
        ProgStreamReadByFd = 37, "prog_stream_read_by_fd";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::Kind;
    use crate::object::Target;

    #[test]
    fn commands_are_those_of_the_kernel() {
        let Some(path) = crate::shared::corpus() else {
            return;
        };
        let path = path.with_file_name("vmlinux-6.18.44.btf.xz");
        let Ok(Target::Kernel(btf)) = Target::file(&path) else {
            panic!("{} is not there", path.display());
        };
        let found = btf.find("bpf_cmd", Kind::Enum).unwrap();
        // `BPF_PROG_RUN` is another name, `__MAX_BPF_CMD` the number of commands.
        let other = |name: &str| name == "prog_run" || name.starts_with("__");
        let named = found.enumerators().filter_map(|one| {
            let name = one.name.to_ascii_lowercase();
            let name = name.strip_prefix("bpf_").unwrap_or(&name).to_owned();
            (!other(&name)).then_some((name, u32::try_from(one.value()).ok()?))
        });
        let ours = BpfCommand::ALL.iter();
        let ours = ours.map(|one| (one.name().to_owned(), one.number()));
        assert_eq!(ours.collect::<Vec<_>>(), named.collect::<Vec<_>>());
    }
}
