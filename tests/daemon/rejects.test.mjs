// SPDX-License-Identifier: MIT
// Refused work in a real sandbox: what the answer tells of it, and each verb of `sbx-admin reject`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import test from 'node:test';
import { State, until } from '../support.mjs';
import { Wire } from './wire.mjs';

const LINES = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join('');

class Box {
	static async make(t) {
		const box = new Box();
		box.state = await State.make(t);
		box.id = await box.state.sandbox('rejects', { f: LINES, gone: 'gone\n', 'dir/x': 'x\n', bin: 'a\0b' });
		await box.state.adminJson('inspect', box.id);
		box.wire = await Wire.connect(t, box.state, box.id);
		return box;
	}

	async exec(cmd, more = {}) {
		const result = await this.wire.result('exec_command', { cmd, yield_time_ms: 50_000, ...more });
		assert.equal(result.status, 'ok', JSON.stringify(result));
		return result;
	}

	text(path) {
		return this.wire.result('file_read', { path }).then(({ content }) => content);
	}

	async owners(path) {
		const { ranges } = await this.wire.result('file_blame', { path });
		return ranges.flatMap(({ line_count, owner }) => Array(line_count).fill(owner));
	}

	/** sbx-admin, which may fail: {code, stdout, stderr}. */
	try(...args) {
		const admin = resolve(process.env.SBX_BUILD_DIR, 'sbx-admin');
		return new Promise((done) => {
			execFile(admin, args, { env: this.state.env }, (error, stdout, stderr) =>
				done({ code: error ? error.code : 0, stdout, stderr }));
		});
	}

	rejects() {
		return this.state.adminJson('reject', 'list', this.id).then(({ rejects }) => rejects);
	}

	/** A command starts, theirs is published, the command ends: its refusal, and both owners. */
	async refused(ours, theirs) {
		const begun = await this.wire.result('exec_command', {
			cmd: `${ours} && echo changed && read -r go`,
			yield_time_ms: 0,
		});
		const { command_session_id } = begun;
		const say = (stdin) =>
			this.wire.result('write_command_stdin', { command_session_id, stdin, yield_time_ms: stdin ? 50_000 : 100 });
		let { output } = begun;
		await until(async () => output.includes('changed') || !(output += (await say('')).output), 'it has changed it');
		const first = await this.exec(theirs);
		const second = await say('go\n');
		assert.equal(second.publish_rejected, true, JSON.stringify(second));
		const owner = ({ workspace_session_id }) => `workspace_session:${workspace_session_id}`;
		return { ...second, first: owner(first), owner: owner(second) };
	}
}

const OURS = "sed -i 's/^line 5$/ours/; s/^line 15$/ours too/' f && rm gone && mv dir moved && echo new >new";
const THEIRS = "sed -i 's/^line 5$/theirs/' f";

test('a refusal tells every conflicting path, its kind, both owners and the lines', async (t) => {
	const box = await Box.make(t);
	const refused = await box.refused(
		"sed -i '5s/.*/ours/; 12,13d' f && rm gone && echo o >n && printf 'a\\0o' >bin && chmod 600 dir/x && mkdir dir/new && echo o >dir/new/o",
		"sed -i '1i first' f && sed -i '6s/.*/theirs/; 13s/.*/theirs too/' f && echo more >>gone && echo t >n && printf 'a\\0t' >bin && rm -r dir",
	);
	assert.equal(refused.status, 'ok', 'the command itself did not fail');
	assert.equal(refused.publish_reject_class, 'source_conflict');
	const { first: theirs_owner, owner: ours_owner } = refused;
	const range = (start_line, line_count) => [{ start_line, line_count }];
	assert.deepEqual(refused.conflicts.map(({ path, kind }) => [path, kind]).sort(), [
		['bin', 'binary'], ['dir/new', 'modify_delete'], ['dir/new/o', 'modify_delete'],
		['dir/x', 'modify_delete'], ['f', 'content'], ['gone', 'delete_modify'], ['n', 'add_add'],
	]);
	for (const { path, ours_owner: ours, theirs_owner: theirs } of refused.conflicts) {
		assert.equal(ours, ours_owner, path);
		assert.equal(theirs, theirs_owner, path);
	}
	const content = refused.conflicts.find(({ path }) => path === 'f');
	assert.equal(content.kind, 'content');
	assert.deepEqual(content.base_ranges, [...range(5, 1), ...range(12, 2)]);
	assert.deepEqual(content.ours_ranges, [...range(5, 1), ...range(12, 0)]);
	assert.deepEqual(content.theirs_ranges, [...range(6, 1), ...range(13, 2)]);
	assert.match(refused.reject_id, /^rej_/);
	assert.match(JSON.stringify(refused), /sbx-admin reject/, 'how to go on');
	assert.equal(await box.text('n'), 't\n');
});

