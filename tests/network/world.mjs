// SPDX-License-Identifier: MIT
// A small world of network namespaces: a host, in which everything of sbx runs, and a machine
// outside that has addresses in many networks. The network of the machine that runs the tests is
// not touched.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { descendants, isAlive } from '../commands/lab.mjs';
import { clientInfo, here, run, serverPath, until } from '../support.mjs';

const exec = promisify(execFile);
const adminPath = join(dirname(serverPath), 'sbx-admin');

export const PORT = 8000; // of the services outside and on the host
export const HOST = '203.0.113.1';
export const OUTSIDE = '203.0.113.2';
export const NAME_SERVER = '10.99.0.53';
/** What a program sees when it may not go there. */
export const SHUT = { tcp: 'ECONNREFUSED', udp: 'EHOSTUNREACH' };
/** One machine in each network that is closed; the outside machine has all of these addresses. */
export const CLOSED = ['10.99.0.2', NAME_SERVER, '172.20.0.2', '192.168.77.2', '169.254.169.254',
	'100.64.5.5', '198.18.0.5', '192.0.0.8'];

/** Why tests between network namespaces are skipped here, or false. */
export function lacking() {
	if (process.getuid() !== 0) return 'needs root: it makes network namespaces';
	const programs = ['unshare', 'nsenter', 'ip', 'nft', 'python3', 'mount', 'sysctl'].filter(
		(name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0,
	);
	if (programs.length) return `missing on this host: ${programs.join(', ')}`;
	const kernel = spawnSync('unshare', ['-n', 'sh', '-ec',
		'ip link add name try0 type bridge; ip link add name try1 type veth peer name try2; ' +
		'nft add table netdev try']);
	if (kernel.status === 0) return false;
	return `the kernel lacks bridge, veth or nf_tables: ${kernel.stderr}`;
}

/** What runs in sessions: prints what came back, or the error's name. */
const PROBE = `
import errno, socket, sys
kind, address, port, *rest = sys.argv[1:]
family = socket.AF_INET6 if ':' in address else socket.AF_INET
s = socket.socket(family, socket.SOCK_STREAM if kind == 'tcp' else socket.SOCK_DGRAM)
s.settimeout(20)
try:
    for option in rest:
        if option.startswith('from='):
            s.setsockopt(socket.IPPROTO_IP, 15, 1)  # IP_FREEBIND
            s.bind((option[5:], 0))
        elif option == 'lsrr':
            s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS,
                         bytes([131, 7, 4]) + socket.inet_aton(address) + b'\\0')
        elif option == 'broadcast':
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.connect((address, int(port)))
    if kind != 'tcp':
        s.send((kind + ' ' + ' '.join(rest)).encode())
    if kind == 'send':
        print('sent')
    else:
        print(s.recv(100).decode().strip() or 'closed')
except TimeoutError:
    print('silence')
except OSError as e:
    print(errno.errorcode[e.errno])
`;

/** A process that holds namespaces: "unshare" becomes "sleep" in place. */
async function hold(...flags) {
	const child = spawn('unshare', [...flags, 'sleep', 'infinity'], { stdio: 'ignore' });
	const comm = () => readFile(`/proc/${child.pid}/comm`, 'utf8');
	await until(async () => (await comm()) === 'sleep\n', 'namespaces');
	return child;
}

/** A machine: its namespaces, and what its services have heard. */
class Machine {
	constructor(holder) {
		Object.assign(this, { holder, heard: [], children: [] });
		this.enter = ['nsenter', '-t', String(holder.pid), '-n', '-m', '--'];
	}

	async run(...argv) {
		const [program, ...args] = [...this.enter, ...argv];
		return (await exec(program, args, { env: this.env, maxBuffer: 64 << 20 })).stdout;
	}

	async ip(...lines) {
		for (const line of lines) await this.run('ip', ...line.split(' '));
	}

	/** Starts the services on a port. */
	async serve(port = PORT) {
		const [program, ...args] = [...this.enter, process.execPath, join(here, 'network/peer.mjs')];
		const interfaces = JSON.parse(await this.run('ip', '-j', '-4', 'addr'));
		const addresses = interfaces.flatMap((own) => own.addr_info.map(({ local }) => local));
		const child = spawn(program, [...args, String(port), ...addresses],
			{ stdio: ['ignore', 'pipe', 'inherit'] });
		this.children.push(child);
		await new Promise((ready, failed) => {
			child.once('exit', (code) => failed(new Error(`the services ended: ${code}`)));
			createInterface(child.stdout).on('line', (line) => {
				const event = JSON.parse(line);
				if (event.ready) ready();
				else this.heard.push(event);
			});
		});
		child.removeAllListeners('exit');
	}

	/** "tcp" or "udp" to an address, as any program of the machine would. */
	async probe(kind, address, port = PORT) {
		return (await this.run('python3', '-c', PROBE, kind, address, String(port))).trim();
	}

	end() {
		for (const child of this.children) child.kill('SIGKILL');
		this.holder.kill('SIGKILL');
	}
}

/** A managed session, driven through MCP. */
class Session {
	constructor(world, sandbox_id, id) {
		Object.assign(this, { world, sandbox_id, id });
	}

	async output(cmd) {
		const { output } = await run(this.world.client, this.sandbox_id, cmd, {
			workspace_session_id: this.id,
		});
		return output.trimEnd();
	}

	/** Starts a command and leaves it running. */
	async leave(cmd) {
		await this.world.client.callTool({ name: 'exec_command', arguments: {
			sandbox_id: this.sandbox_id, cmd, workspace_session_id: this.id, yield_time_ms: 0,
		} });
	}

	probe(kind, address, port = PORT, ...rest) {
		return this.output(`python3 probe.py ${kind} ${address} ${port} ${rest.join(' ')}`);
	}

	async address() {
		return (await this.output('hostname -I')).trim();
	}

	/** A process that stays in the session, as the host sees it. */
	async #hold() {
		const mark = `${process.pid}${Math.floor(Math.random() * 1e9)}`;
		await this.leave(`exec sleep ${mark}`);
		return until(async () => {
			const found = await exec('pgrep', ['-fx', `sleep ${mark}`]).catch(() => null);
			return found?.stdout.trim();
		}, 'the process in the session');
	}

	/** The session's network namespace, seen from the host: as root's, which a command is not. */
	async asRoot(program, ...args) {
		this.pid ??= await this.#hold();
		return (await exec('nsenter', ['-t', this.pid, '-n', '--', program, ...args])).stdout;
	}
}

