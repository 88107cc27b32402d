/* SPDX-License-Identifier: MIT */
/* One session after another: what a command did is what the next view shows. */
#include "workspace.h"

struct shape {
	const char *name;
	const char *before; /* published first; NULL: nothing */
	const char *change;
	const char *see; /* prints what there is afterwards */
	const char *expected;
};

static void check_shape(const struct shape *shape)
{
	WORKSPACE struct workspace w;

	workspace_init(&w);
	if (shape->before)
		workspace_do(&w, "before", shape->before);
	workspace_do(&w, "change", shape->change);
	cr_expect_str_eq(workspace_see(&w, shape->see), shape->expected, "%s:\n%s", shape->name,
		workspace_see(&w, shape->see));
	/* a layer is plain: whatever overlayfs noted for itself is gone */
	cr_expect_str_eq(
		workspace_look(&w,
			"cd store/layers; getfattr -Rhdm '^(trusted|user)[.](overlay|sbx)' . "
			"2>/dev/null | grep = | grep -v overlay.opaque=; true"),
		"", "%s: marks are left:\n%s", shape->name,
		workspace_look(&w, "getfattr -Rhdm trusted store/layers"));
}

#define RENAME_BASE       "mkdir -p src/sub; for i in 1 2 3; do echo $i >src/f$i; done; echo s >src/sub/g"
#define RENAME(dir, name) "python3 -c \"import os; os.rename('" dir "','" name "')\""

static const struct shape renames[] = {
	{"edited, then renamed with its directory", RENAME_BASE,
		"echo edited >src/f2 && mv src lib",
		"find lib -type f | sort; cat lib/f1 lib/f2 lib/f3 lib/sub/g; ls src 2>/dev/null; "
		"true",
		"lib/f1\nlib/f2\nlib/f3\nlib/sub/g\n1\nedited\n3\ns\n"},
	{"rename(2) itself", RENAME_BASE, RENAME("src", "lib") "; echo edited >lib/f2",
		"find . -type f | sort; cat lib/f1 lib/f2 lib/f3 lib/sub/g",
		"./lib/f1\n./lib/f2\n./lib/f3\n./lib/sub/g\n1\nedited\n3\ns\n"},
	{"a chain of renames", RENAME_BASE, "mv src b; mv b c; mkdir d; mv c d/e; rm d/e/f1",
		"find . | sort; cat d/e/f2 d/e/sub/g",
		".\n./d\n./d/e\n./d/e/f2\n./d/e/f3\n./d/e/sub\n./d/e/sub/g\n2\ns\n"},
	{"the old name is a new directory", RENAME_BASE, "mv src lib; mkdir src; echo n >src/new",
		"find . -type f | sort", "./lib/f1\n./lib/f2\n./lib/f3\n./lib/sub/g\n./src/new\n"},
	{"renamed inside a renamed one", RENAME_BASE,
		"mv src lib; mv lib/sub lib/bus; echo x >lib/bus/x; mkdir lib/sub", "find . | sort",
		".\n./lib\n./lib/bus\n./lib/bus/g\n./lib/bus/x\n./lib/f1\n./lib/f2\n./lib/f3\n./"
		"lib/sub\n"},
	{"two swap their names", "mkdir a b; echo a >a/a; echo b >b/b", "mv a t; mv b a; mv t b",
		"find . -type f | sort; cat a/b b/a", "./a/b\n./b/a\nb\na\n"},
	{"over one that was deleted",
		"mkdir -p a/x b/x; echo a >a/f; echo a >a/x/g; echo b >b/f; echo b >b/x/h",
		"rm -r b; mv a b", "find . -type f | sort; cat b/f b/x/g",
		"./b/f\n./b/x/g\na\na\n"},
	{"moved out of a renamed one, and back under another", RENAME_BASE,
		"mv src lib; mv lib/sub sub; mkdir top; mv lib top/lib; mv sub top/lib/f1.d",
		"find . -type f | sort",
		"./top/lib/f1\n./top/lib/f1.d/g\n./top/lib/f2\n./top/lib/f3\n"},
	{"contents deleted after the rename", RENAME_BASE,
		"mv src lib; rm -r lib/*; touch lib/only", "find . | sort",
		".\n./lib\n./lib/only\n"},
	{"metadata and times go along",
		"mkdir -m 2750 d; mkdir -m 1777 d/t; touch -d 2001-02-03T04:05:06.123456789 d/t "
		"d/f d; chown 12:34 d/t",
		"mv d e; mv e f", "stat -c '%n %a %u:%g %y' f f/t f/f | sed 's/ +0000//'",
		"f 2750 0:0 2001-02-03 04:05:06.123456789\nf/t 3777 12:34 2001-02-03 "
		"04:05:06.123456789\n"
		"f/f 644 0:0 2001-02-03 04:05:06.123456789\n"},
};

Test(publish, renamed_directories_are_whole)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(renames); i++)
		check_shape(&renames[i]);
}

