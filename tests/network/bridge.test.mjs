// SPDX-License-Identifier: MIT
// Sandboxes with --network bridge, between real network namespaces: what they reach, what is left
// of them, and what they refuse. The attacks are in tests/escape/network.test.mjs.
import assert from 'node:assert/strict';
import test from 'node:test';
import { until } from '../support.mjs';
import { CLOSED, HOST, lacking, NAME_SERVER, OUTSIDE, PORT, SHUT, World } from './world.mjs';

const skip = lacking();
const GATEWAY = '10.213.0.1';

test('a session on the bridge', { skip }, async (t) => {
	const world = await World.make(t);
	const session = await world.session(await world.sandbox('plain'));

	await t.test('reaches the outside world, which sees the address of the host', async () => {
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
		assert.equal(await session.probe('udp', OUTSIDE), `from ${HOST}`);
	});

	await t.test('has localhost, and reaches itself by its own address', async () => {
		const address = await session.address();
		assert.match(address, /^10\.213\.[0-9.]+$/);
		await session.leave('python3 -m http.server 8123 >/dev/null 2>&1');
		for (const name of ['127.0.0.1', 'localhost', address])
			await until(async () => (await session.output(
				`curl -s -o /dev/null -w %{http_code} http://${name}:8123/`)) === '200', name);
	});

	await t.test('resolves names by the name server of the host', async () => {
		await session.output('true');
		assert.equal(await session.output('cat /etc/resolv.conf'), `nameserver ${NAME_SERVER}`);
		assert.match(await session.output('getent ahostsv4 some.example'), /^203\.0\.113\.2 /);
	});

	await t.test('reaches nothing but names there', async () => {
		assert.equal(await world.host.probe('tcp', NAME_SERVER), `from ${HOST}`);
		assert.equal(await session.probe('tcp', NAME_SERVER), SHUT.tcp);
		assert.equal(await session.probe('udp', NAME_SERVER), SHUT.udp);
	});

	await t.test('has no IPv6', async () => {
		assert.equal(await session.output('ip -6 -o addr show dev eth0'), '');
		assert.equal(await session.probe('tcp', '2001:db8::1'), 'ENETUNREACH');
	});

	await t.test('has its way out also after a renewal, and in an automatic session', async () => {
		for (let i = 0; i < 3; i++) {
			const { structuredContent } = await world.client.callTool({ name: 'exec_command',
				arguments: { sandbox_id: 'plain', cmd: `python3 probe.py tcp ${OUTSIDE} ${PORT}` } });
			assert.equal(structuredContent.output, `from ${HOST}\n`);
		}
	});
});

test('exceptions by --allow', { skip }, async (t) => {
	const world = await World.make(t);
	await world.host.serve(7000);
	await world.host.serve(PORT);
	await world.outside.serve(7000);
	const open = await world.session(await world.sandbox('open', '--allow', `10.99.0.2:${PORT}`,
		'--allow', '192.168.77.0/24', '--allow', `${GATEWAY}:7000`));
	const shut = await world.session(await world.sandbox('shut'));
	const cases = [
		['one port of an address', '10.99.0.2', PORT, `from ${HOST}`],
		['no other port of it', '10.99.0.2', 7000, SHUT],
		['no other address of its network', NAME_SERVER, PORT, SHUT],
		['a whole network', '192.168.77.2', 7000, `from ${HOST}`],
		['one port of the host', GATEWAY, 7000, /^from 10\.213\./],
		['no other port of the host', GATEWAY, PORT, SHUT],
		['no other address of the host', HOST, 7000, SHUT],
	];
	for (const [what, address, port, expected] of cases)
		await t.test(what, async () => {
			for (const kind of ['tcp', 'udp'])
				if (expected instanceof RegExp)
					assert.match(await open.probe(kind, address, port), expected, kind);
				else
					assert.equal(await open.probe(kind, address, port), expected[kind] ?? expected, kind);
		});

	await t.test('are those of their sandbox alone', async () => {
		for (const [, address, port] of cases)
			assert.equal(await shut.probe('tcp', address, port), SHUT.tcp, address);
	});

	await t.test('are shown', async () => {
		const { allow, network } = await world.adminJson('inspect', 'open');
		assert.deepEqual({ allow, network }, { network: 'bridge',
			allow: [`10.99.0.2:${PORT}`, '192.168.77.0/24', `${GATEWAY}:7000`] });
	});

	await t.test('are refused where there is no wall', async () => {
		assert.match(await world.refusal('create', '--workspace', world.dir, '--allow', '10.0.0.1'),
			/--allow goes with --network bridge/);
	});
});

