// SPDX-License-Identifier: MIT
// The story of scripts/demo: two agents and a build in one sandbox at the same time.
//   node demo.mjs SBX_ADMIN SANDBOX_ID
// Whatever it prints about the sandbox was answered by the running system; when an answer is not
// what the story needs, it fails.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { call, clients } from './support.mjs';

const [adminPath, sandbox_id] = process.argv.slice(2);

const print = (text) => console.log(text.replace(/\n$/, ''));
const title = (text) => print(`\n=== ${text}`);

function admin(...args) {
	print(`\n$ sbx-admin ${args.join(' ')}`);
	print(execFileSync(adminPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }));
}

/** The members of an answer that tell the story, in one line. */
function brief(answer) {
	const wanted = ['status', 'exit_code', 'command_session_id', 'workspace_session_id', 'type',
		'publish', 'publish_rejected', 'publish_reject_class', 'reject_id', 'conflicts', 'output'];
	const shown = wanted.filter((key) => answer[key] !== undefined && answer[key] !== '');
	return JSON.stringify(Object.fromEntries(shown.map((key) => [key, answer[key]])));
}

/** One agent: an official client with a sandbox-mcp of its own. */
class Agent {
	static async start(name, kind) {
		const client = await clients[kind](process.env);
		await client.listTools(); // from now on each result is checked against its schema
		const { name: server, version } = client.getServerVersion();
		const era = client.getNegotiatedProtocolVersion?.() ?? client.transport.protocolVersion;
		print(`${name}: ${kind}; speaks ${era} with ${server} ${version}`);
		return new Agent(name, client);
	}

	constructor(name, client) {
		this.name = name;
		this.client = client;
	}

	async tool(tool, args) {
		print(`${this.name} > ${tool} ${JSON.stringify(args)}`);
		const answer = await call(this.client, tool, { sandbox_id, ...args });
		print(`${this.name} < ${brief(answer)}`);
		return answer;
	}

	/** Starts a command that waits for a line of input before it does its work. */
	async prepare(cmd) {
		const answer = await this.tool('exec_command', { cmd: `read -r go; ${cmd}`, yield_time_ms: 0 });
		assert.equal(answer.status, 'running');
		return answer.command_session_id;
	}

	/** Lets a prepared command go on, and waits for its end. */
	async go(command_session_id) {
		const answer = await this.tool('write_command_stdin', {
			command_session_id,
			stdin: 'go\n',
			yield_time_ms: 50_000,
		});
		assert.notEqual(answer.status, 'running');
		return answer;
	}

	close() {
		return this.client.close();
	}
}

