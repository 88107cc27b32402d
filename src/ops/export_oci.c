/* SPDX-License-Identifier: MIT */
/*
 * The layout: oci-layout, index.json → a manifest → a configuration and a layer. The last three
 * are blobs, named by their SHA-256; the layer is written under a name of its own first.
 */
#include "export_oci.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "answer.h"
#include "sbx/digest.h"
#include "sbx/fs.h"

#define MEDIA_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_CONFIG   "application/vnd.oci.image.config.v1+json"
#define MEDIA_LAYER    "application/vnd.oci.image.layer.v1.tar"
#define REF_NAME       "org.opencontainers.image.ref.name"

#define DIGEST_PREFIX    "sha256:"
#define DIGEST_TEXT_SIZE (sizeof(DIGEST_PREFIX) + SBX_DIGEST_HEX_SIZE)

struct layout {
	const struct sbx_dest *dest;
	int dir_fd;
	int blobs_fd; /* blobs/sha256 */
};

static void layout_done(struct layout *layout)
{
	sbx_fd_close(&layout->blobs_fd);
	sbx_fd_close(&layout->dir_fd);
}

struct blob {
	const char *media_type;
	char digest[DIGEST_TEXT_SIZE]; /* "sha256:..." */
	uint64_t size;
};

/* A name inside of the layout, made with the same rights as the layout itself. */
static struct sbx_dest inside(const struct layout *layout, int dir_fd, const char *name)
{
	struct sbx_dest dest = *layout->dest;

	dest.name = name;
	dest.parent_fd = dir_fd;
	return dest;
}

static int make_dirs(struct layout *layout, struct sbx_err *err)
{
	SBX_CLOSE int blobs_fd = -EBADF;
	struct sbx_dest dest;
	int r = sbx_dest_make_dir(layout->dest, &layout->dir_fd, err);

	if (r < 0)
		return r;
	dest = inside(layout, layout->dir_fd, "blobs");
	r = sbx_dest_make_dir(&dest, &blobs_fd, err);
	if (r < 0)
		return r;
	dest = inside(layout, blobs_fd, "sha256");
	return sbx_dest_make_dir(&dest, &layout->blobs_fd, err);
}

static void set_digest(struct blob *blob, const struct sbx_digest *digest)
{
	memcpy(blob->digest, DIGEST_PREFIX, sizeof(DIGEST_PREFIX));
	sbx_digest_hex(digest, blob->digest + strlen(DIGEST_PREFIX));
}

static const char *blob_name(const struct blob *blob)
{
	return blob->digest + strlen(DIGEST_PREFIX);
}

static int write_file(struct layout *layout, int dir_fd, const char *name, const char *text,
	size_t size, struct sbx_err *err)
{
	struct sbx_dest dest = inside(layout, dir_fd, name);
	SBX_CLOSE int fd = -EBADF;
	int r = sbx_dest_make_file(&dest, &fd, err);

	if (r < 0)
		return r;
	r = sbx_fs_write_all(fd, text, size);
	return r < 0 ? sbx_err_set(err, -r, "write '%s/.../%s': %m", dest.path, name) : 0;
}

static int write_json_blob(
	struct layout *layout, struct json_object *o, struct blob *blob, struct sbx_err *err)
{
	struct sbx_digest digest;
	size_t size;
	const char *text = sbx_json_text(o, &size);

	sbx_digest_bytes(text, size, &digest);
	set_digest(blob, &digest);
	blob->size = size;
	return write_file(layout, layout->blobs_fd, blob_name(blob), text, size, err);
}

static int write_layer(struct layout *layout, struct sbx_view *view,
	const struct sbx_sandbox *sandbox, struct json_object *ret_report, struct blob *blob,
	struct sbx_err *err)
{
	struct sbx_dest dest = inside(layout, layout->blobs_fd, "layer.tar");
	struct sbx_digest digest;
	SBX_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	r = sbx_dest_make_file(&dest, &fd, err);
	if (r == 0)
		r = sbx_store_export_tar(view, sandbox, fd, NULL, NULL, ret_report, err);
	if (r == 0)
		r = sbx_digest_fd(fd, &digest, err);
	if (r < 0)
		return r;
	set_digest(blob, &digest);
	if (fstat(fd, &st) < 0 ||
		renameat(layout->blobs_fd, dest.name, layout->blobs_fd, blob_name(blob)) < 0)
		return sbx_err_set(err, errno, "name the layer of '%s': %m", dest.path);
	blob->size = (uint64_t)st.st_size;
	return 0;
}