test('what is left in the network of the host', { skip }, async (t) => {
	const world = await World.make(t);
	const others = ['table ip mine {', '\tchain c {',
		'\t\tip saddr 10.213.0.0/16 counter packets 0 bytes 0 accept', '\t}', '}', ''].join('\n');
	await world.host.run('nft', 'add table ip mine; add chain ip mine c; ' +
		'add rule ip mine c ip saddr 10.213.0.0/16 counter accept');
	assert.deepEqual(await world.left(), []);

	await t.test('nothing when the last sandbox is destroyed', async () => {
		for (const id of ['first', 'second']) await world.session(await world.sandbox(id));
		assert.ok((await world.left()).includes('sbx0'));
		await world.destroy('first');
		const session = await world.session('second');
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
		await world.destroy('second');
		assert.deepEqual(await world.left(), []);
	});

	await t.test('nothing of a sandboxd that was killed, once another starts', async () => {
		await world.session(await world.sandbox('killed'));
		await world.kill('killed');
		const session = await world.session(await world.sandbox('next'));
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
		assert.deepEqual((await world.left()).filter((name) => name.startsWith('table')),
			['netdev sbx1o', 'ip sbx1o', 'netdev sbx1', 'ip sbx1', 'ip sbx'].map((name) => `table ${name}`));
		const again = await world.session('killed');
		assert.equal(await again.probe('tcp', OUTSIDE), `from ${HOST}`);
	});

	await t.test('nothing of one that was killed and is destroyed', async () => {
		for (const id of ['killed', 'next']) {
			await world.kill(id);
			await world.destroy(id);
		}
		assert.deepEqual(await world.left(), []);
	});

	await t.test('the rules of others as they were', async () => {
		assert.equal(await world.host.run('nft', 'list', 'table', 'ip', 'mine'), others);
	});
});

test('connections of one sandbox leave some to others', { skip }, async (t) => {
	const MOST = 4096;
	const world = await World.make(t);
	const greedy = await world.session(await world.sandbox('greedy'));
	const other = await world.session(await world.sandbox('other'));
	// each port that is asked is a connection of its own, for half a minute
	const flood = (n) => `python3 -c "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(10000, 10000 + ${n}):
    s.sendto(b'x', ('${OUTSIDE}', port))"`;
	await greedy.output(flood(MOST / 2));
	assert.equal(await greedy.probe('tcp', OUTSIDE), `from ${HOST}`);
	await greedy.output(flood(MOST + 10));
	assert.equal(await greedy.probe('tcp', OUTSIDE), SHUT.tcp);
	assert.equal(await other.probe('tcp', OUTSIDE), `from ${HOST}`);
});

test('many sandboxes at once', { skip }, async (t) => {
	const world = await World.make(t);
	const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
	for (const id of ids) await world.sandbox(id);
	await Promise.all(ids.map((id) => world.admin('session', 'create', id)));
	const sessions = [];
	for (const id of ids) sessions.push(await world.session(id));
	const blocks = await Promise.all(sessions.map(async (s) => (await s.address()).split('.')[2]));
	assert.equal(new Set(blocks).size, ids.length, `each has its own block: ${blocks}`);
	for (const session of sessions)
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
	await Promise.all(ids.map((id) => world.destroy(id)));
	assert.deepEqual(await world.left(), []);
});

