// The C interface of llvmbpf that benches/suite/llvmbpf.rs calls. docs/peers.md says how to build
// it with llvmbpf's sources into a library, which BPFLAB_LLVMBPF names.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <spdlog/spdlog.h>

#include "llvmbpf.hpp"

using bpftime::llvmbpf_vm;

namespace
{

// Copies an error into a buffer of `size` bytes, as a string that ends in a zero.
void tell(const std::string &error, char *buffer, size_t size)
{
	if (size == 0)
		return;
	std::strncpy(buffer, error.c_str(), size - 1);
	buffer[size - 1] = 0;
}

} // namespace

extern "C" {

// Compiles a program of `size` bytes. Returns the virtual machine and its machine code; or null, and
// the reason in `error`.
void *bpflab_llvmbpf_compile(const void *code, size_t size,
			     uint64_t (**function)(void *, size_t), char *error,
			     size_t error_size)
{
	// It logs to standard output.
	spdlog::set_level(spdlog::level::off);
	try {
		auto vm = std::make_unique<llvmbpf_vm>();
		if (vm->load_code(code, size) == 0) {
			if (auto compiled = vm->compile()) {
				*function = *compiled;
				return vm.release();
			}
		}
		tell(vm->get_error_message(), error, error_size);
	} catch (const std::exception &e) {
		tell(e.what(), error, error_size);
	}
	return nullptr;
}

// Frees a virtual machine with its machine code.
void bpflab_llvmbpf_destroy(void *vm)
{
	delete static_cast<llvmbpf_vm *>(vm);
}
}
