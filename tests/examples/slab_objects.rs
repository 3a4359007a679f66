//! `slab_objects`: objects of the kernel's slab caches that are not freed yet.

use bpflab::vm::KernelObject;
use bpflab::{Result, Vm};
use zerocopy::FromBytes;

use crate::engines::{on_every_engine, on_every_engine_with};

/// The allocation's name since Linux 6.10, and before.
const ALLOC: &str = "kmem_cache_alloc_noprof";
const OLD_ALLOC: &str = "kmem_cache_alloc";

/// `struct cache` of the C.
#[derive(Debug, Clone, Copy, PartialEq, FromBytes)]
#[repr(C)]
struct Counts {
    name: [u8; 24],
    size: u64,
    allocated: u64,
    freed: u64,
}

/// A slab cache.
fn cache(vm: &mut Vm, name: &str, size: u32) -> Result<KernelObject> {
    let name = vm.world().kernel_cstr(name)?;
    let cache = vm.world().kernel("kmem_cache")?;
    Ok(cache.set("name", &name)?.set("object_size", size)?)
}

/// A thread allocates an object at this address.
fn allocate(vm: &mut Vm, thread: u32, cache: &KernelObject, object: u64) -> Result<()> {
    vm.world().task().set_tid(thread);
    vm.fire(vm.kprobe(ALLOC)?.arg(1, cache)?)?;
    vm.fire(vm.kretprobe(ALLOC)?.set("ret", object)?)?;
    Ok(())
}

fn free(vm: &mut Vm, object: u64) -> Result<()> {
    vm.fire(vm.kprobe("kmem_cache_free")?.arg(2, object)?)?;
    Ok(())
}

/// The addresses of the objects that are not freed.
fn left(vm: &Vm) -> Result<Vec<u64>> {
    let objects = vm.map("objects")?.entries::<u64, [u64; 2]>()?;
    let mut objects: Vec<_> = objects.into_iter().map(|(at, _)| at).collect();
    objects.sort_unstable();
    Ok(objects)
}

fn counts(vm: &Vm, cache: &KernelObject) -> Result<Option<Counts>> {
    vm.map("caches")?.get(&cache.address())
}

#[test]
fn what_is_not_freed_is_left() {
    on_every_engine("slab_objects", |vm| {
        vm.attach_all()?;
        let files = cache(vm, "filp", 232)?;
        let names = cache(vm, "names_cache", 4096)?;
        vm.world().clock().set_ns(5000);
        allocate(vm, 42, &files, 0x1000)?;
        allocate(vm, 42, &names, 0x2000)?;
        allocate(vm, 43, &files, 0x3000)?;
        free(vm, 0x1000)?;
        assert_eq!(left(vm)?, [0x2000, 0x3000]);
        let object = vm.map("objects")?.get::<u64, [u64; 2]>(&0x3000)?;
        assert_eq!(object, Some([files.address(), 5000]));
        let mut name = [0; 24];
        name[..4].copy_from_slice(b"filp");
        let expected = Counts {
            name,
            size: 232,
            allocated: 2,
            freed: 1,
        };
        assert_eq!(counts(vm, &files)?, Some(expected));
        let seen = counts(vm, &names)?.expect("a cache that was seen");
        assert_eq!((seen.allocated, seen.freed), (1, 0));
        Ok(())
    });
}

/// Two threads are in the function at the same time, with different caches.
#[test]
fn threads_do_not_disturb_one_another() {
    on_every_engine("slab_objects", |vm| {
        vm.attach_all()?;
        let caches = [cache(vm, "filp", 232)?, cache(vm, "dentry", 192)?];
        for (thread, cache) in (42..).zip(&caches) {
            vm.world().task().set_tid(thread);
            vm.fire(vm.kprobe(ALLOC)?.arg(1, cache)?)?;
        }
        for (thread, object) in [(42, 0x1000u64), (43, 0x2000)] {
            vm.world().task().set_tid(thread);
            vm.fire(vm.kretprobe(ALLOC)?.set("ret", object)?)?;
        }
        for (at, cache) in [(0x1000u64, &caches[0]), (0x2000, &caches[1])] {
            let object = vm.map("objects")?.get::<u64, [u64; 2]>(&at)?;
            assert_eq!(object.map(|object| object[0]), Some(cache.address()));
        }
        Ok(())
    });
}

#[test]
fn failures_and_unknown_objects_are_passed_over() {
    on_every_engine("slab_objects", |vm| {
        vm.attach_all()?;
        let files = cache(vm, "filp", 232)?;
        // No memory, a return without its entry, an object from elsewhere.
        allocate(vm, 42, &files, 0)?;
        vm.fire(vm.kretprobe(ALLOC)?.set("ret", 0x1000)?)?;
        free(vm, 0x1000)?;
        assert!(left(vm)?.is_empty());
        let seen = counts(vm, &files)?.expect("a cache that was seen");
        assert_eq!((seen.allocated, seen.freed), (0, 0));
        Ok(())
    });
}

/// Linux before 6.10.
#[test]
fn the_name_of_old_kernels() {
    on_every_engine_with(
        "slab_objects",
        |object| {
            for name in ["enter", "leave"] {
                object.entry_mut(name)?.set_attach_target(OLD_ALLOC);
            }
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let files = cache(vm, "filp", 232)?;
            allocate(vm, 42, &files, 0x1000)?;
            assert!(left(vm)?.is_empty());
            vm.fire(vm.kprobe(OLD_ALLOC)?.arg(1, &files)?)?;
            vm.fire(vm.kretprobe(OLD_ALLOC)?.set("ret", 0x1000)?)?;
            assert_eq!(left(vm)?, [0x1000]);
            Ok(())
        },
    );
}

#[test]
fn objects_without_room_are_counted() {
    on_every_engine_with(
        "slab_objects",
        |object| {
            object.map_mut("objects")?.set_max_entries(1)?;
            Ok(())
        },
        |vm| {
            vm.attach_all()?;
            let files = cache(vm, "filp", 232)?;
            allocate(vm, 42, &files, 0x1000)?;
            allocate(vm, 42, &files, 0x2000)?;
            assert_eq!(left(vm)?, [0x1000]);
            assert_eq!(vm.map("slab_obj.bss")?.get::<u32, u64>(&0)?, Some(1));
            let seen = counts(vm, &files)?.expect("a cache that was seen");
            assert_eq!(seen.allocated, 1);
            Ok(())
        },
    );
}
