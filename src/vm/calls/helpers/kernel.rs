//! Helpers on kernel objects: paths, memory areas, sockets of files
//! (`kernel/trace/bpf_trace.c`, `kernel/bpf/task_iter.c`, `kernel/bpf/bpf_lsm.c`).

use crate::util::Errno;
use crate::vm::machine::{Call, HelperProblem, Machine, Returned};
use crate::vm::memory::AccessKind;
use crate::vm::world::kernel::KernelError;
use crate::vm::world::path_of;

/// `bpf_d_path(path, buf, size)`: writes the path with its NUL and returns its length. As in
/// the kernel the text is first built at the end of the buffer and then moved, so parts of it
/// may remain there.
pub(in crate::vm) fn d_path(call: &mut Call<'_>) -> Returned {
    let size = call.size(3);
    if size == 0 {
        return Ok(0);
    }
    call.check(2, size, AccessKind::Write)?;
    let kernel = call.machine.world.kernel_memory();
    let path = match kernel.view(call.arg(1), "struct path") {
        Ok(path) => path,
        Err(KernelError::Nowhere(_)) => return Ok(Errno::EFAULT.to_ret()),
        Err(error) => return Err(error.into()),
    };
    let Some(mut text) = path_of(&path)?.map(String::into_bytes) else {
        return Ok(Errno::EFAULT.to_ret());
    };
    text.push(0);
    let Some(start) = size.checked_sub(text.len()) else {
        return Ok(Errno::ENAMETOOLONG.to_ret());
    };
    let end = call.arg(2).wrapping_add(start as u64);
    let written = call.machine.space.write(end, &text);
    written.map_err(|fault| HelperProblem::Access { arg: 2, fault })?;
    call.write(2, &text)?;
    Ok(text.len() as u64)
}

/// `bpf_find_vma(task, address, callback, ctx, flags)`: calls back with the task, the memory
/// area that contains the address, and `ctx`.
pub(super) fn find_vma(call: &mut Call<'_>) -> Returned {
    if call.arg(5) != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let (task, address, ctx) = (call.arg(1), call.arg(2), call.arg(4));
    let area = match tgid(call, task)? {
        Some(tgid) => call.machine.world.area_of(tgid, address),
        None => None,
    };
    let Some(area) = area else {
        return Ok(Errno::ENOENT.to_ret());
    };
    call.call_back(3, [task, area.address(), ctx, 0, 0])?;
    Ok(0)
}

/// The process ID of a task.
fn tgid(call: &mut Call<'_>, task: u64) -> Result<Option<u32>, HelperProblem> {
    if task == 0 {
        return Ok(None);
    }
    let world = &mut call.machine.world;
    if world.task_address()? == task {
        return Ok(Some(world.task().tgid()));
    }
    let kernel = world.kernel_memory();
    if kernel.object_at(task).is_none() {
        return Err(call.wrong(1, "a task"));
    }
    let tgid = kernel.view(task, "struct task_struct")?.get("tgid")?;
    Ok(u32::try_from(tgid).ok())
}

/// `bpf_bprm_opts_set(bprm, flags)`: sets whether the new program starts with clean
/// credentials (`BPF_F_BPRM_SECUREEXEC`).
pub(super) fn bprm_opts_set(call: &mut Call<'_>) -> Returned {
    const SECUREEXEC: u64 = 1;
    let flags = call.arg(2);
    if flags & !SECUREEXEC != 0 {
        return Ok(Errno::EINVAL.to_ret());
    }
    let kernel = call.machine.world.kernel_memory();
    let bprm = kernel.view(call.arg(1), "struct linux_binprm")?;
    bprm.set("secureexec", flags)?;
    Ok(0)
}

