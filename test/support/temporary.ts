/** Loaded before all tests (bunfig.toml): whatever they leave in the folder for temporary files goes when they end. */

import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "flagkeep-tests-"));
process.env.TMPDIR = folder;
afterAll(() => rmSync(folder, { recursive: true, force: true }));
