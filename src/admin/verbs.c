/* SPDX-License-Identifier: MIT */
/* The verbs, in the order of the help. */
#include "local.h"
#include "print.h"
#include "remote.h"
#include "verb.h"

#define SANDBOX                                                                                    \
	{                                                                                          \
		.name = "ID", .key = "sandbox_id", .help = "the sandbox", .flags = PARAM_REQUIRED  \
	}
#define THING(n, k, h)                                                                             \
	{                                                                                          \
		.name = n, .key = k, .help = h, .flags = PARAM_REQUIRED                            \
	}
#define SESSION THING("SESSION", "workspace_session_id", "the workspace session (ws_...)")
#define COMMAND THING("COMMAND", "command_session_id", "the command (cmd_...)")
#define REJECT  THING("REJECT", "reject_id", "the reject (rej_...)")
#define PATH    THING("PATH", "path", "relative to the workspace root, or absolute under it")
#define DEST(h)                                                                                    \
	{                                                                                          \
		.name = "DEST", .key = "dest", .help = h, .type = PARAM_PATH,                      \
		.flags = PARAM_REQUIRED                                                            \
	}
#define AT                                                                                         \
	{                                                                                          \
		.name = "--at", .metavar = "VERSION", .key = "at",                                 \
		.help = "as it was at this version (default: the newest)", .type = PARAM_COUNT     \
	}
#define FORCE(h)                                                                                   \
	{                                                                                          \
		.name = "--force", .key = "force", .help = h, .type = PARAM_FLAG                   \
	}
#define END                                                                                        \
	{                                                                                          \
		.name = NULL                                                                       \
	}

static const struct param create_params[] = {
	{.name = "--workspace",
		.metavar = "DIR",
		.key = "workspace",
		.help = "the project; imported as the base layer and never changed",
		.type = PARAM_PATH,
		.flags = PARAM_REQUIRED},
	{.name = "--id", .metavar = "ID", .key = "id", .help = "its name (default: a random one)"},
	{.name = "--root-at",
		.metavar = "PATH",
		.key = "root_at",
		.help = "where commands see the project (default: /workspace)"},
	{.name = "--rootfs",
		.metavar = "host|DIR",
		.key = "rootfs",
		.help = "the host's /usr and /etc (default), or an unpacked image, not changed",
		.type = PARAM_ROOTFS},
	{.name = "--network",
		.metavar = "none|host|bridge",
		.key = "network",
		.help = "default: none, the loopback only; bridge: the open internet",
		.type = PARAM_CHOICE},
	{.name = "--allow",
		.metavar = "CIDR[:PORT]",
		.key = "allow",
		.help = "also open to bridge; may be given several times",
		.type = PARAM_ALLOW},
	{.name = "--seccomp",
		.metavar = "FILE",
		.key = "seccomp",
		.help = "a system call policy of your own, in place of the default; copied",
		.type = PARAM_PATH},
	{.name = "--memory-max",
		.metavar = "N",
		.key = "memory_max",
		.help = "memory of each session, e.g. 2G (default: 80 % of the host)",
		.type = PARAM_SIZE},
	{.name = "--pids-max",
		.metavar = "N",
		.key = "pids_max",
		.help = "processes and threads of each session (default: 4096)",
		.type = PARAM_COUNT},
	{.name = "--cpu-max",
		.metavar = "N",
		.key = "cpu_max",
		.help = "cores of each session, e.g. 1.5 (default: no limit)",
		.type = PARAM_CORES},
	{.name = "--disk-max",
		.metavar = "N",
		.key = "disk_max",
		.help = "what each session may write to disk, e.g. 20G (default: no limit)",
		.type = PARAM_SIZE},
	{.name = "--inodes-max",
		.metavar = "N",
		.key = "inodes_max",
		.help = "files that each session may have on disk (default: no limit)",
		.type = PARAM_COUNT},
	{.name = "--history-max",
		.metavar = "N",
		.key = "history_max",
		.help = "disk that only older versions need, e.g. 10G (default: 4G)",
		.type = PARAM_SIZE},
	END,
};

static const struct param no_params[] = {END};
static const struct param sandbox_params[] = {SANDBOX, END};
static const struct param destroy_params[] = {
	SANDBOX, FORCE("also when commands run or sessions have work that is not published"), END};
static const struct param layer_params[] = {
	SANDBOX, THING("LAYER", "layer_id", "the layer (layer_...)"), END};
