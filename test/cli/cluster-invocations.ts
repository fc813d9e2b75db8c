/** Invocations of cluster commands against a data directory without a cluster. */

import type { Invocation } from "./invocation.ts";

export const clusterInvocations: Readonly<Record<string, Invocation>> = {
  "migrate-to-cluster": {
    // Without the addresses of a cluster.
    args: () => [],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: ["--postgres-url", "postgres://h/d"], code: 2, says: "--events-url" },
      { args: ["--postgres-url", "mysql://h/d"], code: 2, says: "postgres://user@host" },
    ],
  },
  "migrate-from-cluster": {
    args: () => [],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: ["--postgres-url", "postgres://h/d"], code: 2, says: "--events-url" },
      { args: ["--postgres-url", "postgres://u:p@h:0/d"], code: 2, says: "postgres://user@host" },
    ],
  },
  "cluster convert-persons": {
    args: () => ["--to", "rows"],
    code: () => 1,
    wrong: [
      { args: [], code: 2, says: "--to" },
      { args: ["--to", "files"], code: 2, says: "rows, replica" },
      { args: ["--to", "rows", "--postgres-url", "mysql://h/d"], code: 2, says: "postgres://user@host" },
    ],
  },
  ...Object.fromEntries(
    ["status", "resume", "pause-loading"].map((name) => [
      `cluster ${name}`,
      {
        args: () => (name === "pause-loading" ? ["--for", "10m"] : []),
        code: () => 1,
        wrong: [
          {
            args: ["--postgres-url", "mysql://h/d", "--for", "10m"].slice(
              0,
              name === "pause-loading" ? 4 : 2,
            ),
            code: 2,
            says: "postgres://user@host",
          },
          ...(name === "pause-loading"
            ? [{ args: ["--for", "25h"], code: 2 as const, says: "from 1s to 24h" }]
            : []),
        ],
      } satisfies Invocation,
    ]),
  ),
};
