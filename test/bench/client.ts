/**
 * A client in a process of its own, so that making requests is not part of what is measured.
 *
 * Its plan comes as one argument of JSON. It makes all requests, prints `ready`, and sends them when it reads a line; then it
 * prints the result. No body is sent twice: when all are used up, it ends early.
 */

import { gzipSync } from "node:zlib";
import { type LoadResult, postBytes, runLoad } from "./load.ts";
import { peopleLike } from "./people-like.ts";

export interface ClientPlan {
  url: string;
  kind: "single" | "batch" | "flags" | "ofrep" | "request";
  /** Project key. */
  token: string;
  connections: number;
  seconds: number;
  /** How many requests are created ready. */
  requests: number;
  /** Requests a second; as fast as answers come when left out. */
  rate?: number;
  /** So that two clients do not make the same events. */
  seed: number;
  /** `batch`: events in a body. `flags` and `ofrep`: how many different people ask. */
  size?: number;
  path?: string;
  headers?: Record<string, string>;
  /** `request`: the body; left out it is a GET. */
  body?: unknown;
  /** Statuses that count as an answer besides 200. */
  alsoGood?: number[];
}

export interface ClientResult extends LoadResult {
  ranOut: boolean;
}

const gzipLevel = 6;

/** Starts a client; `run` sends its requests. */
export async function startClient(plan: ClientPlan): Promise<{ run(): Promise<ClientResult> }> {
  const child = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(plan)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = getLines(child.stdout);
  if ((await lines.next()).value !== "ready") throw new Error("The client did not start.");
  return {
    async run() {
      child.stdin.write("go\n");
      child.stdin.end();
      const { value } = await lines.next();
      await child.exited;
      if (typeof value !== "string") throw new Error("The client ended without a result.");
      return JSON.parse(value) as ClientResult;
    },
  };
}

async function* getLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never)) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}

function getRequests({
  url,
  kind,
  token,
  requests,
  seed,
  size = 1,
  path,
  headers,
  body,
}: ClientPlan): Uint8Array[] {
  const next = peopleLike(seed);
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));
  switch (kind) {
    case "single":
      return Array.from({ length: requests }, () =>
        postBytes(url, "/capture/", json({ api_key: token, ...next() })),
      );
    case "batch":
      return Array.from({ length: requests }, () => {
        const batch = Array.from({ length: size }, next);
        const text = gzipSync(json({ api_key: token, batch, sent_at: new Date().toISOString() }), {
          level: gzipLevel,
        });
        return postBytes(url, "/batch/", text, { "Content-Encoding": "gzip" });
      });
    case "flags":
      return Array.from({ length: requests }, (_, number) => {
        const id = `user-${seed}-${(number * 7_919) % size}@shop.example`;
        const asked = { token, distinct_id: id, groups: {}, person_properties: { distinct_id: id } };
        return postBytes(url, path ?? "/flags/?v=2", json(asked), headers);
      });
    case "ofrep":
      return Array.from({ length: requests }, (_, number) => {
        const context = { targetingKey: `user-${(number * 7_919) % size}@shop.example`, plan: "free" };
        return postBytes(url, path!, json({ context }), headers);
      });
    case "request": {
      const one =
        body === undefined ? getBytes(url, path!, headers) : postBytes(url, path!, json(body), headers);
      return Array.from({ length: requests }, () => one);
    }
  }
}

function getBytes(url: string, path: string, headers: Record<string, string> = {}): Uint8Array {
  const lines = Object.entries({ Host: new URL(url).host, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
}

if (import.meta.main) {
  const plan = JSON.parse(process.argv[2]!) as ClientPlan;
  const ready = getRequests(plan);
  console.log("ready");
  for await (const _ of console) break;
  let used = 0;
  const result = await runLoad({
    url: plan.url,
    connections: plan.connections,
    seconds: plan.seconds,
    requestsPerSecond: plan.rate,
    alsoGood: plan.alsoGood,
    next: () => ready[used++],
  });
  console.log(JSON.stringify({ ...result, ranOut: used > ready.length } satisfies ClientResult));
  process.exit(0);
}