static const struct param diff_params[] = {
	SANDBOX,
	{.name = "FROM[..TO]",
		.key = "from",
		.help = "versions (default: from the base, version 1, to the newest)",
		.type = PARAM_VERSIONS},
	{.name = "PATH", .key = "path", .help = "only this file or directory"},
	END,
};
static const struct param path_params[] = {SANDBOX, PATH, END};
static const struct param path_at_params[] = {SANDBOX, PATH, AT, END};
static const struct param ls_params[] = {
	SANDBOX, {.name = "DIR", .key = "path", .help = "default: the workspace root"}, AT, END};
static const struct param session_params[] = {SANDBOX, SESSION, END};
static const struct param session_publish_params[] = {
	SANDBOX, SESSION, FORCE("also while commands run in it: they are killed"), END};
static const struct param command_params[] = {SANDBOX, COMMAND, END};
static const struct param command_tail_params[] = {
	SANDBOX,
	COMMAND,
	{.name = "--follow",
		.key = "follow",
		.help = "wait for more until the command has ended",
		.type = PARAM_FLAG,
		.letter = 'f'},
	END,
};
static const struct param reject_params[] = {SANDBOX, REJECT, END};
static const struct param reject_export_params[] = {
	SANDBOX, REJECT, DEST("a directory that does not exist yet"), END};
static const struct param export_params[] = {
	SANDBOX,
	DEST("what to make; must not exist yet"),
	{.name = "--format",
		.metavar = "dir|tar|oci",
		.key = "format",
		.help = "a directory (default), a tar file, or an OCI image layout",
		.type = PARAM_CHOICE},
	END,
};

#define ONLY(...)  ((const struct column[]){__VA_ARGS__, {NULL, NULL}})
#define LISTS(...) ((const struct list[]){__VA_ARGS__, {NULL, NULL, NULL}})

static const struct list no_lists[] = {{NULL, NULL, NULL}};

static const struct view list_view = {
	.lists = LISTS({"sandboxes",
		ONLY({"sandbox_id", "SANDBOX"}, {"running", "RUNNING"}, {"created_ns", "CREATED"},
			{"network", "NETWORK"}, {"root_at", "WORKSPACE"},
			{"source", "IMPORTED FROM"}, {"problem", "PROBLEM"}),
		"no sandboxes; 'sbx-admin create --workspace DIR' makes one"}),
};

static const struct view create_view = {
	.fields = ONLY({"sandbox_id", "sandbox"}, {"source", "imported from"},
		{"entries", "entries"}, {"bytes", "size"}, {"root_at", "workspace inside"},
		{"rootfs", "root file system"}, {"network", "network"}, {"allow", "allowed"},
		{"seccomp_profile", "system call policy"}, {"memory_max", "memory"},
		{"pids_max", "processes"}, {"cpu_max", "cpu"}, {"disk_max", "disk"},
		{"inodes_max", "files on disk"}, {"history_max", "history"}),
	.lists = no_lists,
};

static const struct view inspect_view = {
	.fields = ONLY({"sandbox_id", "sandbox"}, {"version", "version"},
		{"oldest_version", "oldest version"}, {"layer_count", "layers"},
		{"session_count", "sessions"}, {"running_command_count", "commands running"},
		{"publications_pending", "publications pending"}, {"client_count", "clients"},
		{"root_at", "workspace inside"}, {"source", "imported from"},
		{"rootfs", "root file system"}, {"network", "network"}, {"allow", "allowed"},
		{"seccomp_profile", "system call policy"}, {"memory_max", "memory"},
		{"pids_max", "processes"}, {"cpu_max", "cpu"}, {"disk_max", "disk"},
		{"inodes_max", "files on disk"}, {"history_max", "history"},
		{"owner_uid", "owner uid"}, {"created_ns", "created"}, {"daemon_pid", "daemon pid"},
		{"daemon_uptime_seconds", "daemon up"}),
};

static const struct view layers_view = {
	.fields = ONLY({"version", "version"}),
	.lists = LISTS({"layers",
		ONLY({"layer_id", "LAYER"}, {"created_ns", "CREATED"}, {"added", "ADDED"},
			{"modified", "MODIFIED"}, {"deleted", "DELETED"}, {"merged", "MERGED"},
			{"owner", "OWNER"}, {"command", "COMMAND"}),
		"no layers"}),
};

