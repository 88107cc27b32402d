// SPDX-License-Identifier: MIT
// Attacks from a sandbox with --network bridge on the host, on closed networks and on other
// sessions. Every service that must not be reached is first reached from where it has to be.
import assert from 'node:assert/strict';
import test from 'node:test';
import { until } from '../support.mjs';
import { CLOSED, HOST, lacking, OUTSIDE, PORT, SHUT, World } from '../network/world.mjs';

const skip = lacking();
const GATEWAY = '10.213.0.1';

/** Raw frames, as only the host's root can send them from a session's network namespace. */
const RAW = `
import json, socket, struct, sys
me, gateway, port = sys.argv[1:4]
def mac(address):
    a = address.split('.')
    return bytes([2, 0x73, 0x62, 0x78, int(a[2]), int(a[3])])
def ip(address):
    return socket.inet_aton(address)
def total(data):
    s = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def udp(source, options=b''):
    data = struct.pack('!HHHH', 4444, int(port), 8 + len(text), 0) + text.encode()
    words = 5 + len(options) // 4
    head = struct.pack('!BBHHHBBH', 0x40 | words, 0, 4 * words + len(data), 1, 0, 64, 17, 0)
    head += ip(source) + ip(target) + options
    return head[:10] + struct.pack('!H', total(head)) + head[12:] + data
def arp(sender_mac, sender_ip):
    return struct.pack('!HHBBH', 1, 0x0800, 6, 4, 2) + sender_mac + ip(sender_ip) \\
        + bytes([2, 0x73, 0x62, 0x78, 0, 1]) + ip(gateway)
router = bytes([2, 0x73, 0x62, 0x78, 0, 1])
def frame(kind):
    return {
        'honest': (router, mac(me), 0x0800, udp(me)),
        'address': (router, mac(me), 0x0800, udp(other)),
        'outsider': (router, mac(me), 0x0800, udp('203.0.113.77')),
        'both': (router, mac(other), 0x0800, udp(other)),
        'stranger': (router, b'\\x02abcde', 0x0800, udp(me)),
        'options': (router, mac(me), 0x0800, udp(me, bytes([131, 7, 4]) + ip(other) + b'\\0')),
        'tagged': (router, mac(other), 0x8100, struct.pack('!HH', 0, 0x0800) + udp(other)),
        'direct': (mac(other), mac(me), 0x0800, udp(me)),
        'broadcast': (b'\\xff' * 6, mac(me), 0x0800, udp(me)),
        'arp': (router, mac(me), 0x0806, arp(mac(me), other)),
        'arp-both': (router, mac(me), 0x0806, arp(mac(other), other)),
        'arp-gateway': (b'\\xff' * 6, mac(me), 0x0806, arp(mac(me), gateway)),
    }[kind]
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('eth0', 0))
for kind, other, target, text in json.loads(sys.argv[4]):
    to, source, protocol, payload = frame(kind)
    s.send(to + source + struct.pack('!H', protocol) + payload)
`;