/* The machine's name as images spell it; others are spelled as the kernel does. */
static void add_architecture(struct json_object *config)
{
	static const struct {
		const char *machine, *architecture;
	} names[] = {{"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
	struct utsname uts;
	const char *architecture = uts.machine;

	(void)uname(&uts); /* fails only for a bad pointer */
	for (size_t i = 0; i < SBX_N_ELEMENTS(names); i++)
		if (!strcmp(uts.machine, names[i].machine))
			architecture = names[i].architecture;
	sbx_json_add_string(config, "architecture", architecture);
}

static int write_config(
	struct layout *layout, const struct blob *layer, struct blob *ret, struct sbx_err *err)
{
	SBX_JSON struct json_object *config = json_object_new_object();
	struct json_object *rootfs = json_object_new_object();
	struct json_object *diff_ids = json_object_new_array();

	sbx_answer_push(diff_ids, json_object_new_string(layer->digest));
	sbx_json_add_string(rootfs, "type", "layers");
	sbx_json_add(rootfs, "diff_ids", diff_ids);
	add_architecture(config);
	sbx_json_add_string(config, "os", "linux");
	sbx_json_add(config, "config", json_object_new_object());
	sbx_json_add(config, "rootfs", rootfs);
	return write_json_blob(layout, config, ret, err);
}

static struct json_object *descriptor(const struct blob *blob)
{
	struct json_object *o = json_object_new_object();

	sbx_json_add_string(o, "mediaType", blob->media_type);
	sbx_json_add_string(o, "digest", blob->digest);
	sbx_json_add_int(o, "size", (int64_t)blob->size);
	return o;
}

static int write_manifest(struct layout *layout, const struct blob *layer,
	const struct blob *config, struct blob *ret, struct sbx_err *err)
{
	SBX_JSON struct json_object *manifest = json_object_new_object();
	struct json_object *layers = json_object_new_array();

	sbx_answer_push(layers, descriptor(layer));
	sbx_json_add_int(manifest, "schemaVersion", 2);
	sbx_json_add_string(manifest, "mediaType", MEDIA_MANIFEST);
	sbx_json_add(manifest, "config", descriptor(config));
	sbx_json_add(manifest, "layers", layers);
	return write_json_blob(layout, manifest, ret, err);
}

static int write_index(
	struct layout *layout, const struct blob *manifest, const char *ref, struct sbx_err *err)
{
	SBX_JSON struct json_object *index = json_object_new_object();
	struct json_object *manifests = json_object_new_array();
	struct json_object *annotations = json_object_new_object();
	struct json_object *entry = descriptor(manifest);
	const char *text;
	size_t size;

	sbx_json_add_string(annotations, REF_NAME, ref);
	sbx_json_add(entry, "annotations", annotations);
	sbx_answer_push(manifests, entry);
	sbx_json_add_int(index, "schemaVersion", 2);
	sbx_json_add(index, "manifests", manifests);
	text = sbx_json_text(index, &size);
	return write_file(layout, layout->dir_fd, "index.json", text, size, err);
}

int sbx_export_oci(const struct sbx_dest *dest, struct sbx_view *view,
	const struct sbx_sandbox *sandbox, const char *ref, struct json_object *ret_report,
	struct sbx_err *err)
{
	static const char layout_text[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	SBX_CLEANUP(layout_done)
	struct layout layout = {.dest = dest, .dir_fd = -EBADF, .blobs_fd = -EBADF};
	struct blob layer = {.media_type = MEDIA_LAYER};
	struct blob config = {.media_type = MEDIA_CONFIG};
	struct blob manifest = {.media_type = MEDIA_MANIFEST};
	int r;

	r = make_dirs(&layout, err);
	if (r == 0)
		r = write_layer(&layout, view, sandbox, ret_report, &layer, err);
	if (r == 0)
		r = write_config(&layout, &layer, &config, err);
	if (r == 0)
		r = write_manifest(&layout, &layer, &config, &manifest, err);
	if (r == 0)
		r = write_index(&layout, &manifest, ref, err);
	if (r == 0)
		r = write_file(&layout, layout.dir_fd, "oci-layout", layout_text,
			strlen(layout_text), err);
	return r;
}