export class World {
	static async make(t, { forward = true, resolver = `nameserver ${NAME_SERVER}\n` } = {}) {
		const dir = await mkdtemp(join(tmpdir(), 'sbx-net-'));
		const world = new World(dir);
		t.after(() => world.end());
		await chmod(dir, 0o755);
		world.host = new Machine(await hold('-n', '-m'));
		world.outside = new Machine(await hold('-n', '-m'));
		world.host.env = { ...process.env, SBX_STATE_DIR: join(dir, 'state') };
		await world.#connect(forward);
		await writeFile(join(dir, 'resolv.conf'), resolver);
		await world.host.run('mount', '--bind', join(dir, 'resolv.conf'), '/etc/resolv.conf');
		await world.outside.serve();
		return world;
	}

	constructor(dir) {
		Object.assign(this, { dir, ids: [] });
	}

	async #connect(forward) {
		const { host, outside } = this;
		const { pid } = outside.holder;
		await host.ip('link set lo up', `link add up0 type veth peer name up1 netns ${pid}`,
			`addr add ${HOST}/24 dev up0`, 'link set up0 up');
		await outside.ip('link set lo up', `addr add ${OUTSIDE}/24 dev up1`,
			...CLOSED.map((address) => `addr add ${address}/32 dev up1`), 'link set up1 up');
		await host.ip(`route add default via ${OUTSIDE}`);
		// every refusal is to be seen, not one a second
		await host.run('sysctl', '-qw', `net.ipv4.ip_forward=${forward ? 1 : 0}`,
			'net.ipv4.icmp_ratelimit=0');
	}

	admin(...args) {
		return this.host.run(adminPath, ...args);
	}

	async adminJson(...args) {
		return JSON.parse(await this.admin(...args, '--json'));
	}

	/** How a program that has to fail did so: its standard error. */
	async refusal(...args) {
		const failed = await this.admin(...args).then(() => null, (error) => error);
		assert.ok(failed, `${args.join(' ')}: did not fail`);
		return failed.stderr;
	}

	async sandbox(id, ...options) {
		const workspace = join(this.dir, `workspace-${id}`);
		await mkdir(workspace);
		await writeFile(join(workspace, 'probe.py'), PROBE);
		await this.admin('create', '--workspace', workspace, '--id', id, '--network', 'bridge',
			...options);
		this.ids.push(id);
		return id;
	}

	async session(id) {
		const made = await this.adminJson('session', 'create', id);
		this.client ??= await this.connect();
		return new Session(this, id, made.workspace_session_id);
	}

	async connect() {
		const [command, ...args] = [...this.host.enter, serverPath, '--set', 'runtime'];
		const client = new Client(clientInfo);
		await client.connect(new StdioClientTransport({ command, args, env: this.host.env,
			stderr: 'inherit' }));
		return client;
	}

	async destroy(id) {
		await this.admin('destroy', id, '--force');
		this.ids = this.ids.filter((other) => other !== id); // also while others are destroyed
	}

	/** What of sbx is in the host's network: interfaces and tables, by name. */
	async left() {
		const links = JSON.parse(await this.host.run('ip', '-j', 'link'));
		const tables = (await this.host.run('nft', 'list', 'tables')).split('\n');
		return [...links.map((link) => link.ifname), ...tables].filter((name) => /sbx/.test(name));
	}

	/** Kills a sandbox's sandboxd; gives when all its processes are gone. */
	async kill(id) {
		const { daemon_pid } = await this.adminJson('inspect', id);
		const family = [daemon_pid, ...descendants(daemon_pid)];
		process.kill(daemon_pid, 'SIGKILL');
		await until(() => !family.some(isAlive), 'the end of sandboxd');
	}

	async end() {
		const ended = await Promise.allSettled(this.ids.map((id) => this.destroy(id)));
		await this.client?.close();
		this.host?.end();
		this.outside?.end();
		await rm(this.dir, { recursive: true, force: true });
		assert.deepEqual(ended.filter(({ status }) => status === 'rejected'), []);
	}
}