test('from the bridge to where nothing was allowed', { skip }, async (t) => {
	const world = await World.make(t);
	await world.host.serve();
	const session = await world.session(await world.sandbox('closed'));

	for (const address of CLOSED)
		await t.test(`a machine at ${address}`, async () => {
			assert.equal(await world.host.probe('tcp', address), `from ${HOST}`);
			assert.equal(await session.probe('tcp', address), SHUT.tcp);
			assert.equal(await session.probe('udp', address), SHUT.udp);
		});

	for (const address of [HOST, GATEWAY])
		await t.test(`services of the host at ${address}`, async () => {
			assert.match(await world.host.probe('tcp', address), /^from /);
			assert.equal(await session.probe('tcp', address), SHUT.tcp);
			assert.equal(await session.probe('udp', address), SHUT.udp);
		});

	await t.test('an address that the host gets later', async () => {
		await world.host.ip('addr add 203.0.113.9/24 dev up0');
		assert.match(await world.host.probe('tcp', '203.0.113.9'), /^from /);
		assert.equal(await session.probe('tcp', '203.0.113.9'), SHUT.tcp);
	});

	await t.test('the loopback of the host', async () => {
		assert.match(await world.host.probe('tcp', '127.0.0.1'), /^from /);
		assert.equal(await session.probe('tcp', '127.0.0.1'), 'ECONNREFUSED');
	});

	await t.test('a port that the host redirects into a closed network', async () => {
		await world.host.run('nft', 'add table ip published; add chain ip published c { type nat hook ' +
			'prerouting priority -100; }; add rule ip published c meta l4proto { tcp, udp } ' +
			`th dport 9000 dnat to 10.99.0.2:${PORT}`);
		for (const value of [1, 0]) { // 1: redirected before the packet has left the bridge
			const knob = `net.bridge.bridge-nf-call-iptables=${value}`;
			await world.host.run('sysctl', '-qw', knob).catch(() => {}); // no such module: as 0
			for (const address of [HOST, GATEWAY]) await session.probe('send', address, 9000);
		}
		assert.equal(await session.probe('tcp', HOST, 9000), SHUT.tcp);
		assert.equal(await session.probe('udp', OUTSIDE), `from ${HOST}`); // after them
		assert.deepEqual(world.outside.heard.filter(({ text }) => text?.startsWith('send')), []);
	});

	await t.test('broadcasts and multicasts', async () => {
		for (const address of ['255.255.255.255', '10.213.255.255', '203.0.113.255', '224.0.0.251'])
			await session.probe('send', address, PORT, 'broadcast');
		assert.equal(await session.probe('udp', OUTSIDE), `from ${HOST}`); // after them
		const heard = [...world.host.heard, ...world.outside.heard];
		assert.deepEqual(heard.filter(({ text }) => text?.startsWith('send')), []);
	});

	await t.test('stations of the way that a packet names itself', async () => {
		await session.probe('send', OUTSIDE, PORT, 'lsrr');
		assert.equal(await session.probe('udp', OUTSIDE), `from ${HOST}`);
		assert.deepEqual(world.outside.heard.filter(({ text }) => /lsrr/.test(text)), []);
	});

	await t.test('somebody else as the sender', async () => {
		assert.match(await session.probe('send', OUTSIDE, PORT, 'from=10.213.0.1'), /^E/);
		await session.probe('send', OUTSIDE, PORT, 'from=127.0.0.1');
		assert.equal(await session.probe('udp', OUTSIDE), `from ${HOST}`);
		assert.deepEqual(world.outside.heard.filter(({ text }) => /from=/.test(text)), []);
	});

	await t.test('changes of its own network', async () => {
		const denied = /not permitted|permission denied|family not supported/i;
		const attempts = ['ip addr add 10.213.9.9/16 dev eth0', 'ip link set eth0 down',
			'ip route del default', 'ip link add name br0 type bridge', 'nft list ruleset',
			'sysctl -w net.ipv4.ip_forward=1',
			'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"',
			'python3 -c "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"'];
		for (const attempt of attempts)
			assert.match(await session.output(`${attempt} 2>&1`), denied, attempt);
	});
});

test('from the bridge to other sessions', { skip }, async (t) => {
	const world = await World.make(t);
	const here = await world.sandbox('here', '--allow', '10.0.0.0/8');
	const there = await world.sandbox('there');
	const attacker = await world.session(here);
	const victims = {
		'of its sandbox': await world.session(here),
		'of another': await world.session(there),
	};
	const serve = `import socket
s = socket.create_server(('', ${PORT}))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(('', ${PORT}))
while True:
    s.accept()[0].sendall(b'reached')`;

	for (const [whose, victim] of Object.entries(victims))
		await t.test(`a server in a session ${whose}`, async () => {
			const address = await victim.address();
			await victim.leave(`python3 -c "${serve}"`);
			await until(async () => (await victim.probe('tcp', address)) === 'reached', 'the server');
			assert.equal(await attacker.probe('tcp', address), SHUT.tcp);
			assert.equal(await attacker.probe('udp', address), SHUT.udp);
		});

	await t.test('a server in a session, from outside and by way of the host', async () => {
		const address = await victims['of another'].address();
		await world.outside.ip(`route add 10.213.0.0/16 via ${HOST}`);
		const script = 'import socket; s = socket.socket(); s.settimeout(1); ' +
			`s.connect(('${address}', ${PORT}))`;
		for (const machine of [world.outside, world.host])
			await assert.rejects(machine.run('python3', '-c', script), /TimeoutError|timed out/);
	});
});