static const struct shape shapes[] = {
	{"a directory deleted and made again",
		"mkdir d && echo o >d/old && mkdir d/sub && echo k >d/sub/k",
		"rm -r d; mkdir d; echo n >d/new", "find d | sort", "d\nd/new\n"},
	{"made again with an empty directory in it", "mkdir -p d/sub && echo k >d/sub/k",
		"rm -rf d && mkdir -p d/sub", "find d | sort", "d\nd/sub\n"},
	{"deleted directory", "mkdir -p d/e; echo x >d/e/f; echo y >y", "rm -r d", "find . | sort",
		".\n./y\n"},
	{"kinds change",
		"mkdir dir; echo x >dir/x; echo f >file; echo t >tgt; ln -s tgt link; mkdir real; "
		"echo r >real/r; ln -s real dlink",
		"rm -r dir && echo now-file >dir; rm file && mkdir file && echo in >file/in; rm "
		"link && echo own >link; "
		"rm -r real && ln -s /tmp real; rm dlink && mkdir dlink && echo z >dlink/z",
		"stat -c '%n %F' dir file link real dlink; cat tgt dir file/in link dlink/z; "
		"readlink real",
		"dir regular file\nfile directory\nlink regular file\nreal symbolic link\ndlink "
		"directory\n"
		"t\nnow-file\nin\nown\nz\n/tmp\n"},
	{"chmod alone", "echo x >r.sh", "chmod 755 r.sh", "stat -c %a r.sh; cat r.sh", "755\nx\n"},
	{"touch alone", "echo x >f", "touch -d '2001-01-01 00:00:00.000000007' f", "stat -c %y f",
		"2001-01-01 00:00:00.000000007 +0000\n"},
	{"modes of directories", NULL, "chmod 1777 .; mkdir q; chmod 700 q", "stat -c %a . q",
		"1777\n700\n"},
	{"names like another tool's marks", "mkdir keep; echo k >keep/k; echo v >victim",
		"touch .wh.victim; mkdir .wh..wh..opq n; touch n/.wh..wh..opq; "
		"setfattr -n user.overlay.opaque -v y keep; setfattr -n user.overlay.whiteout -v y "
		"victim; touch victim",
		"ls -A; ls -A n; cat victim keep/k",
		".wh..wh..opq\n.wh.victim\nkeep\nn\nvictim\n.wh..wh..opq\nv\nk\n"},
	{"forged marks on new files", NULL,
		"mkdir d; echo x >d/f; setfattr -n user.overlay.origin -v y d/f; setfattr -n "
		"user.overlay.opaque -v y d; "
		"setfattr -n user.note -v n d/f",
		"getfattr --only-values -n user.note d/f; getfattr -d d/f d | grep -c overlay; "
		"true",
		"n0\n"},
	{"hard links stay", NULL, "echo 1 >a; ln a b; ln a c", "stat -c %h a b c; cat a b c",
		"3\n3\n3\n1\n1\n1\n"},
	{"a link to an older file", "echo 1 >a", "ln a d", "cat a d", "1\n1\n"},
	{"unreadable and read-only", NULL,
		"mkdir -m 0555 ro && mkdir z && echo k >z/k && chmod 000 z && echo s >sec && chmod "
		"000 sec && echo g >g && chmod 444 g",
		"stat -c '%n %a' ro z sec g; cat z/k sec g",
		"ro 555\nz 0\nsec 0\ng 444\nk\ns\ng\n"},
	{"set-id bits, capabilities, xattrs", NULL,
		"cp /bin/true x; chmod 4755 x; cp /bin/true y; chmod 2755 y; setcap cap_net_raw+ep "
		"y; "
		"setfattr -n user.note -v h\xc3\xa9 x; mkdir g; chmod 2775 g; touch g/f",
		"stat -c '%n %a' x y g; getfattr --only-values -n user.note x; getcap y",
		"x 4755\ny 2755\ng 2775\nh\xc3\xa9y cap_net_raw=ep\n"},
	{"nanoseconds", NULL, "touch -d '2024-05-05 10:00:00.123456789' a", "stat -c %y a",
		"2024-05-05 10:00:00.123456789 +0000\n"},
	{"FIFOs", "mkfifo p q", "chmod 600 p; rm q; echo file >q; mkfifo r",
		"stat -c '%n %F %a' p q r", "p fifo 600\nq regular file 644\nr fifo 644\n"},
	{"sparse files", NULL,
		"truncate -s 1G s; printf x | dd of=s bs=1 seek=500000000 conv=notrunc status=none",
		"stat -c '%s' s; test $(stat -c %b s) -lt 64 && echo sparse",
		"1073741824\nsparse\n"},
	{"names of any bytes", NULL,
		"touch $'a\\nb' $'\\xff\\xfe' ' ' '\\\\'; mkdir $'d\\n'; touch $'d\\n/x'",
		"find . -print0 | sort -z | tr '\\0\\n' '|~' | od -An -c -w200 | tr -d ' \n'",
		".|./|./\\\\|./a~b|./d~|./d~/x|./377376|"},
	{"links to nowhere and everywhere", NULL,
		"ln -s /etc/passwd out; ln -s loop loop; ln -s '' x 2>/dev/null; ln -s gone "
		"dangling",
		"readlink out loop dangling", "/etc/passwd\nloop\ngone\n"},
	{"deleted and created again in one go", "echo old >f; mkdir d; echo x >d/x",
		"rm f; echo new >f; rm -r d; echo d >d", "cat f d", "new\nd\n"},
};