/// The `struct socket` in a `struct file`'s private data; 0 if the file is not a socket.
pub(super) fn private_socket(machine: &Machine, file: u64) -> Result<u64, HelperProblem> {
    let kernel = machine.world.kernel_memory();
    let file = match kernel.view(file, "struct file") {
        Err(KernelError::Nowhere(_)) => return Ok(0),
        file => file?,
    };
    let data = file.get("private_data")?;
    Ok(match kernel.is_a(data, "socket") {
        Some(true) => data,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::btf::{Array, Builder, Encoding, Member};
    use crate::spec::helpers::id;
    use crate::util::TypeId;
    use crate::vm::KernelObject;

    /// A machine with types for files.
    fn bench() -> Bench {
        let member = |name, ty, at: u32| Member {
            name,
            ty,
            bit_offset: at * 8,
            bitfield: None,
        };
        let mut b = Builder::new();
        let int = b.int("unsigned int", 4, Encoding::Unsigned);
        let long = b.int("unsigned long", 8, Encoding::Unsigned);
        let character = b.int("char", 1, Encoding::Char);
        let text = b.ptr(character);
        let void = b.ptr(TypeId(0));
        let short = b.array(Array {
            element: character,
            index: int,
            len: 8,
        });
        let qstr = b.structure(
            "qstr",
            16,
            &[member("len", int, 0), member("name", text, 8)],
        );
        let inode = b.structure("inode", 8, &[member("i_ino", long, 0)]);
        let inode = b.ptr(inode);
        let dentry = TypeId(b.next_id().0 + 1);
        let to_dentry = b.ptr(dentry);
        let fields = [
            member("d_parent", to_dentry, 0),
            member("d_name", qstr, 8),
            member("d_inode", inode, 24),
            member("d_iname", short, 32),
        ];
        b.structure("dentry", 40, &fields);
        let path = b.structure(
            "path",
            16,
            &[member("mnt", void, 0), member("dentry", to_dentry, 8)],
        );
        let file = [
            member("f_inode", inode, 0),
            member("f_path", path, 8),
            member("private_data", void, 24),
        ];
        let file = b.structure("file", 32, &file);
        let file = b.ptr(file);
        b.structure("socket", 8, &[member("state", int, 0)]);
        let secure = Member {
            bitfield: Some(1),
            ..member("secureexec", int, 0)
        };
        b.structure("linux_binprm", 8, &[secure]);
        let area = [
            member("vm_start", long, 0),
            member("vm_end", long, 8),
            member("vm_file", file, 16),
        ];
        b.structure("vm_area_struct", 24, &area);
        b.structure(
            "task_struct",
            8,
            &[member("pid", int, 0), member("tgid", int, 4)],
        );
        let bench = Bench::new();
        let kernel = bench.machine.world.kernel_memory();
        kernel.set_kernel_types(b.build().unwrap());
        bench
    }

    fn make(bench: &Bench, name: &str) -> KernelObject {
        bench.machine.world.kernel(name).unwrap()
    }

    #[test]
    fn a_path_is_read_from_its_directories() {
        let mut bench = bench();
        let world = &bench.machine.world;
        let file = world.file("/usr/bin/ls").unwrap();
        assert_eq!(
            file.text("f_path.dentry.d_parent.d_name.name").unwrap(),
            "bin"
        );
        assert_eq!(file.text("f_path.dentry.d_iname").unwrap(), "ls");
        assert_eq!(file.get("f_inode.i_ino").unwrap(), 5);
        let other = world.path("/usr/bin/cat").unwrap();
        assert_eq!(
            other.get("dentry.d_parent").unwrap(),
            file.get("f_path.dentry.d_parent").unwrap()
        );
        let path = file.at("f_path").unwrap().address();
        let to = bench.memory(&[0xee; 16]);
        assert_eq!(bench.call(id::d_path, [path, to, 14]), Ok(12));
        assert_eq!(bench.bytes(to, 16), b"/usr/bin/ls\0s\0\xee\xee");
        assert_eq!(bench.errno(id::d_path, [path, to, 11]), Errno::ENAMETOOLONG);
        assert_eq!(bench.call(id::d_path, [path, to, 0]), Ok(0));
        assert_eq!(bench.errno(id::d_path, [0, to, 8]), Errno::EFAULT);
        let root = bench.machine.world.path("/").unwrap();
        assert_eq!(bench.call(id::d_path, [root.address(), to, 16]), Ok(2));
        assert_eq!(bench.bytes(to, 2), b"/\0");
        // A name alone is enough; a path without any is an error.
        let bare = make(&bench, "path").set("dentry.d_name.name", "x").unwrap();
        assert_eq!(bench.call(id::d_path, [bare.address(), to, 16]), Ok(3));
        let none = make(&bench, "path");
        assert_eq!(
            bench.errno(id::d_path, [none.address(), to, 8]),
            Errno::EFAULT
        );
        // A cycle.
        let dentry = make(&bench, "dentry")
            .set("d_parent.d_name.len", 1)
            .unwrap();
        let parent = dentry.at("d_parent").unwrap();
        parent.set("d_parent", &dentry).unwrap();
        let path = make(&bench, "path").set("dentry", &dentry).unwrap();
        assert_eq!(
            bench.errno(id::d_path, [path.address(), to, 8]),
            Errno::EFAULT
        );
    }

    #[test]
    fn areas_are_those_of_the_tasks_process() {
        let mut bench = bench();
        let world = &mut bench.machine.world;
        world.task().set_pid(7);
        let area = world
            .map_vma(0x40_0000..0x40_2000, Some("/usr/bin/ls"))
            .unwrap();
        assert_eq!(area.get("vm_end").unwrap(), 0x40_2000);
        assert_eq!(
            area.text("vm_file.f_path.dentry.d_name.name").unwrap(),
            "ls"
        );
        let current = world.task_address().unwrap();
        let thread = make(&bench, "task_struct").set("tgid", 7).unwrap();
        let other = make(&bench, "task_struct").set("tgid", 8).unwrap();
        let at = area.address();
        bench.callback = Box::new(move |_, args| {
            assert_eq!((args[1], args[2]), (at, 99));
            Some(5)
        });
        let mut find = |task, address, flags| {
            let returned = bench.call(id::find_vma, [task, address, 1, 99, flags]);
            returned.map(u64::cast_signed)
        };
        assert_eq!(find(current, 0x40_1fff, 0), Ok(0));
        assert_eq!(find(thread.address(), 0x40_0000, 0), Ok(0));
        assert_eq!(find(current, 0x40_2000, 0), Ok(-2));
        assert_eq!(find(other.address(), 0x40_0000, 0), Ok(-2));
        assert_eq!(find(0, 0x40_0000, 0), Ok(-2));
        assert_eq!(find(current, 0x40_0000, 1), Ok(-22));
        assert!(find(0x1234, 0x40_0000, 0).is_err());
    }

    #[test]
    fn files_and_new_programs() {
        let mut bench = bench();
        let socket = make(&bench, "socket");
        let file = make(&bench, "file");
        assert_eq!(bench.call(id::sock_from_file, [file.address()]), Ok(0));
        let file = file.set("private_data", &socket).unwrap();
        let found = bench.call(id::sock_from_file, [file.address()]);
        assert_eq!(found, Ok(socket.address()));
        assert_eq!(bench.call(id::sock_from_file, [5]), Ok(0));

        let bprm = make(&bench, "linux_binprm");
        assert_eq!(bench.call(id::bprm_opts_set, [bprm.address(), 1]), Ok(0));
        assert_eq!(bprm.get("secureexec"), Ok(1));
        assert_eq!(bench.call(id::bprm_opts_set, [bprm.address(), 0]), Ok(0));
        assert_eq!(bprm.get("secureexec"), Ok(0));
        assert_eq!(
            bench.errno(id::bprm_opts_set, [bprm.address(), 2]),
            Errno::EINVAL
        );
    }
}
