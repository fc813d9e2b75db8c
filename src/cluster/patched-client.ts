/**
 * The pinned version of the PostgreSQL client with three bugs patched, for `build.ts` and tests:
 * - Queries of a transaction whose connection is lost reach the next user of that connection, or crash the process.
 * - A connection that is lost with unwritten data never writes again.
 * - A new connection is used without a check of the host's role if the query it was opened for has failed, and it
 *   takes the lost connection's error for its own.
 */

import type { BunPlugin } from "bun";

/** By file name. */
const mends: Record<string, [from: string, to: string][]> = {
  "index.js": [
    ["let savepoints = 0\n", "let savepoints = 0\n      , lost = null\n"],
    [
      "new Promise((_, reject) => connection.onclose = reject)\n      ])",
      "new Promise((_, reject) => connection.onclose = (error) => reject(lost = error))\n      ])",
    ],
    [
      "q.catch(e => uncaughtError || (uncaughtError = e))\n",
      "q.catch(e => uncaughtError || (uncaughtError = e))\n        if (lost) return q.reject(lost)\n",
    ],
  ],
  "connection.js": [
    [
      "clearImmediate(nextWriteTimer)\n    socket.removeListener('data', data)",
      "clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = null\n    socket.removeListener('data', data)",
    ],
    ["    , initial = null\n", "    , initial = null\n    , unasked = true\n"],
    [
      "      statements = {}\n      needsTypes",
      "      unasked = true\n      query = results = errorResponse = null\n      result = new Result()\n      statements = {}\n      needsTypes",
    ],
    [
      "    if (initial) {\n      if (target_session_attrs) {",
      "    if (initial || unasked) {\n      if (target_session_attrs) {",
    ],
    [
      "          return terminate()\n      }\n\n      if (needsTypes)",
      "          return terminate()\n      }\n      unasked = false\n\n      if (initial && needsTypes)",
    ],
    [
      "      initial && !initial.reserve && execute(initial)\n      options.shared.retries = retries = 0\n      initial = null\n      return\n",
      "      options.shared.retries = retries = 0\n      if (initial && !initial.reserve) {\n        execute(initial)\n        initial = null\n        return\n      }\n      initial = null\n",
    ],
  ],
};

/** A plugin that patches the client's sources as they are loaded, and a check that all were patched. */
export function patchedClient(): { plugin: BunPlugin; assertPatched: () => void } {
  const repaired = new Set<string>();
  const plugin: BunPlugin = {
    name: "mended-postgres-client",
    setup(build) {
      build.onLoad({ filter: /node_modules\/postgres\/src\/(index|connection)\.js$/ }, async ({ path }) => {
        const name = path.slice(path.lastIndexOf("/") + 1);
        let contents = await Bun.file(path).text();
        for (const [from, to] of mends[name]!) {
          if (contents.split(from).length !== 2) throw new Error(`${path} is another version: ${from}`);
          contents = contents.replace(from, () => to);
        }
        repaired.add(name);
        return { contents, loader: "js" };
      });
    },
  };
  const assertRepaired = () => {
    if (repaired.size !== Object.keys(mends).length) throw new Error("The PostgreSQL client is not patched.");
  };
  return { plugin, assertPatched: assertRepaired };
}