/** A text file of some lines to edit: the README if there is one. */
async function chooseFile(agent) {
	const cmd = `for f in README.md README $(git ls-files 2>/dev/null) $(find . -type f); do
		[ -f "$f" ] && grep -Iq . "$f" && [ $(wc -l <"$f") -ge 12 ] && echo "\${f#./}" && break
	done`;
	const answer = await agent.tool('exec_command', { cmd, yield_time_ms: 50_000 });
	const file = answer.output.trim();
	assert.match(file, /^[^\n'"\\]+$/, 'the project has a text file of 12 lines');
	return file;
}

/** What takes a while: compiles the lower layers of this project, or reads the whole of another. */
const build = `read -r go
if [ -f include/sbx/util.h ]; then
	for f in src/base/*.c src/text/*.c; do
		gcc -std=gnu17 -D_GNU_SOURCE -O2 -Iinclude -c "$f" -o /tmp/$(basename "$f").o || exit 1
		echo "compiled $f"
	done
	ar cr build-of-demo.a /tmp/*.o && ls -l build-of-demo.a
else
	find . -type f -print0 | xargs -0 sha256sum | sort -k 2 >checksums-of-demo &&
		wc -l checksums-of-demo
fi`;

async function waitForEnd(agent, command_session_id) {
	for (;;) {
		const answer = await call(agent.client, 'write_command_stdin', {
			sandbox_id,
			command_session_id,
			stdin: '',
			yield_time_ms: 50_000,
		});
		if (answer.status === 'running') continue;
		print(`${agent.name} < ${brief(answer)}`);
		return answer;
	}
}

async function parallelWork(a, b, c) {
	title('a build, and two agents that edit the same file and files of their own, in parallel');
	const file = await chooseFile(c);
	const built = (await c.tool('exec_command', { cmd: build, yield_time_ms: 0 })).command_session_id;
	const first = await a.prepare(
		`sed -i '2i A line by agent A' '${file}' && echo 'only A' >notes-of-a.txt`,
	);
	const second = await b.prepare(
		`sed -i '$a A line by agent B' '${file}' && echo 'only B' >notes-of-b.txt`,
	);
	admin('command', 'list', sandbox_id);
	await c.tool('write_command_stdin', { command_session_id: built, stdin: 'go\n', yield_time_ms: 0 });
	const both = await Promise.all([a.go(first), b.go(second)]);
	for (const answer of both) assert.ok(answer.publish.layer_id, 'published');
	assert.equal(both[0].publish.merged + both[1].publish.merged, 1, 'the later one was merged');
	return { file, built };
}

async function merged(a, file) {
	title('the merge: both lines are there');
	const { output } = await a.tool('exec_command', {
		cmd: `grep -n 'A line by agent' '${file}'; cat notes-of-a.txt notes-of-b.txt`,
		yield_time_ms: 50_000,
	});
	assert.match(output, /agent A[^]*agent B[^]*only A[^]*only B/);
}

async function blame(c, file) {
	title('the owners: an edit by a third agent, then every line of the file');
	await c.tool('file_edit', {
		path: file,
		edits: [{ old_string: 'A line by agent A\n', new_string: 'A line by agent A\nA line by agent C\n' }],
	});
	const { ranges } = await c.tool('file_blame', { path: file });
	print(ranges.map((r) => `${r.start_line}+${r.line_count} ${r.owner}`).join('\n'));
	const owners = new Set(ranges.map((r) => r.owner));
	assert.ok(owners.size >= 3, `three owners, not ${[...owners]}`);
	admin('blame', sandbox_id, file);
}

async function conflict(a, b, file) {
	title('a conflict: both change the same line; the later one is kept as a reject');
	const first = await a.prepare(`sed -i 's/^A line by agent C$/A wants this/' '${file}'`);
	const second = await b.prepare(
		`sed -i 's/^A line by agent C$/B wants that/' '${file}' && echo more >>notes-of-b.txt`,
	);
	assert.ok((await a.go(first)).publish.layer_id);
	const refused = await b.go(second);
	assert.equal(refused.publish_rejected, true);
	assert.equal(refused.publish_reject_class, 'source_conflict');
	admin('reject', 'list', sandbox_id);
	admin('reject', 'show', sandbox_id, refused.reject_id);
	admin('reject', 'diff', sandbox_id, refused.reject_id);
	const { output } = await a.tool('exec_command', {
		cmd: `grep -n 'wants' '${file}'; cat notes-of-b.txt`,
		yield_time_ms: 50_000,
	});
	assert.match(output, /A wants this/);
	assert.doesNotMatch(output, /B wants that|more/, 'all of it or nothing');
}

title('three clients, each with a sandbox-mcp of its own');
const a = await Agent.start('A', 'sdk 1.x, initialize');
const b = await Agent.start('B', 'client 2.x, 2026-07-28');
const c = await Agent.start('C', 'client 2.x, what it finds');

const { file, built } = await parallelWork(a, b, c);
await merged(a, file);
await blame(c, file);
await conflict(a, b, file);

title('the build, on the state that it started from');
const result = await waitForEnd(c, built);
assert.equal(result.status, 'ok');

title('the layers');
admin('layers', sandbox_id);
admin('verify', sandbox_id);

await Promise.all([a.close(), b.close(), c.close()]);
