/** The slowest queries of the last hour, for `flagkeep top`. */

import type { RpcHandlers } from "../rpc/server.ts";
import type { Handlers } from "./queries.ts";
import type { Queries, SlowQuery } from "./query-types.ts";

const retained = 10;
const retainedMs = 3_600_000;
/** Statements are truncated to this length. */
const sqlLengthMax = 200;

export class SlowQueries {
  private list: SlowQuery[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** Wraps handlers to record their duration. */
  timed(handlers: Handlers): RpcHandlers {
    const wrapped = Object.entries(handlers).map(([name, handle]) => [
      name,
      async (request: never) => {
        const start = performance.now();
        try {
          return await (handle as (request: never) => Promise<unknown>)(request);
        } finally {
          this.record(name, request, performance.now() - start);
        }
      },
    ]);
    return { ...(Object.fromEntries(wrapped) as RpcHandlers), slowQueries: async () => this.slowest() };
  }

  /** Slowest first. */
  slowest(): SlowQuery[] {
    const since = new Date(this.now() - retainedMs).toISOString();
    this.list = this.list.filter(({ at }) => at >= since);
    return this.list.toSorted((a, b) => b.ms - a.ms);
  }

  private record(query: string, request: Partial<Queries["query"]["request"]>, ms: number): void {
    const { projectId, sql } = request ?? {};
    this.list = [
      ...this.slowest(),
      {
        query,
        project_id: projectId ?? null,
        ms: Math.round(ms),
        at: new Date(this.now()).toISOString(),
        sql: sql === undefined ? null : sql.replace(/\s+/g, " ").slice(0, sqlLengthMax),
      },
    ]
      .sort((a, b) => b.ms - a.ms)
      .slice(0, retained);
  }
}
