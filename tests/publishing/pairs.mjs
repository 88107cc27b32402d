// SPDX-License-Identifier: MIT
// Two commands on one sandbox, both begun before either ends, with a client each.
import assert from 'node:assert/strict';
import { until } from '../faults/world.mjs';

export const ownerOf = ({ workspace_session_id }) => `workspace_session:${workspace_session_id}`;

/** A command that has made its changes and waits for a line of input; what it then does is more. */
export async function begin(world, words, more = 'true') {
	const cmd = `${words}; echo changed; read -r go; ${more}`;
	const { command_session_id, output } = await world.call('exec_command', { cmd, yield_time_ms: 0 });
	let seen = output;
	await until(async () => {
		if (seen.includes('changed')) return true;
		const state = await world.call('write_command_stdin', { command_session_id, stdin: '', yield_time_ms: 50 });
		assert.equal(state.status, 'running', JSON.stringify(state));
		seen += state.output;
		return false;
	}, words);
	return { command_session_id, seen };
}

/** Its last result, with all of its output. */
export async function finish(world, { command_session_id, seen }) {
	const result = await world.call('write_command_stdin', { command_session_id, stdin: 'go\n', yield_time_ms: 50_000 });
	assert.ok('exit_code' in result, JSON.stringify(result));
	return { ...result, output: seen + result.output };
}

/** Both change the same base; they end one after the other. [first, second], in that order. */
export async function sideBySide(world, first, second) {
	const a = await begin(world, first);
	const b = await begin(world, second);
	return [await finish(world, a), await finish(world, b)];
}

export function assertPublished(result) {
	assert.ok(result.publish, JSON.stringify(result));
}

/** The conflicts of a refusal as "path kind", sorted. */
export function refusal(result) {
	assert.equal(result.publish_rejected, true, JSON.stringify(result));
	assert.ok(!result.publish && result.reject_id, JSON.stringify(result));
	return result.conflicts.map(({ path, kind }) => `${path} ${kind}`).sort();
}
