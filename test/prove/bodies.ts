/**
 * Sends bodies that are wrong in every way to every route of the executable that takes one: `bun test/prove/bodies.ts --count 50000
 * --seed 1`. Each is a body that the documentation shows, with something changed, put in, taken out, cut or packed. No answer may
 * be a 5xx but the 503 that says what to wait for; nothing may end, and afterwards everything is as it was.
 */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as zlib from "node:zlib";
import { randomFrom } from "../support/seeded-random.ts";
import { ServerProcess } from "../support/server.ts";

const { values } = parseArgs({
  options: { count: { type: "string", default: "50000" }, seed: { type: "string", default: "1" } },
});
const count = Number(values.count);
const random = randomFrom(Number(values.seed));
const below = (limit: number) => Math.floor(random() * limit);
const oneOf = <Value>(list: readonly Value[]): Value => list[below(list.length)]!;

const atOnce = 16;
/** Memory of the server: a leak per request would be visible. */
const growthBytesMax = 256 * 1024 * 1024;

/** Each starts a process of its own, or takes away the keys or the project that the others need. */
const leftOut =
  /\/imports\/|\/instance\/backups\/|\/reset_token\/|\/personal_api_keys\/|^\/api\/(organizations\/[^/]+\/)?projects\/$/;

/** Each is a question to the engine, which takes a hundred times as long as a rejection. */
const slow = /\/(query|reach|user_blast_radius|insights|dashboards|cohorts)\//;
const slowShare = 0.02;

interface Target {
  method: string;
  path: string;
  example: unknown;
}

interface Operation {
  requestBody?: {
    content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }>;
  };
}

async function documentedTargets(): Promise<Target[]> {
  const answer = await server.api("/api/schema/?format=json");
  const { paths } = (await answer.json()) as { paths: Record<string, Record<string, Operation>> };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      if (requestBody === undefined || leftOut.test(path)) return [];
      const [content] = Object.values(requestBody.content);
      const example = content?.example ?? Object.values(content?.examples ?? {})[0]?.value ?? {};
      return [{ method: method.toUpperCase(), path, example }];
    }),
  );
}

async function sendAll(): Promise<void> {
  while (sent < count) {
    sent += 1;
    if (sent === Math.ceil(count / 10)) residentAtFirst = resident();
    const { method, path, example } = oneOf(random() < slowShare ? slowTargets : quickTargets);
    const place = path.replace(/\{(\w+)\}/g, (_, name: string) => (name === "project_id" ? "1" : oneOf(ids)));
    const { body, headers } = packed(bodyFrom(example));
    const key = random() < 0.02 ? "phx_wrong" : personalKey;
    try {
      const response = await fetch(`${server.url}${place}`, {
        method,
        body: body as never,
        headers: { authorization: `Bearer ${key}`, ...headers },
        signal: AbortSignal.timeout(60_000),
      });
      const text = await response.text();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      if (response.status >= 500 && !(response.status === 503 && response.headers.has("retry-after")))
        fail(`${method} ${place} answered ${response.status} ${text.slice(0, 200)} to`, body);
    } catch (error) {
      fail(`${method} ${place} was not answered (${(error as Error).message}):`, body);
    }
  }
}

function fail(what: string, body?: Uint8Array): void {
  wrong += 1;
  console.log(
    `FAILED: ${what}`,
    body === undefined ? "" : Buffer.from(body).toString("latin1").slice(0, 500),
  );
}

/** The server continues: an event arrives, and the flags and their answer are there. */
async function requireSound(): Promise<void> {
  if (server.process.exitCode !== null) return fail(`the server ended with ${server.process.exitCode}`);
  const distinct_id = crypto.randomUUID();
  const imported = await server.capture({ event: "afterwards", distinct_id });
  const [row] = await server.query(
    `SELECT count(*)::INTEGER AS n FROM events WHERE distinct_id = '${distinct_id}'`,
  );
  for (let tries = 0; row?.n !== 1 && tries < 100; tries++) {
    await Bun.sleep(100);
    const rows = await server.query(
      `SELECT count(*)::INTEGER AS n FROM events WHERE distinct_id = '${distinct_id}'`,
    );
    if (rows[0]!.n === 1) break;
    if (tries === 99) fail("an event did not arrive");
  }
  const flags = await server.post("/flags/?v=2", { api_key: server.token, distinct_id });
  if (imported.status !== 200 || flags.status !== 200)
    fail(`it answers ${imported.status} and ${flags.status}`);
}

const ids = ["1", "2", "@current", "@me", "0", "-1", "1e9", "x", "%00", "..%2f", crypto.randomUUID()];

