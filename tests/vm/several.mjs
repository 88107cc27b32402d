// SPDX-License-Identifier: MIT
// The node tests named as arguments, one after the other in one process: under an emulated processor
// reading the client libraries takes longer than many a test.
import { resolve } from 'node:path';

for (const file of process.argv.slice(2)) await import(resolve(file));
