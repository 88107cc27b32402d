/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/utsname.h>

#include "sbx/probe.h"
#include "sbx/store.h"

#include "local.h"

static struct json_object *row(const struct sbx_probe *probe)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	sbx_json_add_string(o, "feature", probe->feature);
	sbx_json_add_string(o, "state", sbx_probe_state_name(probe->state));
	sbx_json_add_string(o, "why", probe->why);
	sbx_json_add_string(
		o, "instead", probe->state == SBX_PROBE_INSTEAD ? probe->instead : NULL);
	sbx_json_add_string(o, "detail", *probe->detail ? probe->detail : NULL);
	return o;
}

static int add_rows(const struct sbx_probe *probes, size_t n, struct json_object *result)
{
	struct json_object *features = json_object_new_array();
	bool usable = true;

	if (!features)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = row(&probes[i]);

		usable = usable && probes[i].state != SBX_PROBE_MISSING;
		if (!o || json_object_array_add(features, o) < 0) {
			json_object_put(o);
			json_object_put(features);
			return -ENOMEM;
		}
	}
	sbx_json_add_bool(result, "usable", usable);
	sbx_json_add(result, "features", features);
	return 0;
}

static int add_walls(const struct sbx_probe *probes, size_t n, struct json_object *result)
{
	struct json_object *walls = json_object_new_array();
	struct sbx_wall_state states[SBX_WALLS];

	if (!walls)
		return -ENOMEM;
	sbx_json_add(result, "walls", walls);
	sbx_probe_walls(probes, n, states);
	for (size_t i = 0; i < SBX_WALLS; i++) {
		struct json_object *o = json_object_new_object();

		if (!o || json_object_array_add(walls, o) < 0) {
			json_object_put(o);
			return -ENOMEM;
		}
		sbx_json_add_string(o, "wall", states[i].wall);
		sbx_json_add_bool(o, "in_force", states[i].in_force);
		sbx_json_add_string(o, "why", states[i].why);
		sbx_json_add_string(o, "stops", states[i].stops);
	}
	return 0;
}

int sbx_admin_doctor(const struct call *call, struct json_object **ret_result,
	struct json_object **ret_details, struct sbx_err *err)
{
	SBX_JSON struct json_object *result = json_object_new_object();
	struct sbx_probe probes[SBX_PROBES_MAX];
	SBX_CLOSE int state_fd = -EBADF;
	struct utsname names;
	size_t n;
	int r;

	(void)call;
	(void)ret_details;
	if (!result)
		return sbx_err_set(err, ENOMEM, "doctor: %m");
	if (uname(&names) < 0)
		return sbx_err_set(err, errno, "ask for the kernel's version: %m");
	sbx_json_add_string(result, "kernel", names.release);
	r = sbx_admin_open_nearest_state(&state_fd, err);
	if (r == 0)
		r = sbx_probe_all(state_fd, NULL, probes, &n, err);
	if (r < 0)
		return r;
	r = add_rows(probes, n, result);
	if (r == 0)
		r = add_walls(probes, n, result);
	if (r < 0)
		return sbx_err_set(err, -r, "doctor: %m");
	*ret_result = sbx_take(&result);
	return 0;
}
