/* SPDX-License-Identifier: MIT */
/*
 * The verbs of sbx-admin as a table: what each takes, which operation of sandboxd it is or what it
 * does by itself, and how people see its result. Parsing, help and suggestions follow from it.
 */
#ifndef SBX_ADMIN_VERB_H
#define SBX_ADMIN_VERB_H

#include "sbx/json.h"

#include "show.h"

enum param_type {
	PARAM_STRING,
	PARAM_PATH,     /* of the host: made absolute */
	PARAM_ROOTFS,   /* "host", or a path of the host */
	PARAM_COUNT,    /* 1, 2, 3 ... */
	PARAM_SIZE,     /* bytes: 512M, 2G */
	PARAM_CORES,    /* 1.5 → 150 hundredths */
	PARAM_CHOICE,   /* one of the words in metavar, which are separated by '|' */
	PARAM_FLAG,     /* an option without a value */
	PARAM_ALLOW,    /* CIDR[:PORT]; may be given several times: an array */
	PARAM_VERSIONS, /* FROM or FROM..TO; passed over when the word is nothing like it */
};

enum param_flags {
	PARAM_REQUIRED = 1 << 0,
};

struct param {
	const char *name;    /* "ID", or "--at" of an option; NULL ends the list */
	const char *metavar; /* of an option's value; NULL: a flag, or not an option */
	const char *key;     /* its member in the parsed arguments; PARAM_VERSIONS: "from", "to" */
	const char *help;
	enum param_type type;
	enum param_flags flags;
	char letter; /* -f; 0: none */
};

struct call;
struct verb {
	const char *name; /* "list", "session create"; NULL ends the table */
	const char *summary;
	const struct param *params;
	const char *example; /* what comes after "sbx-admin " */
	const char *op;      /* of sandboxd; NULL: run does it */
	/* Fills the result, or err and maybe details; both the caller's to put. */
	int (*run)(const struct call *call, struct json_object **ret_result,
		struct json_object **ret_details, struct sbx_err *err);
	const struct view *view; /* how people see the result */
	/* Instead of view, for results that are more than fields and lists. */
	int (*print)(const struct call *call, struct json_object *result, struct sbx_buf *out,
		struct sbx_err *err);
	const char *notes; /* more paragraphs of help; may be NULL */
};

extern const struct verb sbx_admin_verbs[];

/* A parsed command line. */
struct call {
	const struct verb *verb;  /* NULL: only help or version */
	struct json_object *args; /* as the operation takes them */
	const char *group;        /* help for "session" and the like, borrowed from argv; or NULL */
	bool json;
	bool help;
	bool version;
};
#define CALL_INIT ((struct call){0})
void sbx_admin_call_done(struct call *call);

/* argv[0] is the program. Relative host paths are taken from cwd. SBX_KIND_INVALID: usage. */
int sbx_admin_parse(
	int argc, char *const argv[], const char *cwd, struct call *ret, struct sbx_err *err);

/* Help for one verb, for a group ("session"), or for all (NULL, NULL). */
int sbx_admin_help(const struct verb *verb, const char *group, struct sbx_buf *out);
/* "create --workspace DIR [--id ID] ..." */
int sbx_admin_synopsis(const struct verb *verb, struct sbx_buf *out);

#endif