test('forged frames from a session', { skip }, async (t) => {
	const world = await World.make(t);
	// no help from the host's other rules; kernels without the module have none to give
	await world.host.run('sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0').catch(() => {});
	await world.host.serve();
	const attacker = await world.session(await world.sandbox('forger', '--allow', '10.213.0.1'));
	const victim = await world.session('forger');
	const stranger = await world.session(await world.sandbox('stranger', '--allow', '10.99.0.2'));
	const me = await attacker.address();
	const other = await victim.address();
	const foreign = await stranger.address();
	const send = (frames) =>
		attacker.asRoot('python3', '-c', RAW, me, GATEWAY, String(PORT), JSON.stringify(frames));
	const sent = (kind, as, target) => [kind, as, target, `${kind} as ${as} to ${target}`];
	/** Sends them and then an honest one to each machine: what arrives has arrived when those have. */
	const arrived = async (frames) => {
		const machines = [[world.outside, OUTSIDE], [world.host, GATEWAY]];
		const last = `after ${Math.random()}`;
		await send([...frames, ...machines.map(([, target]) => ['honest', me, target, last])]);
		for (const [machine] of machines)
			await until(() => machine.heard.some(({ text }) => text === last), 'an honest frame');
		return machines.flatMap(([machine]) => machine.heard.map(({ text }) => text))
			.filter((text) => / as .* to /.test(text));
	};
	const forged = ['address', 'outsider', 'both', 'stranger', 'options', 'tagged'];
	const heard = await arrived([OUTSIDE, GATEWAY].flatMap((target) => [other, foreign].flatMap(
		(as) => forged.map((kind) => sent(kind, as, target)))));

	for (const kind of forged)
		await t.test(`a sender that it is not: ${kind}`, () => {
			assert.deepEqual(heard.filter((text) => text.startsWith(kind)), []);
		});

	await t.test("another sandbox's exceptions, by its addresses", async () => {
		assert.equal(await stranger.probe('udp', '10.99.0.2'), `from ${HOST}`);
		const frames = ['address', 'both'].map((kind) => sent(kind, foreign, '10.99.0.2'));
		assert.deepEqual(await arrived(frames), []);
	});

	await t.test('frames to a neighbour, past the host', async () => {
		const listen = `import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', ${PORT}))
print('listening', flush=True)
print(s.recv(100).decode(), flush=True)`;
		await victim.leave(`python3 -u -c "${listen}" >/tmp/heard`);
		await until(async () => /listening/.test(await victim.output('cat /tmp/heard')), 'the listener');
		await send(['direct', 'broadcast'].map((kind) => sent(kind, other, other)));
		await victim.probe('send', '127.0.0.1', PORT); // after them
		await until(async () => (await victim.output('cat /tmp/heard')).includes('\n'), 'a message');
		assert.equal(await victim.output('cat /tmp/heard'), 'listening\nsend');
	});

	await t.test('the address of a neighbour, claimed by ARP', async () => {
		assert.equal(await victim.probe('udp', OUTSIDE), `from ${HOST}`); // the host knows it now
		await arrived(['arp', 'arp-both', 'arp-gateway'].map((kind) => sent(kind, other, OUTSIDE)));
		const known = JSON.parse(await world.host.run('ip', '-j', 'neigh', 'show', 'dev', 'sbx0'));
		const hex = (n) => Number(n).toString(16).padStart(2, '0');
		const [, , block, index] = other.split('.');
		assert.equal(known.find(({ dst }) => dst === other).lladdr,
			`02:73:62:78:${hex(block)}:${hex(index)}`);
		assert.equal(await victim.probe('udp', OUTSIDE), `from ${HOST}`);
	});
});
