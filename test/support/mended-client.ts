/** Loaded before all tests (bunfig.toml): they have the client of PostgreSQL as the executable has it. */

import { mendedClient } from "../../src/postgres/mended-client.ts";

const client = mendedClient();
Bun.plugin(client.plugin);

/** @throws the client was read without being mended. */
export const assertMended = client.assertMended;
