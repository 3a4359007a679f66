// A server with a recursive function for uprobes, and USDT probes with arguments in registers,
// in memory and as constants.
#include <stdio.h>
#include <stdlib.h>

// A USDT probe: a nop, and a note with its address, as <sys/sdt.h> emits them.
#define MARKER(name, semaphore, places, ...)                                  \
	__asm__ volatile("990: nop\n"                                         \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"       \
			 ".balign 4\n"                                        \
			 ".4byte 992f - 991f, 994f - 993f, 3\n"               \
			 "991: .asciz \"stapsdt\"\n"                          \
			 "992: .balign 4\n"                                   \
			 "993: .8byte 990b\n"                                 \
			 ".8byte _.stapsdt.base\n"                            \
			 ".8byte " semaphore "\n"                             \
			 ".asciz \"server\"\n"                                \
			 ".asciz \"" name "\"\n"                              \
			 ".asciz \"" places "\"\n"                            \
			 "994: .balign 4\n"                                   \
			 ".popsection\n"                                      \
			 :                                                    \
			 : __VA_ARGS__)

__asm__(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n");

// The semaphore: the kernel counts the tracers of `request__done` here.
__extension__ volatile unsigned short done_semaphore __attribute__((section(".probes"), used));

__attribute__((noinline)) int handle_request(int depth)
{
	volatile int inner = depth ? handle_request(depth - 1) : 0;

	return inner + 1;
}

static __attribute__((noinline)) void request(unsigned long id, int status)
{
	const char *volatile path = status < 400 ? "/index" : "/missing";

	// Programs that can't sleep read only pages that are in memory.
	if (*path != '/')
		abort();
	MARKER("request__start", "0", "8@%0 8@%1", "r"(id), "m"(path));
	handle_request(2);
	if (!done_semaphore)
		return;
	if (status < 400)
		MARKER("request__done", "done_semaphore", "8@%0 -4@%1", "r"(id), "i"(200));
	else
		MARKER("request__done", "done_semaphore", "8@%0 -4@%1", "m"(id), "r"(status));
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;

	for (unsigned long id = 0; id < count; id++)
		request(id, id % 2 ? 404 : 200);
	printf("%d\n", done_semaphore);
	return 0;
}
