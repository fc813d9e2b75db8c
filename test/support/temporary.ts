/** Loaded before all tests (bunfig.toml): whatever they leave in the folder for temporary files goes when they end. */

import { afterAll } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = mkdtempSync(join(tmpdir(), "flagkeep-tests-"));
process.env.TMPDIR = folder;
// For tests that act as another user.
chmodSync(folder, 0o755);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
