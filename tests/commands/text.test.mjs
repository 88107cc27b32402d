// SPDX-License-Identifier: MIT
// The command text reaches the shell byte for byte, at any length up to the limit (B41).
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { Lab } from './lab.mjs';

const LIMIT = 8 << 20;
const ARGUMENT_MAX = (128 << 10) - 1; // longer ones reach the shell another way
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

const texts = {
	'exclamation marks': `echo 'a!b' "x!" !`,
	'braces and pipes': '{ echo q; } | cat',
	'a here-document with a hyphen in its mark': `cat <<'MY-MARK'\n$$ \`x\` \\n\nMY-MARK`,
	'a here-document with tabs': 'cat <<-E\n\t\tindented\n\tE\n',
	'backquotes and backslashes': 'echo `echo a` "\\\\n" \\\\ \'\\n\'',
	'CRLF line ends': "printf 'a\r\nb\r\n' | od -An -c",
	'a trailing backslash': 'echo a\\',
	'a comment as the last line': 'echo a\n# the end',
	'UTF-8': 'echo "é 世 \u{1f600}"',
	'control characters': "printf %s '\u0001\u0002\u0007\u001b' | od -An -tx1",
	'leading and trailing blanks': '  \n\n\techo   a   b  \n\n',
	'a leading hyphen': '-x || echo ok',
	'dollar signs': `x=1; echo $x "$x" '$x' \${x:+y} $((x + 1)) $'\\t|'`,
};

test('B41: texts mean what they mean in a file', async (t) => {
	const lab = await Lab.make(t);
	for (const [what, text] of Object.entries(texts))
		await t.test(what, async () => {
			const file = join(lab.state.dir, 'script');
			await writeFile(file, text);
			const plain = await promisify(execFile)('bash',
				['--noprofile', '--norc', '-c', '. "$1" 2>/dev/null', '-', file]).catch((e) => e);
			const done = await lab.exec(`exec 2>/dev/null\n${text}`);
			assert.equal(done.output.replaceAll('\r\n', '\n'), plain.stdout.replaceAll('\r\n', '\n'));
		});
	await t.test('$$ is the shell', async () => {
		assert.equal((await lab.exec('test $$ = $BASHPID && echo same')).output, 'same\n');
	});
});

test('B41: texts of any length', async (t) => {
	const lab = await Lab.make(t);
	const frame = (body) => `cat >big <<'END'\n${body}\nEND\nsha256sum <big | cut -c1-64; wc -c <big; rm big`;
	const fill = (n) => {
		const row = 'é!$`\\"\'x '.repeat(12);
		const rows = `${row}\n`.repeat(Math.ceil(n / Buffer.byteLength(`${row}\n`)));
		let body = Buffer.from(rows).subarray(0, n).toString().replace(/\ufffd+$/, '');
		while (Buffer.byteLength(body) < n) body += '.';
		return body;
	};
	const overhead = Buffer.byteLength(frame(''));
	for (const size of [131_000, ARGUMENT_MAX, ARGUMENT_MAX + 1, 131_073, 300_000, 5_000_000, LIMIT])
		await t.test(`${size} bytes`, async () => {
			const body = fill(size - overhead);
			const text = frame(body);
			assert.equal(Buffer.byteLength(text), size);
			const done = await lab.exec(text);
			assert.equal(done.output,
				`${sha256(`${body}\n`)}\n${Buffer.byteLength(body) + 1}\n`);
		});
	await t.test('one byte more is refused with the limit named', async () => {
		const error = await lab.refused('invalid_request', 'exec_command',
			{ cmd: frame(fill(LIMIT - overhead + 1)) });
		assert.match(error.message, /8388609 bytes, more than the limit of 8388608/);
	});
	await t.test('a long command reads its stdin as a short one', async () => {
		const command = await lab.start(`${' '.repeat(ARGUMENT_MAX)}\nread x; echo "got $x"`);
		assert.equal((await lab.finish(command, 'it\n')).output, 'got it\n');
	});
});

test('B41: texts that are none are refused', async (t) => {
	const lab = await Lab.make(t);
	for (const cmd of ['', ' ', '\n\t\r '])
		await t.test(JSON.stringify(cmd), async () => {
			const error = await lab.refused('invalid_request', 'exec_command', { cmd });
			assert.match(error.message, /cmd is empty/);
		});
	await t.test('U+0000', async () => {
		const error = await lab.refused('invalid_request', 'exec_command', { cmd: 'echo a\u0000b' });
		assert.match(error.message, /"cmd" holds a NUL/);
	});
	await t.test('and leave no command behind', async () => {
		assert.deepEqual((await lab.admin('command', 'list', lab.id)).commands, []);
	});
});
