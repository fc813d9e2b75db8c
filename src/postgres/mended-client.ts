/**
 * The client of PostgreSQL with three faults mended, of the version that is pinned: used by `build.ts`, and by tests.
 *
 * - What a transaction still says when its connection is gone goes to whoever has that connection next, or ends the process.
 * - A connection that is lost while it has something to write never writes again.
 */

import type { BunPlugin } from "bun";

/** In which file what becomes what. */
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
  ],
};

/** A plugin that mends the client while it is read, and a check that it did. */
export function mendedClient(): { plugin: BunPlugin; assertMended: () => void } {
  const mended = new Set<string>();
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
        mended.add(name);
        return { contents, loader: "js" };
      });
    },
  };
  const assertMended = () => {
    if (mended.size !== Object.keys(mends).length) throw new Error("The client of PostgreSQL is not mended.");
  };
  return { plugin, assertMended };
}
