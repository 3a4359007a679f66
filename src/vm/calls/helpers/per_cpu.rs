//! Per-CPU instances, and symbols by name (`kernel/bpf/helpers.c`, `kernel/bpf/syscall.c`,
//! `kernel/bpf/btf.c`).

use super::super::kfuncs;
use crate::btf::Kind;
use crate::util::Errno;
use crate::vm::machine::{Call, Returned};
use crate::vm::memory::AccessKind;

/// `bpf_per_cpu_ptr(percpu_ptr, cpu)`: null if the CPU does not exist.
pub(super) fn per_cpu_ptr(call: &mut Call<'_>) -> Returned {
    let cpu = call.arg_u32(2);
    if cpu >= call.machine.world.cpus() {
        return Ok(0);
    }
    instance(call, cpu)
}

/// `bpf_this_cpu_ptr(percpu_ptr)`: the current CPU's instance.
pub(super) fn this_cpu_ptr(call: &mut Call<'_>) -> Returned {
    let cpu = call.machine.world.cpu();
    instance(call, cpu)
}

/// The instance of a per-CPU variable or of an allocated per-CPU object.
fn instance(call: &Call<'_>, cpu: u32) -> Returned {
    let (machine, at) = (&call.machine, call.arg(1));
    let variable = machine.world.kernel_memory().per_cpu_address(at, cpu);
    variable
        .or_else(|| kfuncs::percpu_part(machine, at, cpu))
        .ok_or_else(|| call.wrong(1, "a per-CPU variable of the kernel or a per-CPU object"))
}

/// The name in arguments 1 and 2; `EINVAL` if it is empty or does not end with a NUL.
fn name(call: &Call<'_>) -> Result<Result<String, Errno>, super::HelperProblem> {
    let bytes = call.read(1, call.size(2))?;
    let Some((0, name)) = bytes.split_last().filter(|(_, name)| !name.is_empty()) else {
        return Ok(Err(Errno::EINVAL));
    };
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(Ok(String::from_utf8_lossy(name).into_owned()))
}

/// `bpf_kallsyms_lookup_name(name, name_sz, flags, res)`: the address of a symbol of the
/// mocked kernel.
pub(super) fn kallsyms_lookup_name(call: &mut Call<'_>) -> Returned {
    call.check(4, 8, AccessKind::Write)?;
    call.write(4, &[0; 8])?;
    let name = match name(call)? {
        Ok(name) if call.arg_u32(3) == 0 => name,
        _ => return Ok(Errno::EINVAL.to_ret()),
    };
    let kernel = call.machine.world.kernel_memory();
    let Some(address) = kernel.symbol_named(&name, false) else {
        return Ok(Errno::ENOENT.to_ret());
    };
    call.write(4, &address.to_le_bytes()).map(|()| 0)
}

