// SPDX-License-Identifier: MIT
// Ordinary developer work that has to run in a session as it does without one. Each row: what it
// is, the programs of the host that it needs, a command, and what it prints last. Each runs in an
// automatic session whose changes are published; a second command may look at them in a new view.
import assert from 'node:assert/strict';
import test from 'node:test';
import { connect, run, State } from '../support.mjs';
import { needs } from '../escape/arena.mjs';

const N_PARTS = 12;
const parts = Array.from({ length: N_PARTS }, (_, i) => i);

/** A C program of some files with a test. */
const project = {
	'c/Makefile': [
		`OBJECTS := main.o ${parts.map((i) => `part${i}.o`).join(' ')}`,
		'CFLAGS := -O1 -Wall -pthread', 'LDLIBS := -pthread', 'sum: $(OBJECTS)',
		'\t$(CC) -o $@ $^ $(LDLIBS)', 'test: sum', '\t./sum', '.PHONY: test', ''].join('\n'),
	'c/main.c': [
		'#include <pthread.h>', '#include <stdio.h>', ...parts.map((i) => `int part${i}(void);`),
		'static int total;', 'static void *work(void *arg) {',
		`total = ${parts.map((i) => `part${i}()`).join(' + ')}; return arg; }`,
		'int main(void) { pthread_t t; if (pthread_create(&t, 0, work, 0)) return 1;',
		'pthread_join(t, 0); printf("total %d\\n", total); return 0; }', ''].join('\n'),
	...Object.fromEntries(parts.map((i) => [`c/part${i}.c`,
		`int part${i}(void);\nint part${i}(void) { return ${i}; }\n`])),
	'npm/local/package.json': '{"name": "sbx-local", "version": "1.2.3", "main": "index.js"}\n',
	'npm/local/index.js': 'module.exports = "from the package";\n',
	'npm/app/package.json': '{"name": "app", "version": "1.0.0", "private": true}\n',
	'wheel.py': [
		'import zipfile', "name = 'sbxwheel-1.0'", "info = name + '.dist-info/'",
		"with zipfile.ZipFile(name + '-py3-none-any.whl', 'w') as z:",
		"    z.writestr('sbxwheel.py', 'word = \"from the wheel\"\\n')",
		"    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: sbxwheel\\nVersion: 1.0\\n')",
		"    z.writestr(info + 'WHEEL',",
		"        'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')",
		"    z.writestr(info + 'RECORD', '')", ''].join('\n'),
	'wal.py': [
		'import sqlite3', "db = sqlite3.connect('wal.db')",
		"print(db.execute('pragma journal_mode=wal').fetchone()[0])",
		"db.execute('create table if not exists t(x)')",
		"db.executemany('insert into t values (?)', [(i,) for i in range(1000)])", 'db.commit()',
		"print(sqlite3.connect('wal.db').execute('select count(*), sum(x) from t').fetchone())",
		''].join('\n'),
};

const serve = (address, port, url) => [
	`python3 -m http.server --bind ${address} ${port} >/dev/null 2>&1 &`,
	`curl -s --retry 50 --retry-delay 1 --retry-connrefused -o /dev/null -w '%{http_code}' -g ${url}`,
].join('\n');

const identity = 'git config user.name t; git config user.email t@example.org';

