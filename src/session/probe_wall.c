/* SPDX-License-Identifier: MIT */
/* Which walls stand on this host, from what could be tried. */
#include <stdio.h>
#include <string.h>

#include "sbx/probe.h"

static const struct wall {
	const char *name;
	const char *stops;
	const char *stands_on;
} walls[] = {
	[SBX_WALL_IDS] = {"Ids", "reading what only the host's root or users may read",
		"a user namespace per sandbox, on host ids that nobody has"},
	[SBX_WALL_NAMESPACES] = {"Namespaces", "seeing or touching other sessions; mounting",
		"mount, pid, ipc, uts and cgroup namespaces that the session does not own"},
	[SBX_WALL_INIT] = {"Init", "entering the host through pid 1 or its descriptors",
		"a pid 1 that never calls execve, has no rights and no descriptor of the host"},
	[SBX_WALL_ROOT] = {"Root file system", "changing the host, reading homes and state",
		"a read-only root with the host's /usr, /etc and /opt, or an image's own overlay"},
	[SBX_WALL_DEVICES] = {"/dev, /proc, /sys",
		"parameters of the kernel, devices, core_pattern",
		"six devices, a /proc that belongs to nobody inside, an empty /sys"},
	[SBX_WALL_CAPABILITIES] = {"Capabilities and privileges",
		"administration of any kind, setuid programs",
		"ten capabilities, inside the user namespace only, and no_new_privs"},
	[SBX_WALL_CALLS] = {"System calls", "most of the kernel's faults, keyrings, bpf, io_uring",
		"an allow-list that each session enters; create --seccomp for another"},
	[SBX_WALL_NETWORK] = {"Network",
		"other machines, services of the host and of other sessions",
		"a net namespace per session; a sandbox created with --network host has no such "
		"wall, by choice"},
	[SBX_WALL_BRIDGE] = {"Network: bridge",
		"with --network bridge: services of the host, closed networks, other sessions",
		"shut ports of the bridge and nftables rules; --allow opens them"},
	[SBX_WALL_LIMITS] = {"Limits", "taking memory, processes, CPU or disk from others",
		"control groups; the disk is watched (--disk-max, --inodes-max)"},
	[SBX_WALL_FILES] = {"Prepared files",
		"links, FIFOs and devices laid out for who reads them",
		"opening by descriptor, beneath the session's own directory, without links"},
	[SBX_WALL_MARKS] = {"Overlay marks", "hiding or replacing files of others by forged marks",
		"trusted.overlay attributes, which sessions cannot set"},
	[SBX_WALL_DAEMON] = {"Daemon", "other users' use of a sandbox, leading sandboxd astray",
		"SO_PEERCRED, and that who parses does not mount"},
};
_Static_assert(SBX_N_ELEMENTS(walls) == SBX_WALLS, "each wall is described");

static void note_missing(const struct sbx_probe *probe, struct sbx_wall_state *ret)
{
	size_t used = ret->in_force ? 0 : strlen(ret->why);
	char *at = ret->why + used;
	size_t room = sizeof(ret->why) - used;

	ret->in_force = false;
	(void)snprintf(at, room, "%s%s: %s%s%s", used ? "; " : "", probe->feature,
		*probe->detail ? probe->detail : "missing", probe->instead ? "; " : "",
		probe->instead ? probe->instead : ""); /* cut when many are missing */
}

void sbx_probe_walls(
	const struct sbx_probe *probes, size_t n, struct sbx_wall_state ret[static SBX_WALLS])
{
	for (size_t w = 0; w < SBX_WALLS; w++) {
		ret[w] = (struct sbx_wall_state){
			.wall = walls[w].name,
			.stops = walls[w].stops,
			.in_force = true,
		};
		for (size_t i = 0; i < n; i++)
			if (probes[i].state != SBX_PROBE_PRESENT && probes[i].walls & (1u << w))
				note_missing(&probes[i], &ret[w]);
		if (ret[w].in_force)
			(void)snprintf(ret[w].why, sizeof(ret[w].why), "%s", walls[w].stands_on);
	}
}
