// SPDX-License-Identifier: MIT
// Every shape of change that a session can make: what it saw at its end is what the next one sees,
// also after a squash, after a crash and in an export. One directory for each case; the names of cases
// from the field stand behind them (B01 to B18).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import test from 'node:test';
import { missing, World } from '../faults/world.mjs';

// Kind, mode, owner, time, attributes, target or content of each entry, links as groups; names and
// depth of any kind. Long listings are given as their digest.
const LOOK = `
import hashlib, os, stat, sys
lines, groups = [], {}
def attributes(name, mode):
    if stat.S_ISLNK(mode) or stat.S_ISFIFO(mode): return ''
    names = [n for n in sorted(os.listxattr(name)) if not n.startswith(('user.overlay.', 'security.selinux'))]
    return ' '.join(n + '=' + os.getxattr(name, n).hex() for n in names)
def look(path, name):
    st = os.lstat(name)
    if stat.S_ISSOCK(st.st_mode): return False
    says = [path.hex() if len(sys.argv) > 1 else repr(path), stat.filemode(st.st_mode), st.st_uid, st.st_gid]
    if name != b'.': says.append(st.st_mtime_ns)
    if stat.S_ISREG(st.st_mode):
        with open(name, 'rb') as f: says += [st.st_size, hashlib.sha256(f.read()).hexdigest()[:12]]
        says.append('sparse' if st.st_blocks * 1024 < st.st_size else '')
    if stat.S_ISLNK(st.st_mode): says.append(os.readlink(name))
    if not stat.S_ISDIR(st.st_mode): groups.setdefault(st.st_ino, []).append(path)
    lines.append(' '.join(map(str, says + [attributes(name, st.st_mode)])))
    return stat.S_ISDIR(st.st_mode)
levels, path = [sorted(os.listdir(b'.'))], []
look(b'', b'.')
while levels:
    if not levels[-1]:
        levels.pop()
        if levels: os.chdir('..'); path.pop()
        continue
    name = levels[-1].pop(0)
    if look(b'/'.join(path + [name]), name):
        os.chdir(name); path.append(name); levels.append(sorted(os.listdir(b'.')))
lines += ['one file: ' + str(g) for g in sorted(groups.values()) if len(g) > 1]
text = '\\n'.join(lines)
print(text if len(text) < 30000 else str(len(lines)) + ' entries, ' + hashlib.sha256(text.encode()).hexdigest())
`;

const inside = (python) => `python3 -c "${python}"`;
const deep = (step) => inside(`import os\nfor i in range(600):\n  ${step}\nopen('bottom','a').write('b')`);
const goDown = deep(`os.path.isdir('below-it') or os.mkdir('below-it'); os.chdir('below-it')`);