/** Texts of values that have been trouble somewhere. */
const nasty = [
  "1e400",
  "-1e400",
  "-0",
  "1e308",
  "9007199254740993",
  "12345678901234567890.5",
  "0.1e-400",
  "01",
  "NaN",
  String.raw`"\u0000"`,
  String.raw`"\ud800"`,
  String.raw`"\udfff x"`,
  '"\u0000"',
  '"\u2028"',
  '"K"',
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"toString":1}',
  '{"a":1,"a":{"b":1,"b":2}}',
  "[".repeat(600) + "]".repeat(600),
  '{"a":'.repeat(10_000),
  "null",
  '""',
  "[]",
  "true",
  "{}",
  '"2026-11-21T00:00:00Z"',
  '"0"',
  "0",
  "-1",
  "[null]",
  '[{"key":null}]',
  `"${"x".repeat(5_000)}"`,
  `{"${"k".repeat(3_000)}":1}`,
  `"${"é".repeat(401)}"`,
  '"%00"',
  '"$1"',
  '"\' OR 1=1 --"',
  '"(a+)+$"',
];
const names = [
  "__proto__",
  "id",
  "key",
  "filters",
  "properties",
  "",
  "constructor",
  "deleted",
  "limit",
  "\u0000",
];

/** The text of an example with something about it changed, twice at the most. */
function bodyFrom(example: unknown): string {
  if (random() < 0.02) return oneOf(nasty);
  let text = JSON.stringify(example);
  const changes = 1 + below(2);
  for (let n = 0; n < changes; n++) text = changed(text);
  return text;
}

/** Numbers, texts, words and brackets without anything in them: what a value may be replaced by. */
const scalar = /"(?:[^"\\]|\\.)*"(?!\s*:)|-?\d+(?:\.\d+)?|true|false|null|\{\}|\[\]/g;

function changed(text: string): string {
  const places = [...text.matchAll(scalar)];
  const place = places.length === 0 ? undefined : oneOf(places);
  switch (below(8)) {
    case 0:
      return text.slice(0, below(text.length));
    case 1:
      return `${text.slice(0, 1)}${JSON.stringify(oneOf(names))}:${oneOf(nasty)}${text.length > 2 ? "," : ""}${text.slice(1)}`;
    case 2: {
      const at = below(text.length + 1);
      return text.slice(0, at) + String.fromCharCode(below(256)) + text.slice(at + 1);
    }
    case 3:
      // A member less.
      return text.replace(/,?"[^"]*":(?:"[^"]*"|[\w.-]+)/, "");
    default:
      return place === undefined
        ? oneOf(nasty)
        : text.slice(0, place.index) + oneOf(nasty) + text.slice(place.index + place[0].length);
  }
}

const packings: Record<string, (bytes: Buffer) => Uint8Array> = {
  gzip: (bytes) => zlib.gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => zlib.deflateSync(bytes, { level: 1 }),
  br: (bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (bytes) => zlib.zstdCompressSync(bytes),
};
const types = [...Array<string>(20).fill("application/json"), "text/plain", "x/y"];

function packed(text: string): { body: Uint8Array; headers: Record<string, string> } {
  const withKey = random() < 0.9 ? text.replaceAll(/"ph[cx]_\w*"/g, `"${server.token}"`) : text;
  let body: Uint8Array = Buffer.from(withKey, random() < 0.05 ? "latin1" : "utf8");
  const headers: Record<string, string> = { "content-type": oneOf(types) };
  if (random() < 0.15) {
    const name = oneOf(Object.keys(packings));
    body = packings[name]!(Buffer.from(body));
    // Some lie about it.
    headers["content-encoding"] = random() < 0.8 ? name : oneOf(Object.keys(packings));
    if (random() < 0.2) body = body.subarray(0, below(body.length));
  }
  return { body, headers };
}

function resident(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1024;
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1_000_000);
}

await using server = await ServerProcess.start({ args: ["--log-level", "error"] });
const targets = await documentedTargets();
const slowTargets = targets.filter(({ path }) => slow.test(path));
const quickTargets = targets.filter(({ path }) => !slow.test(path));
const personalKey = server.initialized.personal_api_key;
let sent = 0;
let wrong = 0;
const statuses = new Map<number, number>();
let residentAtFirst = 0;
await Promise.all(Array.from({ length: atOnce }, sendAll));
await requireSound();
console.log(
  `${sent} bodies to ${targets.length} routes, answers ${JSON.stringify(Object.fromEntries([...statuses].sort()))}, ` +
    `memory ${megabytes(residentAtFirst)} MB after a tenth, ${megabytes(resident())} MB at the end`,
);
if (resident() - residentAtFirst > growthBytesMax) fail("the server's memory grew");
process.exitCode = wrong === 0 ? 0 : 1;
