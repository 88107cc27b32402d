/* SPDX-License-Identifier: MIT */
/*
 * tool VERB ARGUMENTS: what the escape tests need done quickly or exactly. Verbs that try
 * something print the name of the error, or "allowed".
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void say(int e)
{
	puts(e ? strerrorname_np(e) : "allowed");
}

/* write PATH: opens a file for writing, and writes one byte if that goes. */
static void verb_write(char **args)
{
	int fd = open(args[0], O_WRONLY | O_CLOEXEC);

	say(fd < 0 || write(fd, "1", 1) < 0 ? errno : 0);
}

/* reopen PATH: opens for writing through the descriptor of a harmless open. */
static void verb_reopen(char **args)
{
	int fd = open(args[0], O_PATH | O_CLOEXEC);
	char path[64];

	if (fd < 0) {
		say(errno);
		return;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	say(open(path, O_WRONLY | O_CLOEXEC) < 0 ? errno : 0);
}

/* run PATH: executes a file. */
static void verb_run(char **args)
{
	execl(args[0], args[0], "--version", (char *)NULL);
	say(errno);
}

/* fds: every descriptor that this program was born with, with its file. */
static void verb_fds(char **args)
{
	DIR *dir = opendir("/proc/self/fd");
	char target[4096];

	(void)args;
	if (!dir)
		die("/proc/self/fd");
	for (struct dirent *e; (e = readdir(dir));) {
		ssize_t n;

		if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(dir))
			continue;
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target));
		printf("%s %.*s\n", e->d_name, n < 0 ? 0 : (int)n, target);
	}
	(void)closedir(dir); /* only read */
}

/* breakout: out of a chroot by a directory that was open before, then upwards. */
static void verb_breakout(char **args)
{
	struct stat before, after;
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)args;
	if (root < 0 || fstat(root, &before) < 0 || (mkdir("/tmp/c", 0755) < 0 && errno != EEXIST))
		die("breakout");
	if (chroot("/tmp/c") < 0 || fchdir(root) < 0)
		die("chroot");
	for (int i = 0; i < 64; i++)
		if (chdir("..") < 0)
			die("chdir");
	if (chroot(".") < 0 || stat("/", &after) < 0)
		die("chroot");
	puts(before.st_dev == after.st_dev && before.st_ino == after.st_ino ? "inside" : "outside");
}

static socklen_t abstract_address(const char *name, struct sockaddr_un *a)
{
	size_t n = strlen(name);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, n < sizeof(a->sun_path) - 1 ? n : sizeof(a->sun_path) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* listen NAME: an abstract socket, open until this program's standard input ends. */
static void verb_listen(char **args)
{
	struct sockaddr_un a;
	socklen_t n = abstract_address(args[0], &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char byte;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 8) < 0)
		die("listen");
	puts("listening");
	(void)fflush(stdout);
	while (read(0, &byte, 1) > 0)
		continue;
}

/* socket PATH: leaves a socket in the file system. */
static void verb_socket(char **args)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", args[0]);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("bind");
}

/* connect NAME: to an abstract socket. */
static void verb_connect(char **args)
{
	struct sockaddr_un a;
	socklen_t n = abstract_address(args[0], &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	say(fd < 0 || connect(fd, (struct sockaddr *)&a, n) < 0 ? errno : 0);
}

/* connect-path PATH: to a socket in the file system. */
static void verb_connect_path(char **args)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", args[0]);
	say(fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0);
}

/* connect-tcp ADDRESS PORT */
static void verb_connect_tcp(char **args)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[1]))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, args[0], &a.sin_addr) != 1)
		die("address");
	say(fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? errno : 0);
}

/* swap A B SECONDS: exchanges two names as fast as it goes. */
static void verb_swap(char **args)
{
	time_t end = time(NULL) + atoi(args[2]);
	long n = 0;

	for (; time(NULL) < end; n++)
		if (renameat2(AT_FDCWD, args[0], AT_FDCWD, args[1], RENAME_EXCHANGE) < 0)
			die("swap");
	printf("swapped %s\n", n > 100 ? "often" : "seldom");
}

/* deep N: directories in each other, below the working directory. */
static void verb_deep(char **args)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (long i = atol(args[0]); i > 0; i--) {
		int next;

		if (mkdirat(fd, "d", 0755) < 0)
			die("mkdir");
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (next < 0)
			die("open");
		(void)close(fd);
		fd = next;
	}
	if (mknodat(fd, "bottom", S_IFREG | 0644, 0) < 0)
		die("bottom");
}

/* depth: how deep the chain made by deep is, and whether its bottom is there. */
static void verb_depth(char **args)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;
	long n = 0;

	(void)args;
	for (; (next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0; n++) {
		(void)close(fd);
		fd = next;
	}
	printf("%ld %s\n", n, faccessat(fd, "bottom", F_OK, 0) == 0 ? "bottom" : "nothing");
}

/* many DIRECTORY N: that many empty files. */
static void verb_many(char **args)
{
	char name[32];
	int fd;

	if (mkdir(args[0], 0755) < 0)
		die("mkdir");
	fd = open(args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (long i = atol(args[1]); i > 0; i--) {
		(void)snprintf(name, sizeof(name), "f%ld", i);
		if (mknodat(fd, name, S_IFREG | 0644, 0) < 0)
			die("mknod");
	}
}

/* links FILE N: that many more names for a file. */
static void verb_links(char **args)
{
	char name[64];

	for (long i = atol(args[1]); i > 0; i--) {
		(void)snprintf(name, sizeof(name), "%.32s%ld", args[0], i);
		if (link(args[0], name) < 0)
			die("link");
	}
}

static const struct verb {
	const char *name;
	int n_args;
	void (*run)(char **args);
} verbs[] = {
	{"write", 1, verb_write},
	{"reopen", 1, verb_reopen},
	{"run", 1, verb_run},
	{"fds", 0, verb_fds},
	{"breakout", 0, verb_breakout},
	{"listen", 1, verb_listen},
	{"socket", 1, verb_socket},
	{"connect", 1, verb_connect},
	{"connect-path", 1, verb_connect_path},
	{"connect-tcp", 2, verb_connect_tcp},
	{"swap", 3, verb_swap},
	{"deep", 1, verb_deep},
	{"depth", 0, verb_depth},
	{"many", 2, verb_many},
	{"links", 2, verb_links},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (argc >= 2 && !strcmp(argv[1], verbs[i].name) && argc == 2 + verbs[i].n_args) {
			verbs[i].run(argv + 2);
			return 0;
		}
	(void)fprintf(stderr, "usage: tool VERB ARGUMENTS\n");
	return 2;
}