/** Shapes: what is there before, what the session does, and more that has to hold of the answer. */
const cases = {
	'a renamed directory, B01': ['mkdir -p src/sub; for i in 1 2 3; do echo $i >src/f$i; done; echo s >src/sub/g', 'echo edited >src/f2 && mv src lib; mkdir src'],
	'renamed by rename(2), B02': ['mkdir -p p/q; echo x >p/q/i', inside(`import os; os.rename('p/q','p/.q-tmp'); os.rename('p','n')`)],
	'a chain of renames, then edits inside, B01': [
		'mkdir -p a/s/t a/k; echo 1 >a/1; echo 2 >a/s/2; echo 3 >a/s/t/3; echo 4 >a/k/4',
		'mv a b; mv b/s b/u; mv b c; echo x >>c/u/2; rm c/u/t/3; mkdir a; echo fresh >a/f; mv c/u/t c/v; mv c/k a/k; echo 5 >a/k/5; mv c/u c/v/u',
	],
	'renamed out of and back into its name': ['mkdir -p d/e; echo 1 >d/e/1', 'mv d x; mv x/e e; mv x d; mv e d/e; echo 2 >>d/e/1'],
	'directories that change places': ['mkdir a b; echo a >a/1; echo b >b/1; echo c >b/2', 'mv a t; mv b a; mv t b; rm a/2; echo n >b/n'],
	'a file renamed within a renamed directory': ['mkdir d; echo 1 >d/1; echo 2 >d/2', 'mv d e; mv e/1 e/3; mv e/2 e/1; echo 4 >e/2'],
	'deleted and made anew, B03': ['mkdir -p d/sub; echo o >d/old; echo k >d/sub/k', 'rm -r d; mkdir -p d/sub; echo n >d/new'],
	'an older directory under a new name': ['mkdir -p d/e; echo 1 >d/e/1', 'rm -r d/e; mv d e; mkdir e/e; echo 2 >e/e/2'],
	'kinds change, B06': [
		'mkdir dir; echo x >dir/x; echo f >file; echo t >tgt; ln -s tgt link; mkdir real; echo r >real/r; ln -s real dlink; mkfifo fifo',
		'rm -r dir && echo now >dir; rm file && mkdir file && echo in >file/in; rm link && echo own >link; rm -r real && ln -s /tmp real; rm dlink && mkdir dlink && echo z >dlink/z; rm fifo; echo f >fifo',
	],
	'names reused': ['echo 1 >f; mkdir d; echo 2 >d/in; ln -s f l', 'mv f g; echo new >f; mv d e; mkdir d; echo in >d/other; rm g; mkdir g; mv l m; mkdir l; mv m l/m'],
	'modes and times alone, B09': ['echo hi >r; mkdir q; echo 1 >s', 'chmod 755 r; chmod 1777 .; chmod 2700 q; touch -d 2001-01-01 s'],
	'names that look like bookkeeping, B10': ['mkdir keep; echo k >keep/k; echo v >victim', 'touch .wh.victim; mkdir .wh..wh..opq; touch keep/.wh.k; setfattr -n user.overlay.opaque -v y keep; setfattr -n user.overlay.whiteout -v y victim; true'],
	'hard links, B11': ['echo 1 >a; ln a b; ln a c; echo x >x', 'ln a d; echo 2 >>b; rm c; ln x y; mkdir e; ln x e/z; echo n >n; ln n e/n; ln n e/m'],
	'links to a symbolic link and a FIFO': ['ln -s nowhere l; mkfifo p', 'ln -P l m; ln p q; ln -s a n; ln -P n o'],
	'sparse files': ['truncate -s 3M s; printf x | dd of=s bs=1 seek=2000000 conv=notrunc status=none', 'printf y | dd of=s bs=1 seek=10 conv=notrunc status=none; truncate -s 9M t; cp --sparse=always s u'],
	'sockets and FIFOs, B13': ['mkfifo p; echo x >s', `chmod 600 p; mkfifo q; rm s; ${inside(`import socket; socket.socket(socket.AF_UNIX).bind('s')`)}; echo ok >after`, ({ publish }) => assert.deepEqual(publish.dropped.map(({ kind }) => kind), ['socket'])],
	'unreadable and read-only, B14': [
		'mkdir -m 555 ro; mkdir z; echo k >z/k; chmod 0 z; echo s >sec; chmod 0 sec; mkdir -p mod/a; echo m >mod/a/m; chmod -R a-w mod; mkdir -p gone/a; echo g >gone/a/g; chmod -R a-w gone',
		'echo n >ro/n; echo more >>sec; mkdir -m 0 y; echo g >g; chmod 444 g; mv mod mod2; chmod -R u+w gone; rm -r gone; echo l >z/l',
	],
	'set-id bits, capabilities, attributes, B15': [
		'cp /bin/true w; chmod 6755 w; cp /bin/true u; setcap cap_chown+ep u; mkdir g; chmod 2775 g; setfattr -n user.dir -v 1 g',
		'cp /bin/true x; chmod 4755 x; cp /bin/true y; setcap cap_net_raw+ep y; setfattr -n user.note -v hé x; setfattr -n user.empty -v "" x; touch g/f; mv g h; setfattr -x user.dir h; chown 7:8 w; cp -a u v',
	],
	'owners': ['echo 1 >f; mkdir d; echo 2 >d/2; ln -s f l', 'chown 1234:5678 f; chown -h 1:2 l; chown -R 3:4 d'],
	'times to the nanosecond, B18': ['echo 1 >a; echo 2 >b; mkdir d', `touch -d '2024-05-05 10:00:00.123456789' a; touch -d '1965-01-01 00:00:00.000000001' b; ln -s a l; touch -h -d '2030-01-01 00:00:00.5' l; mkdir e; echo x >e/x; echo 2 >d/2; touch -d '1999-12-31 23:59:59.999999999' e d`],
	'names of any bytes': [
		String.raw`touch $'new\nline' $'\xff\xfe' -- -rf 'a\b' ' ' $'\e[1m' 'ä'; mkdir $'d\xc3'; echo i >$'d\xc3/\xe2\x82'`,
		String.raw`echo 1 >$'new\nline'; mv $'\xff\xfe' $'\xfe\xff'; rm -- -rf; mv $'d\xc3' $'e\n'; echo j >>$'e\n/\xe2\x82'; touch "$(printf '%255s' x)" '*' '?'; mkdir $'\x01'; touch $'\x01/\x7f'`,
	],
	'deeper than the longest path': [goDown, `${goDown}; mv below-it dug; mkdir below-it; ${inside(`import os\nos.chdir('dug')\nfor i in range(300): os.chdir('below-it')\nopen('middle','w').write('m')`)}`],
	'a directory of many entries': ['mkdir m; cd m; touch $(seq 1500); ln 7 seven', 'cd m; rm $(seq 1 3 1500); mkdir 1 4 7; echo x >2; touch n; cd ..; mv m o'],
};