const rows = [
	['a C project is built with make -j and tested', ['gcc', 'make'],
		'make -s -j4 -C c test', 'total 66'],
	['what was built is there in the next session, up to date', ['gcc', 'make'],
		'make -C c sum; make -s -C c test', 'total 66', /up to date/],
	['git: clone, commit, branch, merge, gc', ['git'], [
		`git init -q repo && cd repo && ${identity}`,
		'for i in 1 2 3 4 5; do echo $i >f$i; git add . && git commit -qm $i; done',
		'git checkout -qb side HEAD~2 && echo s >side && git add . && git commit -qm side',
		'git checkout -q - && git merge -q -m merge side && git gc -q && git fsck --strict',
		'git clone -q . ../clone && cd ../clone && git log --oneline | wc -l'].join('\n'), '7'],
	['git: stash and worktree (B19)', ['git'], [
		`cd clone && ${identity}; echo changed >f1 && echo new >untracked && git stash -qu`,
		'git status --porcelain | wc -l; git stash pop -q && git status --porcelain',
		'git worktree add -q ../tree HEAD~1 && cd ../tree && git status --porcelain && ls f4',
		].join('\n'), '0\n M f1\n?? untracked\nf4'],
	['git: a clean tree is still clean in a new session', ['git'],
		'cd repo && git status --porcelain && git -C ../tree rev-parse --is-inside-work-tree', 'true'],
	['npm install of a local package, twice', ['npm'], [
		'cd npm/app && export npm_config_audit=false npm_config_fund=false npm_config_offline=true',
		'npm install --silent ../local && npm install --silent --install-links ../local',
		'node -p \'require("sbx-local")\''].join('\n'), 'from the package'],
	['pip install of a local wheel into a venv', ['python3', 'pip3'], [
		'python3 wheel.py && python3 -m venv venv || exit',
		'venv/bin/pip install -q --disable-pip-version-check --no-index sbxwheel-1.0-*.whl',
		'venv/bin/python -c "import sbxwheel; print(sbxwheel.word)"'].join('\n'), 'from the wheel'],
	['a server on 127.0.0.1 (B74)', ['python3', 'curl'],
		serve('127.0.0.1', 18080, 'http://127.0.0.1:18080/'), '200'],
	['a server on ::1', ['python3', 'curl'], serve('::1', 18080, 'http://[::1]:18080/'), '200'],
	['localhost has a name', ['getent'], 'getent ahosts localhost | cut -d" " -f1 | sort -u',
		'127.0.0.1\n::1'],
	['a name outside fails at once, without a network', ['curl'],
		'curl -s -m 60 http://example.org; echo $?', '6', undefined, 20],
	['sqlite in WAL mode (B20)', ['python3'], 'rm -f wal.db; python3 wal.py', 'wal\n(1000, 499500)'],
	['the database is whole in the next session', ['python3'],
		'python3 -c "import sqlite3; print(*sqlite3.connect(\'wal.db\').execute(' +
			'\'pragma integrity_check\').fetchone())"', 'ok'],
	['strace of an own child (B73)', ['strace'],
		'strace -f -o /tmp/trace sh -c "true; /bin/true" && grep -c "execve.* = 0$" /tmp/trace', '2'],
	['gdb of an own child', ['gdb', 'gcc'], [
		"echo 'int f(int x) { return x + 1; } int main(void) { return f(41); }' >/tmp/g.c",
		'gcc -g -o /tmp/g /tmp/g.c && gdb -batch -ex "break f" -ex run -ex "print x" -ex continue ' +
			'/tmp/g 2>&1 | grep -E "^.1 = |exited"'].join('\n'),
		/^\$1 = 41\n\[Inferior 1 \(process \d+\) exited with code 052\]$/],
	['no address randomisation, when asked for', ['setarch', 'uniq'],
		'for i in 1 2 3; do setarch -R grep stack /proc/self/maps; done | cut -d" " -f1 | uniq | wc -l',
		'1'],
	['threads and processes of python', ['python3'], [
		"python3 -c \"import threading; t = [threading.Thread(target=int) for _ in range(50)]",
		'[x.start() for x in t]; [x.join() for x in t]; print(len(t))"',
		'python3 -c "import multiprocessing as m; print(sum(m.Pool(4).map(abs, range(-9, 0))))"',
		].join('\n'), '50\n45'],
	['/dev/shm, pipes, terminals and the usual devices', ['python3'], [
		'echo x >/dev/shm/x && cat /dev/shm/x; head -c 8 /dev/urandom | wc -c; echo y | cat /dev/stdin',
		'python3 -c "import pty, os; print(len(os.ttyname(pty.openpty()[1])) > 0)"',
		'tty; echo full >/dev/full || test -c /dev/tty && echo tty'].join('\n'),
		/^x\n8\ny\nTrue\n\/dev\/pts\/0\n.*No space left on device\ntty$/],
	['files of a hundred names at once, locks and watches', ['flock'],
		'flock lock sh -c "seq 100 | xargs -P8 -I{} sh -c \'echo {} >lock.{}\'"; ls lock.* | wc -l; ' +
			'rm lock*', '100'],
	['a program that builds its own sandbox is told so (B72)', ['unshare'],
		'unshare -Ur true', 'unshare: unshare failed: Operation not permitted'],
	['users other than root', ['setpriv'], 'install -d -o 1000 own; setpriv --reuid 1000 ' +
		'--clear-groups sh -c "id -u; echo x >own/x"; stat -c %u own/x', '1000\n1000'],
];

test('ordinary work', async (t) => {
	const state = await State.make(t);
	const sandbox_id = await state.sandbox('work', project);
	const client = await connect(t, 'sdk 1.x, initialize', state.env);
	for (const [what, programs, cmd, expected, also, seconds] of rows)
		await t.test(what, { skip: needs(...programs) }, async () => {
			const result = await run(client, sandbox_id, cmd);
			const output = result.output.trimEnd();
			if (also) assert.match(output, also);
			if (expected instanceof RegExp) assert.match(output, expected);
			else assert.equal(output.split('\n').slice(-expected.split('\n').length).join('\n'), expected,
				output);
			if (seconds) assert.ok(result.wall_time_seconds < seconds, `${result.wall_time_seconds} s`);
			assert.equal(result.publish_rejected, undefined, JSON.stringify(result.conflicts));
		});
});