/// `bpf_btf_find_by_name_kind(name, name_sz, kind, flags)`: the ID of a type in the kernel's
/// BTF. Modules are not modeled.
pub(super) fn btf_find_by_name_kind(call: &mut Call<'_>) -> Returned {
    let name = match name(call)? {
        Ok(name) if call.arg_u32(4) == 0 => name,
        _ => return Ok(Errno::EINVAL.to_ret()),
    };
    let kernel = call.machine.world.kernel_memory();
    let types = kernel.kernel_types();
    let kind = u8::try_from(call.arg_u32(3))
        .ok()
        .and_then(Kind::from_number);
    let found = types.and_then(|btf| Some(btf.find(&name, kind?)?.id()));
    Ok(found.map_or(Errno::ENOENT.to_ret(), |id| id.0.into()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::btf::{Btf, Builder, Encoding, Linkage, Member, Variable};
    use crate::spec::helpers::id;

    /// A kernel with a per-CPU variable and a plain one.
    fn kernel() -> Btf {
        let mut b = Builder::new();
        let int = b.int("int", 4, Encoding::Signed);
        let member = Member {
            name: "nr_running",
            ty: int,
            bit_offset: 32,
            bitfield: None,
        };
        let rq = b.structure("rq", 8, &[member]);
        let ty = b.variable("runqueues", rq, Linkage::Global);
        let place = Variable {
            ty,
            offset: 0,
            size: 8,
        };
        b.section(".data..percpu", 8, &[place]);
        b.variable("panic_timeout", int, Linkage::Global);
        b.build().unwrap()
    }

    fn bench() -> (Bench, Btf) {
        let bench = Bench::new();
        let btf = kernel();
        let memory = bench.machine.world.kernel_memory();
        memory.set_kernel_types(btf.clone());
        (bench, btf)
    }

    #[test]
    fn each_cpu_has_its_own_instance() {
        let (mut bench, btf) = bench();
        let world = &mut bench.machine.world;
        let there = world.per_cpu("runqueues", 2).unwrap();
        let there = there.set("nr_running", 5).unwrap();
        assert!(world.per_cpu("runqueues", 4).is_err());
        let error = world.variable("runqueues").unwrap_err().to_string();
        assert!(
            error.contains("World::per_cpu(\"runqueues\", cpu)"),
            "{error}"
        );
        world.set_cpu(1);
        let variable = btf.find("runqueues", Kind::Var).unwrap().id();
        let base = world.kernel_memory().symbol(&btf, variable).unwrap();

        let of = |bench: &mut Bench, cpu| bench.call(id::per_cpu_ptr, [base, cpu]);
        assert_eq!(of(&mut bench, 2), Ok(there.address()));
        let own = bench.call(id::this_cpu_ptr, [base]).unwrap();
        assert_eq!(of(&mut bench, 1), Ok(own));
        assert_ne!(own, there.address());
        assert_eq!(bench.machine.space.load(there.address() + 4, 4), Ok(5));
        assert_eq!(bench.machine.space.load(own + 4, 4), Ok(0));
        let inside = bench.call(id::per_cpu_ptr, [base + 4, 1]);
        assert_eq!(inside, Ok(own + 4));
        assert_eq!(of(&mut bench, 4), Ok(0));
        // The per-CPU base address has no bytes.
        assert!(bench.machine.space.load(base, 4).is_err());
        assert!(bench.call(id::this_cpu_ptr, [0]).is_err());
    }

    #[test]
    fn symbols_are_found_by_name() {
        let (mut bench, _) = bench();
        let timeout = bench.machine.world.variable("panic_timeout").unwrap();
        let result = bench.memory(&[0xff; 8]);
        let mut ask = |name: &[u8], flags| {
            let at = bench.memory(name);
            let args = [at, name.len() as u64, flags, result];
            let returned = bench.call(id::kallsyms_lookup_name, args).unwrap();
            (returned, bench.machine.space.load(result, 8).unwrap())
        };
        assert_eq!(ask(b"panic_timeout\0", 0), (0, timeout.address()));
        assert_eq!(ask(b"nothing\0", 0), (Errno::ENOENT.to_ret(), 0));
        for (name, flags) in [(&b"x\0"[..], 1), (b"x", 0), (b"\0", 0)] {
            assert_eq!(ask(name, flags), (Errno::EINVAL.to_ret(), 0));
        }
    }

    #[test]
    fn types_are_found_by_name_and_kind() {
        let (mut bench, btf) = bench();
        let at = bench.memory(b"rq\0");
        let mut ask = |kind, flags| bench.call(id::btf_find_by_name_kind, [at, 3, kind, flags]);
        let rq = btf.find("rq", Kind::Struct).unwrap().id();
        assert_eq!(ask(4, 0), Ok(rq.0.into()));
        assert_eq!(ask(5, 0), Ok(Errno::ENOENT.to_ret()));
        assert_eq!(ask(300, 0), Ok(Errno::ENOENT.to_ret()));
        assert_eq!(ask(4, 1), Ok(Errno::EINVAL.to_ret()));
    }
}
