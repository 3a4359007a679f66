/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Tests beside the programs, in C, which `bpflab test` runs:
 *
 *	#include <bpflab/test.h>
 *
 *	BPF_TEST(large_writes_are_counted, "args[2]=4096", "args[2]=8192, @pid=7")
 *	{
 *		TEST_EQ(large, 2);
 *	}
 *
 * A test has a machine of its own, with the object's programs. Its events happen first: each is a
 * text of fields of the event, and of keys that begin with @, as in a file of tests
 * (docs/test-files.md); "" is an event whose fields are zero. Then the body checks. It is a program
 * of type syscall: it reads global variables and maps, and the verifier judges it.
 *
 * The section begins with '?', so libbpf does not load tests with the programs; with
 * -DBPFLAB_NO_TESTS they are not in the object. The events are declaration tags in BTF: compile
 * with clang 14 or later, and with -g.
 */
#ifndef BPFLAB_TEST_H
#define BPFLAB_TEST_H

#include <bpf/bpf_helpers.h>

/* Defines a test: its name, and up to 8 events. */
#ifdef BPFLAB_NO_TESTS
#define BPF_TEST(name, ...)								\
	static __attribute__((unused)) __always_inline					\
	void bpflab_body_##name(int *bpflab_failed)
#else
#define BPF_TEST(name, ...)								\
	static __always_inline void bpflab_body_##name(int *bpflab_failed);		\
	SEC("?syscall")									\
	__attribute__((btf_decl_tag("bpflab:test")))					\
	BPFLAB_EVENTS(__VA_ARGS__)							\
	int name(void *ctx)								\
	{										\
		int failed = 0;								\
		bpflab_body_##name(&failed);						\
		return failed;								\
	}										\
	static __always_inline void bpflab_body_##name(int *bpflab_failed)
#endif

/* Fails the test, and ends it, unless the condition is true. */
#define TEST_ASSERT(condition)								\
	do {										\
		if (!(condition)) {							\
			bpf_printk("%s is false", BPFLAB_PLACE #condition);		\
			*bpflab_failed = __LINE__;					\
			return;								\
		}									\
	} while (0)

/* Fail the test, and end it, unless two numbers compare as named; the message has both. */
#define TEST_EQ(left, right) BPFLAB_COMPARE(left, ==, right)
#define TEST_NE(left, right) BPFLAB_COMPARE(left, !=, right)
#define TEST_LT(left, right) BPFLAB_COMPARE(left, <, right)
#define TEST_LE(left, right) BPFLAB_COMPARE(left, <=, right)
#define TEST_GT(left, right) BPFLAB_COMPARE(left, >, right)
#define TEST_GE(left, right) BPFLAB_COMPARE(left, >=, right)

/* What follows is not for use in tests. */

#define BPFLAB_COMPARE(left, sign, right)						\
	do {										\
		__typeof__(left) bpflab_left = (left);					\
		__typeof__(right) bpflab_right = (right);				\
		if (!(bpflab_left sign bpflab_right)) {					\
			bpf_printk("%s: found %lld and %lld",				\
				   BPFLAB_PLACE #left " " #sign " " #right,		\
				   (long long)bpflab_left, (long long)bpflab_right);	\
			*bpflab_failed = __LINE__;					\
			return;								\
		}									\
	} while (0)

#define BPFLAB_PLACE __FILE_NAME__ ":" BPFLAB_TEXT(__LINE__) ": "
#define BPFLAB_TEXT(line) BPFLAB_TEXT_(line)
#define BPFLAB_TEXT_(line) #line

/* Tags are not in the order of the source: each has its number. */
#define BPFLAB_EVENT(number, event)							\
	__attribute__((btf_decl_tag("bpflab:event:" #number ":" event)))
#define BPFLAB_EVENTS(...)								\
	BPFLAB_PICK(_, ##__VA_ARGS__, BPFLAB_8, BPFLAB_7, BPFLAB_6, BPFLAB_5, BPFLAB_4,	\
		    BPFLAB_3, BPFLAB_2, BPFLAB_1, BPFLAB_0)(__VA_ARGS__)
#define BPFLAB_PICK(_, _1, _2, _3, _4, _5, _6, _7, _8, pick, ...) pick
#define BPFLAB_0(...)
#define BPFLAB_1(a) BPFLAB_EVENT(1, a)
#define BPFLAB_2(a, b) BPFLAB_1(a) BPFLAB_EVENT(2, b)
#define BPFLAB_3(a, b, c) BPFLAB_2(a, b) BPFLAB_EVENT(3, c)
#define BPFLAB_4(a, b, c, d) BPFLAB_3(a, b, c) BPFLAB_EVENT(4, d)
#define BPFLAB_5(a, b, c, d, e) BPFLAB_4(a, b, c, d) BPFLAB_EVENT(5, e)
#define BPFLAB_6(a, b, c, d, e, f) BPFLAB_5(a, b, c, d, e) BPFLAB_EVENT(6, f)
#define BPFLAB_7(a, b, c, d, e, f, g) BPFLAB_6(a, b, c, d, e, f) BPFLAB_EVENT(7, g)
#define BPFLAB_8(a, b, c, d, e, f, g, h) BPFLAB_7(a, b, c, d, e, f, g) BPFLAB_EVENT(8, h)

#endif
