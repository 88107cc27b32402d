// SPDX-License-Identifier: MIT
// A machine of the tests: node peer.mjs PORT ADDRESS... Answers TCP and UDP at that port with "from
// ADDRESS" (UDP from the address that was asked, if it is among those named), DNS at port 53 with
// 203.0.113.2 for every name, and prints a line of JSON for all that arrives.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [port, ...addresses] = process.argv.slice(2).map((word, i) => (i ? word : Number(word)));
const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);
const plain = (address) => address.replace(/^::ffff:/, '');

/** The answer to a DNS question: one address. */
function answer(question) {
	const end = question.indexOf(0, 12) + 5; // behind the name, its type and class
	const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 2]);
	const isA = question.readUInt16BE(end - 4) === 1;
	const head = Buffer.from(question.subarray(0, 12));
	head.writeUInt16BE(0x8180, 2);
	head.writeUInt16BE(isA ? 1 : 0, 6);
	head.writeUInt32BE(0, 8);
	return Buffer.concat([head, question.subarray(12, end), isA ? record : Buffer.alloc(0)]);
}

function listening(server) {
	return new Promise((done, failed) => server.once('error', failed).once('listening', done));
}

const tcp = createServer((socket) => {
	socket.on('error', () => {}); // a peer that has gone
	tell({ tcp: port, from: plain(socket.remoteAddress ?? '?') });
	socket.end(`from ${plain(socket.remoteAddress ?? '?')}\n`);
});

/** A UDP service at one address, from which it also answers. */
function serve(at, address, reply) {
	const socket = createSocket({ type: 'udp4', reuseAddr: true });
	socket.on('message', (message, { address: from, port: back }) => {
		tell({ udp: at, from, text: message.toString('latin1') });
		socket.send(reply(message, from), back, from);
	});
	const ready = listening(socket);
	socket.bind(at, address);
	return ready;
}

const all = [listening(tcp)];
tcp.listen(port, '::');
for (const address of [...addresses, '0.0.0.0']) {
	all.push(serve(port, address, (message, from) => `from ${from}\n`));
	all.push(serve(53, address, answer));
}
await Promise.all(all);
tell({ ready: true });
