// SPDX-License-Identifier: MIT
// tools/list against the contract, and its schemas against the contract's examples.
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import assert from 'node:assert/strict';
import test from 'node:test';
import { clients, contract, META, RawServer, within } from './support.mjs';

const ajv = new AjvJsonSchemaValidator();
const check = (schema, value) => {
	const { valid, errorMessage } = ajv.getValidator(schema)(value);
	assert.ok(valid, errorMessage);
};
const readers = ['read_command_lines', 'file_read', 'file_blame'];

async function listTools(t, meta) {
	const server = new RawServer(t);
	if (!meta) await server.initialize();
	return (await server.request('tools/list', { _meta: meta })).result.tools;
}

for (const [era, meta] of [['legacy', undefined], ['modern', META]]) {
	test(`${era}: exactly the contract's tools and schemas, in its order`, async (t) => {
		const tools = await listTools(t, meta);
		assert.deepEqual(tools.map(({ name, inputSchema }) => ({ name, inputSchema })),
			contract.tools.map(({ name, inputSchema }) => ({ name, inputSchema })));
	});
}

test('every tool has a title, a description and annotations', async (t) => {
	for (const tool of await listTools(t)) {
		assert.ok(tool.title.length > 3);
		assert.ok(tool.description.length > 100);
		assert.equal(tool.annotations.readOnlyHint, readers.includes(tool.name), tool.name);
		for (const hint of ['destructiveHint', 'idempotentHint', 'openWorldHint'])
			assert.equal(typeof tool.annotations[hint], 'boolean');
	}
});

test('the contract\'s examples fit the schemas, and a failure does', async (t) => {
	const tools = await listTools(t);
	contract.tools.forEach(({ exampleArguments, exampleResult }, i) => {
		const { inputSchema, outputSchema } = tools[i];
		check(inputSchema, exampleArguments);
		check(outputSchema, exampleResult.structuredContent);
		const error = { kind: 'not_found', message: 'm', details: {} };
		check(outputSchema, { error });
		const validate = ajv.getValidator(outputSchema);
		assert.equal(validate({}).valid, false);
		assert.equal(validate({ error: { ...error, kind: 'nope' } }).valid, false);
		for (const key of Object.keys(exampleResult.structuredContent)) {
			const { [key]: _, ...rest } = exampleResult.structuredContent;
			assert.equal(validate(rest).valid, false, `${tools[i].name} without ${key}`);
		}
	});
});

for (const name of Object.keys(clients)) {
	test(`${name}: connects and lists the tools`, async (t) => {
		const client = await within(clients[name](process.env), 'connecting');
		t.after(() => client.close());
		assert.equal(client.getServerVersion()?.name, 'sbx');
		const { tools } = await client.listTools();
		assert.deepEqual(tools.map((tool) => tool.name), contract.tools.map((tool) => tool.name));
	});
}