static const struct view layer_view = {
	.lists = LISTS({"paths", ONLY({"change", "CHANGE"}, {"kind", "KIND"}, {"path", "PATH"}),
		"no paths"}),
};

static const struct view log_view = {
	.fields = ONLY({"path", "path"}),
	.lists = LISTS({"versions",
		ONLY({"version", "VERSION"}, {"change", "CHANGE"}, {"created_ns", "CREATED"},
			{"layer_id", "LAYER"}, {"owner", "OWNER"}, {"command", "COMMAND"}),
		"no version has changed it"}),
};

static const struct view ls_view = {
	.lists = LISTS({"entries",
		ONLY({"kind", "KIND"}, {"mode", "MODE"}, {"uid", "UID"}, {"gid", "GID"},
			{"size", "SIZE"}, {"mtime_ns", "MODIFIED"}, {"name", "NAME"},
			{"target", "TARGET"}),
		"the directory is empty"}),
};

static const struct view session_list_view = {
	.lists = LISTS({"sessions",
		ONLY({"workspace_session_id", "SESSION"}, {"kind", "KIND"}, {"state", "STATE"},
			{"version", "VERSION"}, {"created_ns", "CREATED"},
			{"command_session_ids", "COMMANDS"}),
		"no sessions"}),
};

static const struct view command_list_view = {
	.lists = LISTS({"commands",
		ONLY({"command_session_id", "COMMAND"}, {"status", "STATUS"}, {"exit_code", "EXIT"},
			{"started_ns", "STARTED"}, {"command_total_time_seconds", "TIME"},
			{"total_lines", "ROWS"}, {"workspace_session_id", "SESSION"},
			{"command", "TEXT"}),
		"no commands"}),
};

static const struct view reject_list_view = {
	.lists = LISTS({"rejects",
		ONLY({"reject_id", "REJECT"}, {"class", "CLASS"}, {"created_ns", "CREATED"},
			{"n_conflicts", "CONFLICTS"}, {"owner", "OWNER"}, {"command", "COMMAND"}),
		"no rejects"}),
};

static const struct view reject_view = {
	.fields = ONLY({"reject_id", "reject"}, {"class", "class"}, {"owner", "owner"},
		{"command", "command"}, {"created_ns", "created"},
		{"base_version", "began at version"}, {"version", "met version"},
		{"n_conflicts", "conflicts"}, {"message", "message"}),
	.lists = LISTS({"conflicts", sbx_show_conflict_columns, NULL},
		{"paths", ONLY({"change", "CHANGE"}, {"kind", "KIND"}, {"path", "PATH"}), NULL}),
};

static const struct view verify_view = {
	.lists = LISTS({"damages", NULL, "no damage"}),
};

static const struct view doctor_view = {
	.fields = ONLY({"kernel", "kernel"}, {"usable", "sandboxes can run"}),
	.lists =
		LISTS({"features",
			      ONLY({"feature", "FEATURE"}, {"state", "STATE"}, {"detail", "DETAIL"},
				      {"instead", "USED INSTEAD"}, {"why", "NEEDED FOR"}),
			      NULL},
			{"walls",
				ONLY({"wall", "WALL"}, {"in_force", "IN FORCE"}, {"stops", "STOPS"},
					{"why", "WHY"}),
				NULL}),
};

