// The head of every tracepoint's record (struct trace_entry,
// include/linux/trace_events.h). Programs don't read it, but the fields start
// after it.
#ifndef TRACEPOINT_H
#define TRACEPOINT_H

struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
} __attribute__((preserve_access_index));

#endif
