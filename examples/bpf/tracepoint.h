// The head of every tracepoint's record (struct trace_entry,
// include/linux/trace_events.h). Programs don't read it, but it is where the fields
// behind it begin.
#ifndef TRACEPOINT_H
#define TRACEPOINT_H

struct trace_entry {
	unsigned short type;
	unsigned char flags;
	unsigned char preempt_count;
	int pid;
} __attribute__((preserve_access_index));

#endif