Test(publish, shapes_of_change_survive)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(shapes); i++)
		check_shape(&shapes[i]);
}

static const struct {
	const char *name;
	const char *script;
} nothings[] = {
	{"nothing at all", "true"},
	{"opened for writing", "exec 3<>f"},
	{"chmod to and fro", "chmod 600 f; chmod 644 f"},
	{"the same bytes and time again", "cp f g; cat g >f; touch -r "
					  "g f; rm g; touch -d '2001-01-01' f"},
	{"a temporary file", "echo x >tmp; rm tmp; mkdir d/t; rmdir d/t; echo y >d/u; rm d/u"},
	{"a directory's mtime", "touch d"},
	{"renamed to and fro", "mv f g; mv g f"},
};

Test(publish, what_changed_nothing_is_no_publication)
{
	for (size_t i = 0; i < SBX_N_ELEMENTS(nothings); i++) {
		WORKSPACE struct workspace w;
		SESSION struct session s;
		OUTCOME struct outcome o = {0};

		workspace_init(&w);
		workspace_do(
			&w, "before", "echo x >f; mkdir d; echo z >d/z; touch -d '2001-01-01' f");
		session_begin(&w, &s, "s");
		session_run(&w, &s, nothings[i].script);
		o = session_publish(&w, &s);
		cr_expect_eq(o.r, 0, "%s: %s", nothings[i].name, o.err.message);
		cr_expect_str_eq(outcome_text(&o, "outcome"), "no_op", "%s: %s", nothings[i].name,
			sbx_json_text(o.result, NULL));
	}
}

Test(publish, sockets_and_devices_are_dropped_with_a_note)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	OUTCOME struct outcome o = {0};

	workspace_init(&w);
	workspace_do(&w, "before", "echo x >s; echo y >y");
	session_begin(&w, &s, "s");
	session_run(&w, &s,
		"rm s; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"; "
		"mknod dev c 1 3; echo ok >after.txt");
	o = session_publish(&w, &s);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_str_eq(sbx_json_text(sbx_json_member(o.result, "dropped"), NULL),
		"[{\"path\":\"dev\",\"kind\":\"device\"},{\"path\":\"s\",\"kind\":\"socket\"}]");
	cr_expect_str_eq(workspace_see(&w, "ls; cat after.txt"), "after.txt\ny\nok\n");
}

Test(publish, counts_are_of_paths)
{
	WORKSPACE struct workspace w;
	SESSION struct session s;
	OUTCOME struct outcome o = {0};

	workspace_init(&w);
	workspace_do(
		&w, "before", "echo 1 >a; echo 2 >b; echo 3 >c; mkdir d; echo 4 >d/e; echo 5 >d/f");
	session_begin(&w, &s, "s");
	session_run(&w, &s, "echo x >>a; chmod 600 b; rm c; rm -r d; mkdir n; echo >n/o");
	o = session_publish(&w, &s);
	cr_assert_eq(o.r, 0, "%s", o.err.message);
	cr_expect_eq(outcome_int(&o, "added"), 2);
	cr_expect_eq(outcome_int(&o, "modified"), 2);
	cr_expect_eq(outcome_int(&o, "deleted"), 2);
	cr_expect_eq(outcome_int(&o, "merged"), 0);
}

Test(publish, trees_deeper_than_a_path_can_be_long_are_published_and_edited)
{
	WORKSPACE struct workspace w;
	static const char make[] = "python3 - <<'E'\n"
				   "import os\n"
				   "for i in range(60):\n"
				   "    os.mkdir('d'*100); os.chdir('d'*100)\n"
				   "open('f','w').write('deep\\n')\n"
				   "E\n";
	static const char edit[] = "python3 - <<'E'\n"
				   "import os\n"
				   "for i in range(60): os.chdir('d'*100)\n"
				   "open('f','a').write('er\\n'); open('g','w').write('new\\n')\n"
				   "E\n";
	static const char show[] = "python3 - <<'E'\n"
				   "import os\n"
				   "for i in range(60): os.chdir('d'*100)\n"
				   "print(open('f').read()+open('g').read(), end='')\n"
				   "E\n";
	static const char rename[] = "mv d* top";
	static const char show_renamed[] = "python3 - <<'E'\n"
					   "import os\n"
					   "os.chdir('top')\n"
					   "for i in range(59): os.chdir('d'*100)\n"
					   "print(open('f').read()+open('g').read(), end='')\n"
					   "E\n";

	workspace_init(&w);
	workspace_do(&w, "a", make);
	workspace_do(&w, "b", edit);
	cr_expect_str_eq(workspace_see(&w, show), "deep\ner\nnew\n");
	workspace_do(&w, "c", rename);
	cr_expect_str_eq(workspace_see(&w, show_renamed), "deep\ner\nnew\n");
}
