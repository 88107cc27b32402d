// SPDX-License-Identifier: MIT
// A system call policy of the user's own (create --seccomp FILE): it is what sessions run under, as it
// was at create; a broken one makes no sandbox.
import assert from 'node:assert/strict';
import { lstat, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { Lab } from '../commands/lab.mjs';
import { here, RawServer, State } from '../support.mjs';

const source = process.env.SBX_SOURCE_DIR ?? join(here, '../..');
const policy = JSON.parse(await readFile(join(source, 'seccomp/default.json'), 'utf8'));
const CALLS = ['mkdir', 'mkdirat'];

/** The default policy with another answer to mkdir. */
function withoutMkdir(rule) {
	const copy = structuredClone(policy);
	for (const group of copy.syscalls)
		group.names = group.names.filter((name) => !CALLS.includes(name));
	copy.syscalls.push({ names: CALLS, ...rule });
	return JSON.stringify(copy, null, 1);
}

async function lab(t, text) {
	const state = await State.make(t);
	const workspace = join(state.dir, 'workspace');
	const file = join(state.dir, 'policy.json');
	await mkdir(workspace);
	await writeFile(file, text);
	await state.admin('create', '--workspace', workspace, '--id', 'lab', '--seccomp', file);
	state.ids.push('lab');
	const server = new RawServer(t, { env: state.env });
	await server.initialize();
	return { lab: Object.assign(new Lab(), { t, state, id: 'lab', server }), file };
}

test('a policy of its own is what sessions run under, whatever becomes of its file', async (t) => {
	const { lab: made, file } = await lab(t, withoutMkdir({ action: 'SCMP_ACT_ERRNO', errnoRet: 95 }));
	const refused = { output: "mkdir: cannot create directory ‘d’: Operation not supported\n", exit_code: 1 };
	const mkdirs = async () => {
		const { output, exit_code, notes } = await made.exec('mkdir d');
		assert.deepEqual({ output, exit_code }, refused);
		assert.equal(notes, undefined);
	};
	await mkdirs();
	await writeFile(file, JSON.stringify(policy));
	await made.crash();
	await mkdirs();
	await rm(file);
	await made.crash();
	await mkdirs();
	assert.equal((await made.admin('inspect', 'lab')).seccomp_profile, file);
	assert.match(await made.state.admin('inspect', 'lab'), /system call policy +.*policy\.json/);
});

test('a program that the policy kills is told of in notes', async (t) => {
	const { lab: made } = await lab(t, withoutMkdir({ action: 'SCMP_ACT_KILL_PROCESS' }));
	for (const cmd of ['mkdir d', 'exec mkdir d']) {
		const result = await made.exec(cmd);
		assert.deepEqual([result.status, result.exit_code], ['error', 159], JSON.stringify(result));
		assert.match(result.notes.join('\n'), /^system call filter: .*SIGSYS.*policy\.json/);
	}
	assert.equal((await made.exec('echo on')).notes, undefined);
});

test('another policy in the place of the copy is refused', async (t) => {
	const { lab: made } = await lab(t, withoutMkdir({ action: 'SCMP_ACT_ERRNO' }));
	const copy = join(made.sandboxDir(), 'seccomp.json');
	const text = await readFile(copy, 'utf8');
	await writeFile(copy, text.replaceAll('"mkdir"', '"rmdir"'));
	assert.match(await made.adminFails('session', 'create', 'lab'),
		/seccomp\.json is not the policy that the sandbox was created with/);
	await rm(copy);
	assert.match(await made.adminFails('session', 'create', 'lab'), /seccomp\.json.*No such file/);
	await writeFile(copy, text);
	await made.admin('session', 'create', 'lab');
});

/** [what, text, what the refusal names] */
const broken = [
	['no JSON', '{\n "defaultAction": "SCMP_ACT_ALLOW",\n "syscalls": [oops]\n}\n', /line 3/],
	['nothing', '', /empty/],
	['an unknown action', '{"defaultAction":"ALLOW","syscalls":[]}', /defaultAction "ALLOW"/],
	['an unknown member', withoutMkdir({ action: 'SCMP_ACT_ERRNO', errno: 1 }), /syscalls\[\d+\]: .*"errno"/],
	['a policy under which nothing runs', '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}', /no session could run/],
	['one that lets nobody end', JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW',
		syscalls: [{ names: ['exit', 'exit_group', 'kill', 'tgkill', 'tkill'], action: 'SCMP_ACT_ERRNO' }] }),
	/no session could run/],
	['one that kills a shell', JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW',
		syscalls: [{ names: ['execve', 'execveat'], action: 'SCMP_ACT_KILL_PROCESS' }] }),
	/no session could run.*Bad system call/],
];

test('a broken policy makes no sandbox', async (t) => {
	const state = await State.make(t);
	const workspace = join(state.dir, 'workspace');
	const file = join(state.dir, 'policy.json');
	await mkdir(workspace);
	const create = (path) => state.admin('create', '--workspace', workspace, '--id', 'x', '--seccomp', path)
		.then(() => assert.fail(`${path} was taken`), (error) => error.stderr);
	for (const [what, text, reason] of broken) {
		await writeFile(file, text);
		const message = await create(file);
		assert.match(message, /seccomp policy .*policy\.json: /, what);
		assert.match(message, reason, what);
	}
	assert.match(await create(join(state.dir, 'none')), /seccomp policy .*none: No such file/);
	assert.match(await create('/dev/zero'), /seccomp policy \/dev\/zero/);
	assert.match(await create(state.dir), /seccomp policy .*: Is a directory/);
	await assert.rejects(lstat(join(state.env.SBX_STATE_DIR, 'x')), { code: 'ENOENT' });
});