test('a firewall that is reloaded', { skip }, async (t) => {
	const world = await World.make(t);
	await world.host.serve();
	const session = await world.session(await world.sandbox('flushed'));
	await world.host.run('nft', 'flush', 'ruleset');

	await t.test('leaves the wall standing', async () => {
		assert.equal(await session.probe('tcp', HOST), SHUT.tcp);
		assert.equal(await session.probe('tcp', GATEWAY), SHUT.tcp);
		for (const address of CLOSED)
			assert.equal(await session.probe('tcp', address), SHUT.tcp, address);
	});

	await t.test('has its way out again with the next session', async () => {
		const next = await world.session('flushed');
		assert.equal(await next.probe('tcp', OUTSIDE), `from ${HOST}`);
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
	});

	await t.test('and so has a host whose bridge was removed', async () => {
		await world.host.ip('link del sbx0');
		const next = await world.session('flushed');
		assert.equal(await next.probe('tcp', OUTSIDE), `from ${HOST}`);
		assert.equal(await next.probe('tcp', HOST), SHUT.tcp);
	});
});

test('bridged packets that the host filters too', { skip }, async (t) => {
	const world = await World.make(t);
	const knob = 'net.bridge.bridge-nf-call-iptables';
	const known = await world.host.run('sysctl', '-n', knob).catch(() => '');
	if (!known) return t.skip(`this kernel has no ${knob}`);
	await world.host.serve();
	const session = await world.session(await world.sandbox('filtered'));
	for (const value of [0, 1]) {
		await world.host.run('sysctl', '-qw', `${knob}=${value}`);
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`, `${knob}=${value}`);
		assert.equal(await session.probe('tcp', HOST), SHUT.tcp, `${knob}=${value}`);
	}
});

test('a host that is not as it should be', { skip }, async (t) => {
	await t.test('does not forward: create and sandboxd refuse and say what to do', async (t) => {
		const world = await World.make(t, { forward: false });
		const why = /does not forward IPv4 packets; 'sysctl -w net\.ipv4\.ip_forward=1'/;
		assert.match(await world.sandbox('x').catch((error) => error.stderr), why);
		await world.host.run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
		await world.sandbox('y');
		await world.host.run('sysctl', '-qw', 'net.ipv4.ip_forward=0');
		assert.match(await world.refusal('session', 'create', 'y'), why);
		assert.deepEqual(await world.left(), []);
	});

	await t.test('has an interface of that name: it is left alone', async (t) => {
		const world = await World.make(t);
		await world.host.ip('link add sbx0 type bridge');
		await world.sandbox('x');
		assert.match(await world.refusal('session', 'create', 'x'), /sbx0 that is none of sbx's/);
		await world.destroy('x');
		assert.deepEqual(await world.left(), ['sbx0']);
	});

	await t.test('has a route into the first pool: the next one is taken', async (t) => {
		const world = await World.make(t);
		await world.host.ip(`route add 10.213.128.0/17 via ${OUTSIDE}`);
		const session = await world.session(await world.sandbox('x'));
		assert.match(await session.address(), /^10\.214\./);
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
	});

	await t.test('has routes into every pool: sandboxd refuses', async (t) => {
		const world = await World.make(t);
		for (const net of ['10.0.0.0/8', '172.16.0.0/12', '198.18.0.0/15'])
			await world.host.ip(`route add ${net} via ${OUTSIDE}`);
		await world.sandbox('x');
		assert.match(await world.refusal('session', 'create', 'x'), /routes into every network/);
	});

	await t.test('has its resolver on the loopback: names are not resolved, at once', async (t) => {
		const world = await World.make(t, { resolver: 'nameserver 127.0.0.1\n' });
		const session = await world.session(await world.sandbox('x'));
		assert.match(await session.output('cat /etc/resolv.conf'), /^# The name servers of the host/);
		assert.equal(await session.output('getent ahostsv4 some.example; echo $?'), '2');
		assert.equal(await session.probe('tcp', OUTSIDE), `from ${HOST}`);
	});
});