test('list, show, diff and export of a reject, then drop', async (t) => {
	const box = await Box.make(t);
	assert.deepEqual(await box.rejects(), []);
	const { reject_id, owner } = await box.refused(OURS, THEIRS);

	const [listed, ...more] = await box.rejects();
	assert.deepEqual(more, []);
	assert.deepEqual([listed.reject_id, listed.class, listed.owner, listed.n_conflicts], [reject_id, 'source_conflict', owner, 1]);
	assert.match(listed.command, /^sed -i/);
	assert.match(await box.state.admin('reject', 'list', box.id), new RegExp(reject_id));

	const shown = await box.state.adminJson('reject', 'show', box.id, reject_id);
	assert.deepEqual(shown.conflicts.map(({ path, kind }) => [path, kind]), [['f', 'content']]);
	assert.equal(shown.deleted, 2);
	assert.match(await box.state.admin('reject', 'show', box.id, reject_id), /content/);

	const diff = await box.state.admin('reject', 'diff', box.id, reject_id);
	for (const line of [/^-line 5$/m, /^\+ours$/m, /^\+ours too$/m, /^\+new$/m]) assert.match(diff, line);
	assert.doesNotMatch(diff, /theirs/, 'it is against its base');

	const dest = join(box.state.dir, 'out');
	await box.state.admin('reject', 'export', box.id, reject_id, dest);
	assert.equal(await readFile(join(dest, 'files/f'), 'utf8'), LINES.replace('line 5\n', 'ours\n').replace('line 15\n', 'ours too\n'));
	assert.equal(await readFile(join(dest, 'files/moved/x'), 'utf8'), 'x\n');
	assert.deepEqual((await readFile(join(dest, 'deleted'), 'utf8')).split('\0').filter(Boolean).sort(), ['dir', 'gone']);
	assert.equal(JSON.parse(await readFile(join(dest, 'reject.json'))).reject_id, reject_id);
	assert.notEqual((await box.try('reject', 'export', box.id, reject_id, dest)).code, 0, 'over what is there');

	const before = (await box.state.adminJson('inspect', box.id)).version;
	await box.state.admin('reject', 'drop', box.id, reject_id);
	assert.deepEqual(await box.rejects(), []);
	assert.equal((await box.state.adminJson('inspect', box.id)).version, before);
	for (const verb of ['show', 'diff', 'retry', 'drop']) {
		const { code, stderr } = await box.try('reject', verb, box.id, reject_id);
		assert.equal(code, 1, verb);
		assert.match(stderr, new RegExp(`no reject ${reject_id}`), verb);
	}
});

test('retry resolves against the present head, and lands as a whole with its own owner', async (t) => {
	const box = await Box.make(t);
	const { reject_id, owner } = await box.refused(OURS, THEIRS);
	const again = await box.try('reject', 'retry', box.id, reject_id, '--json');
	assert.equal(again.code, 1);
	assert.match(again.stdout + again.stderr, /source_conflict|conflict/);
	assert.deepEqual((await box.rejects()).map((each) => each.reject_id), [reject_id]);
	assert.equal((await box.wire.ask('file_read', { path: 'new' })).error.kind, 'not_found');

	await box.exec("sed -i 's/^theirs$/line 5/; s/^line 9$/later/' f");
	const { publish } = await box.state.adminJson('reject', 'retry', box.id, reject_id);
	assert.equal(publish.merged, 1, JSON.stringify(publish));
	assert.deepEqual(await box.rejects(), [], 'what has landed is refused work no more');
	assert.equal(
		await box.text('f'),
		LINES.replace('line 5\n', 'ours\n').replace('line 9\n', 'later\n').replace('line 15\n', 'ours too\n'),
	);
	const owners = await box.owners('f');
	assert.deepEqual([owners[4], owners[14], owners[0]], [owner, owner, 'original']);
	assert.equal(await box.text('moved/x'), 'x\n');
	assert.deepEqual(await box.owners('moved/x'), ['original']);
	assert.equal((await box.wire.ask('file_read', { path: 'gone' })).error.kind, 'not_found');
	assert.equal((await box.wire.result('verify')).damage?.length ?? 0, 0);
});

test('of two that try a reject again at once one is told that the other does', async (t) => {
	const box = await Box.make(t);
	for (let round = 0; round < 5; round++) {
		const path = `file${round}`;
		const { reject_id } = await box.refused(
			`echo ours >${path} && dd if=/dev/urandom of=big${round} bs=64k count=40 status=none`,
			`echo theirs >${path}`,
		);
		await box.exec(`rm ${path}`);
		const [first, ...others] = await Promise.all(
			['reject_retry', 'reject_retry', 'reject_drop', 'reject_retry'].map((op) => box.wire.ask(op, { reject_id })),
		);
		assert.ok(first.result?.publish, JSON.stringify(first));
		for (const { error } of others) {
			assert.equal(error?.kind, 'operation_conflict', JSON.stringify(others));
			assert.match(error.message, new RegExp(`${reject_id} is being tried again`));
		}
		assert.equal(await box.text(path), 'ours\n');
		assert.deepEqual((await box.wire.result('reject_list')).rejects, []);
	}
	assert.deepEqual(await readdir(join(box.state.env.SBX_STATE_DIR, box.id, 'store/rejects')), []);
});
