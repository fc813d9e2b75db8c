/** Loaded before all tests (bunfig.toml): they have the client of PostgreSQL as the executable has it. */

import { patchedClient } from "../../src/cluster/patched-client.ts";

const client = patchedClient();
Bun.plugin(client.plugin);

/** @throws the client was read without being repaired. */
export const assertPatched = client.assertPatched;
