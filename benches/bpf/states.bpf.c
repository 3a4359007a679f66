// A state machine of nested `switch`: counts numbers, words, quoted texts and comments
// in a source. The memory has a word, then the source.
// flags: -mcpu=v3 -fno-jump-tables
#include "bench.h"

enum state { BLANK, NUMBER, WORD, TEXT, ESCAPE, SLASH, COMMENT, OTHER };
enum class { SPACE, DIGIT, LETTER, QUOTE, BACKSLASH, DIVIDE, NEWLINE, REST };

INLINED enum class class_of(u8 byte)
{
	switch (byte) {
	case ' ':
	case '\t':
		return SPACE;
	case '0' ... '9':
		return DIGIT;
	case 'A' ... 'Z':
	case 'a' ... 'z':
	case '_':
		return LETTER;
	case '"':
		return QUOTE;
	case '\\':
		return BACKSLASH;
	case '/':
		return DIVIDE;
	case '\n':
		return NEWLINE;
	default:
		return REST;
	}
}

// The next state outside of texts and comments.
INLINED enum state begin(enum class class)
{
	switch (class) {
	case SPACE:
	case NEWLINE:
		return BLANK;
	case DIGIT:
		return NUMBER;
	case LETTER:
		return WORD;
	case QUOTE:
		return TEXT;
	case DIVIDE:
		return SLASH;
	default:
		return OTHER;
	}
}

INLINED enum state next(enum state state, enum class class)
{
	switch (state) {
	case TEXT:
		switch (class) {
		case QUOTE:
			return OTHER;
		case BACKSLASH:
			return ESCAPE;
		default:
			return TEXT;
		}
	case ESCAPE:
		return TEXT;
	case COMMENT:
		return class == NEWLINE ? BLANK : COMMENT;
	case SLASH:
		return class == DIVIDE ? COMMENT : begin(class);
	case WORD:
		return class == DIGIT ? WORD : begin(class);
	default:
		return begin(class);
	}
}

#define SOURCE 8

INLINED u64 states_body(u8 *data, u64 length)
{
	// Passing the class through memory hides its value: otherwise verifiers explore
	// the rest of the program for each class.
	volatile u8 *class = data;
	enum state state = BLANK;
	u64 numbers = 0, words = 0, texts = 0, comments = 0;

	for (u32 i = SOURCE; i < length; i++) {
		enum state was = state;

		*class = class_of(data[i]);
		state = next(state, *class);
		if (state == was)
			continue;
		switch (state) {
		case NUMBER:
			numbers++;
			break;
		case WORD:
			words++;
			break;
		case TEXT:
			texts += was != ESCAPE;
			break;
		case COMMENT:
			comments++;
			break;
		default:
			break;
		}
	}
	return ((numbers * 1000 + words) * 1000 + texts) * 1000 + comments;
}

ON_MEMORY(states, SOURCE + 256)