/** What the session saw, and its answer. */
async function play(world, dir, script) {
	const ran = await world.exec(`umask 022; mkdir -p ${dir}; cd ${dir}; (${script}); python3 "$OLDPWD/look.py" 2>&1`);
	assert.equal(ran.status, 'ok', `${script}: ${ran.output}`);
	assert.ok(ran.publish?.layer_id, `${script}: ${JSON.stringify(ran)}`);
	return ran;
}

const see = async (world, dir) => (await world.exec(`cd ${dir} && python3 "$OLDPWD/look.py" 2>&1`)).output;

test('what a session saw is what the next one sees', { skip: missing('python3', 'setcap', 'setfattr') }, async (t) => {
	const world = await World.make(t, { files: { 'look.py': LOOK } });
	const seen = {};
	for (const [i, [name, [before, script, also]]] of Object.entries(cases).entries())
		await t.test(name, async () => {
			const dir = `case${i}`;
			const first = await play(world, dir, before);
			assert.equal(await see(world, dir), first.output, 'what is there before');
			const ran = await play(world, dir, script);
			assert.notEqual(ran.output, first.output);
			assert.doesNotMatch(ran.output, /Traceback/);
			seen[dir] = ran.output;
			assert.equal(await see(world, dir), ran.output);
			also?.(ran);
		});

	// in one command, as digests: "case0 <digest>"
	const digests = 'for d in case*; do echo "$d $(cd $d; python3 ../look.py 2>&1 | sha256sum)"; done';
	const expected = () =>
		Object.entries(seen)
			.map(([dir, output]) => `${dir} ${createHash('sha256').update(output).digest('hex')}  -\n`)
			.sort()
			.join('');
	const sorted = (output) => output.split(/(?<=\n)/).sort().join('');
	const all = async (what) => {
		assert.equal(sorted((await world.exec(digests)).output), expected(), what);
		assert.equal(await world.damage(), '', what);
	};
	await t.test('after a squash and a crash', async () => {
		await world.admin('squash', world.id);
		await all('squashed');
		await world.crash();
		await all('a new sandboxd, swept');
	});
	await t.test('in an export', async () => {
		const into = join(world.dir, 'exported');
		await world.admin('export', world.id, into);
		try {
			const output = execFileSync('bash', ['-c', digests], { cwd: into, encoding: 'utf8' });
			assert.equal(sorted(output), expected());
		} finally {
			execFileSync('rm', ['-rf', into]); // deeper than node can remove
		}
	});
});

test('copy-ups that changed nothing are no publication', { skip: missing('python3') }, async (t) => {
	const world = await World.make(t, { files: { f: 'f\n', 'd/g': 'g\n', 'd/e/h': 'h\n' } });
	await world.exec('ln -s f l; setfattr -n user.a -v 1 f; ln f f2; truncate -s 1M s');
	const { version } = await world.adminJson('inspect');
	for (const cmd of [
		'chmod $(stat -c %a f) f; chmod 600 d/g; chmod 644 d/g',
		inside(`import os; [os.close(os.open(n, os.O_RDWR)) for n in ('f', 'd/g', 'd/e/h', 's')]`),
		'touch -r d/g ref; echo x >d/g; echo g >d/g; touch -r ref d/g; rm ref',
		'setfattr -n user.a -v 2 f; setfattr -n user.a -v 1 f; chown 0:0 f d; chmod 700 d/e; chmod 755 d/e',
		'touch -r d x; touch d/new; rm d/new; touch -r x d; rm x; : >>f; : >>d/e/h',
		'mkdir n; touch n/x; rm -r n; mv d z; mv z d',
		'setfattr -n user.overlay.opaque -v y d; setfattr -n user.overlay.redirect -v / d/e',
	]) {
		const ran = await world.exec(`${cmd}; true`);
		assert.deepEqual([ran.publish.no_op, ran.publish.layer_id], [true, null], `${cmd}: ${JSON.stringify(ran)}`);
	}
	assert.equal((await world.adminJson('inspect')).version, version);
});