/* One verb, one paragraph. */
/* clang-format off */
const struct verb sbx_admin_verbs[] = {
	{"create", "Make a sandbox from a directory.", create_params,
	 "create --workspace ~/src/project --id project",
	 .run = sbx_admin_create, .view = &create_view, .print = sbx_admin_print_created,
	 .notes = "The directory is copied (by reflink where the file system can) and never\n"
		  "changed; 'export' writes the published state back out."},
	{"list", "List the sandboxes.", no_params,
	 "list", .run = sbx_admin_list, .view = &list_view},
	{"inspect", "Show one sandbox.", sandbox_params,
	 "inspect project", .op = "inspect", .view = &inspect_view},
	{"destroy", "Remove a sandbox with everything in it.", destroy_params,
	 "destroy project", .run = sbx_admin_destroy},
	{"layers", "List the layers of the head, the newest last.", sandbox_params,
	 "layers project", .op = "layers", .view = &layers_view},
	{"layer", "Show one layer and the paths that it changed.", layer_params,
	 "layer project layer_3k2m5n7q2s4u6w7y3a5c", .op = "layer", .view = &layer_view},
	{"diff", "Show what changed between two versions.", diff_params,
	 "diff project 3..5 src/main.c", .op = "diff", .print = sbx_admin_print_diff},
	{"log", "List the versions that changed a file.", path_params,
	 "log project src/main.c", .op = "log", .view = &log_view},
	{"blame", "Show who owns each line of a file.", path_at_params,
	 "blame project src/main.c --at 3",
	 .op = "blame", .run = sbx_admin_blame, .print = sbx_admin_print_blame},
	{"cat", "Print a file.", path_at_params,
	 "cat project src/main.c --at 3", .op = "cat", .print = sbx_admin_print_nothing},
	{"ls", "List a directory.", ls_params,
	 "ls project src", .op = "ls", .view = &ls_view},
	{"session create", "Make a managed session on the newest version.", sandbox_params,
	 "session create project", .op = "session_create"},
	{"session list", "List the sessions.", sandbox_params,
	 "session list project", .op = "session_list", .view = &session_list_view},
	{"session show", "Show one session.", session_params,
	 "session show project ws_3k2m5n7q2s4u6w7y3a5c", .op = "session_show"},
	{"session diff", "Show what publishing a session would change.", session_params,
	 "session diff project ws_3k2m5n7q2s4u6w7y3a5c",
	 .op = "session_diff", .print = sbx_admin_print_diff},
	{"session publish", "Publish a managed session and end it.", session_publish_params,
	 "session publish project ws_3k2m5n7q2s4u6w7y3a5c",
	 .op = "session_publish", .print = sbx_admin_print_publish},
	{"session discard", "End a managed session and drop what it changed.", session_publish_params,
	 "session discard project ws_3k2m5n7q2s4u6w7y3a5c", .op = "session_discard"},
	{"command list", "List the commands.", sandbox_params,
	 "command list project", .op = "command_list", .view = &command_list_view},
	{"command show", "Show one command.", command_params,
	 "command show project cmd_3k2m5n7q2s4u6w7y3a5c", .op = "command_show"},
	{"command tail", "Print the last rows of a command's output.", command_tail_params,
	 "command tail project cmd_3k2m5n7q2s4u6w7y3a5c -f",
	 .op = "command_tail", .print = sbx_admin_print_nothing},
	{"command kill", "End a running command with everything that it started.", command_params,
	 "command kill project cmd_3k2m5n7q2s4u6w7y3a5c", .op = "command_kill"},
	{"reject list", "List the changes that could not be published.", sandbox_params,
	 "reject list project", .op = "reject_list", .view = &reject_list_view},
	{"reject show", "Show one reject and its conflicts.", reject_params,
	 "reject show project rej_3k2m5n7q2s4u6w7y3a5c",
	 .op = "reject_show", .view = &reject_view},
	{"reject diff", "Show what a reject would have changed.", reject_params,
	 "reject diff project rej_3k2m5n7q2s4u6w7y3a5c",
	 .op = "reject_diff", .print = sbx_admin_print_diff},
	{"reject export", "Write the files of a reject into a directory.", reject_export_params,
	 "reject export project rej_3k2m5n7q2s4u6w7y3a5c /tmp/rejected", .op = "reject_export"},
	{"reject retry", "Try again to publish a reject, on the newest version.", reject_params,
	 "reject retry project rej_3k2m5n7q2s4u6w7y3a5c",
	 .op = "reject_retry", .print = sbx_admin_print_publish},
	{"reject drop", "Remove a reject for good.", reject_params,
	 "reject drop project rej_3k2m5n7q2s4u6w7y3a5c", .op = "reject_drop"},
	{"squash", "Flatten layers that no session needs apart.", sandbox_params,
	 "squash project", .op = "squash"},
	{"gc", "Forget old versions and remove what nothing refers to.", sandbox_params,
	 "gc project", .op = "gc"},
	{"verify", "Check every file of the store against its checksums.", sandbox_params,
	 "verify project", .op = "verify", .view = &verify_view},
	{"stat", "Show counters of the store and the daemon.", sandbox_params,
	 "stat project", .op = "stat"},
	{"export", "Write the published state out.", export_params,
	 "export project /tmp/project.tar --format tar", .op = "export"},
	{"doctor", "Check what this kernel and host offer, and which walls stand.", no_params,
	 "doctor", .run = sbx_admin_doctor, .view = &doctor_view},
	{.name = NULL},
};
/* clang-format on */
