// SPDX-License-Identifier: MIT
// A command has a terminal: control characters, size, environment, and nothing that waits for a key
// which nobody will press (B38, B42).
import assert from 'node:assert/strict';
import test from 'node:test';
import { Lab, seconds } from './lab.mjs';

test('B38: a command has a terminal', async (t) => {
	const lab = await Lab.make(t);

	const facts = {
		'stdin, stdout and stderr are one terminal': ['tty; tty <&1; tty <&2', '/dev/pts/0\n'.repeat(3)],
		'it has a size': ['stty size', '40 120\n'],
		'it is the controlling one': ['echo to-tty >/dev/tty', 'to-tty\n'],
		'the shell leads its session and stands in the foreground':
			["ps -o pid=,sid=,tpgid= -p $$ | awk '{print $1 == $2, $1 == $3}'", '1 1\n'],
		'input is not echoed, lines are canonical, Ctrl-S does not stop it':
			['stty -a | tr " ;" "\\n\\n" | grep -xE -- "-?(echo|icanon|isig|ixon|onlcr)" | LC_ALL=C sort | xargs',
				'-echo -ixon -onlcr icanon isig\n'],
		'the environment is the documented one': ['env | grep -vE "^(_|PWD|OLDPWD|SHLVL)=" | sort', [
			'DEBIAN_FRONTEND=noninteractive', 'GIT_EDITOR=:', 'GIT_OPTIONAL_LOCKS=0',
			'GIT_PAGER=cat', 'GIT_TERMINAL_PROMPT=0', 'HOME=/root', 'LANG=C.UTF-8',
			'LOGNAME=root', 'MANPAGER=cat', 'NO_COLOR=1', 'PAGER=cat',
			'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
			'SHELL=/bin/bash', 'SYSTEMD_PAGER=', 'TERM=dumb', 'USER=root', ''].join('\n')],
		'it starts in the workspace': ['pwd', '/workspace\n'],
		'only SIGHUP is ignored, none is blocked':
			['grep -E "Sig(Ign|Blk)" /proc/self/status | tr -d "\\t"',
				'SigBlk:0000000000000000\nSigIgn:0000000000000001\n'],
		'descriptors end at the terminal': ['(ls -m /proc/$$/fd); true', '0, 1, 2\n'],
		'limits on descriptors are sane': ['ulimit -Sn; test $(ulimit -Hn) -le 1048576 && echo ok',
			'16384\nok\n'],
		'stdout and stderr come in their order': ['echo a; echo b >&2; echo c', 'a\nb\nc\n'],
	};
	for (const [promise, [cmd, output]] of Object.entries(facts))
		await t.test(promise, async () => assert.equal((await lab.exec(cmd)).output, output));

	const signals = [
		['Ctrl-C interrupts', 'echo up; sleep 300', '\u0003', 'cancelled', 130],
		['Ctrl-C reaches the whole foreground', 'echo up; sleep 300 | cat | cat', '\u0003', 'cancelled', 130],
		['Ctrl-C can be handled', "trap 'exit 5' INT; echo up; while :; do sleep 0.1; done", '\u0003',
			'error', 5],
		['Ctrl-\\ quits', 'echo up; sleep 300', '\u001c', 'error', 131],
		['Ctrl-D ends the input', 'echo up; cat; echo over', 'x\n\u0004', 'ok', 0],
	];
	for (const [promise, cmd, keys, status, code] of signals)
		await t.test(promise, async () => {
			const command = await lab.start(cmd);
			await lab.shows(command, 'up');
			const done = await lab.finish(command, keys);
			assert.deepEqual([done.status, done.exit_code], [status, code]);
		});

	await t.test('a control character works from the moment that exec_command has answered', async () => {
		for (let i = 0; i < 20; i++) {
			const done = await lab.finish(await lab.start('exec sleep 300'), '\u0003');
			assert.equal(done.status, 'cancelled');
		}
	});

	await t.test('Ctrl-C is a byte when the program says so', async () => {
		const command = await lab.start('stty -isig -icanon; echo up; head -c 2 | od -An -tx1');
		await lab.shows(command, 'up');
		const done = await lab.finish(command, '\u0003x');
		assert.deepEqual([done.status, done.exit_code], ['ok', 0]);
		assert.match(done.output, /03 78/);
	});

	await t.test('a read-eval-print loop survives an interrupt', async () => {
		const command = await lab.start('python3 -q');
		await lab.shows(command, '>>>');
		await lab.stdin(command, 'print(40 + 2)\n');
		await lab.shows(command, '42');
		await lab.stdin(command, 'import time; print(20 + 3, flush=True); time.sleep(300)\n');
		await lab.shows(command, '23'); // before that an interrupt would meet the prompt
		await lab.stdin(command, '\u0003', { yield_time_ms: 300 });
		await lab.shows(command, 'KeyboardInterrupt');
		await lab.stdin(command, 'print("still", "here")\n');
		// the next prompt, too: until the program reads raw keys the terminal takes Ctrl-D for itself
		await lab.shows(command, 'still here\n>>> ');
		const done = await lab.finish(command, '\u0004');
		assert.deepEqual([done.status, done.exit_code], ['ok', 0]);
	});
});

test('B42: nothing waits for a key by default', async (t) => {
	const lab = await Lab.make(t);
	await lab.exec(`git init -q . && git config user.name a && git config user.email a@b &&
		for i in $(seq 60); do echo $i >f; git add f; git commit -qm "change $i"; done`);

	const ends = ['git log', 'git diff HEAD~50', 'git show HEAD', 'git commit --amend',
		'git rebase -i HEAD~2', 'git branch -a', 'git merge --no-ff HEAD~1',
		'systemctl --version || true', 'man true || true', 'sudo -n true || true'];
	for (const cmd of ends)
		await t.test(`${cmd} ends by itself`, async () => {
			const begun = performance.now();
			const done = await lab.exec(cmd, { timeout_ms: 40_000 });
			assert.deepEqual([done.status, done.exit_code], ['ok', 0], done.output);
			assert.ok(seconds(begun) < 30);
		});

	const keys = [['less', 'less /etc/passwd', 'q'], ['vi', 'vi f', '\u001b:q!\r'],
		['python3', 'python3', '\u0004', '>>> '], ['top', 'top -d 100', 'q']];
	for (const [program, cmd, key, prompt = ''] of keys)
		await t.test(`${program} returns as a live command and takes its key`, async (u) => {
			const { exit_code } = await lab.exec(`command -v ${program}`);
			if (exit_code) return u.skip(`${program} is not installed`);
			const command = await lab.exec(cmd, { yield_time_ms: 1500 });
			if (command.status !== 'running') return; // it does not want such a terminal: fine
			await lab.shows(command, prompt);
			const done = await lab.finish(command, key);
			assert.equal(done.status, 'ok', done.output);
		});

	await t.test('a password prompt is seen and can be left', async () => {
		const command = await lab.start('read -rsp "Password: " p; echo; echo "got ${#p}"');
		await lab.shows(command, 'Password: ');
		assert.equal((await lab.finish(command, 'secret\n')).output.endsWith('got 6\n'), true);
	});
});
