/**
 * A ClickHouse server for the tests: the real engine (npm's chdb, in this process) behind as much of ClickHouse's HTTP
 * interface as its client uses. A process of its own, so that it can be killed.
 *
 *   bun server.ts FOLDER PORT USER PASSWORD
 *
 * Says `listening PORT` on standard output. `POST /.fault?kind=…&times=…` (no authorization) makes it fail on purpose; with
 * `&unnamed` inserts of events lose their names, too, and with `&undated` their deadlines. `GET /.held` tells whether one is
 * held, its name, and how many were done and refused.
 */

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Result {
  bytes(): Uint8Array;
}
interface Session {
  queryAsync(sql: string, options: { format: string }): Promise<Result>;
}

/** What is broken on purpose: an insert or a query is rejected, or its connection is cut before or after it was done. */
const faults = [
  "refuse-insert",
  "cut-before-insert",
  "cut-after-insert",
  "cut-query",
  "die-before-insert",
  "die-after-insert",
  "stall-before-insert",
  "stall-after-insert",
  // Of events, until the next fault is set: the insert of a user who has been given up meanwhile, or its answer.
  "hold-before-insert",
  "hold-after-insert",
];
/** How long an insert or its answer is held back. */
const stallMs = 1_000;

type Fault = (typeof faults)[number];

const [folder = "", wantedPort = "0", user = "default", password = ""] = process.argv.slice(2);
// Not named in a way that the type checker would look for: most machines do not have it.
const chdb = (await import("chdb" as string)) as { Session: new (path: string) => Session };
const session = new chdb.Session(folder);

let broken: { kind: Fault; times: number } | undefined;
/** The engine does one thing after the other. */
let last: Promise<unknown> = Promise.resolve();
let bodies = 0;
/** What is held continues when it resolves. */
let release = Promise.withResolvers<void>();
let isHolding = false;
/** The name of the insert that was held last. */
let heldName: string | null = null;
/** Inserts of events that were done. */
let inserted = 0;
/** Inserts of events are done without their names, so that nothing tells that one was done before. */
let areUnnamed = false;
/** Inserts of events that were rejected by the engine. */
let rejected = 0;
/** Inserts are done without their conditions. */
let areUndated = false;

function inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
  const done = last.then(work);
  last = done.catch(() => undefined);
  return done;
}

/** Settings of a request that are about its answer or are not known here, not about the statement. */
const ownParameters = new Set([
  "query",
  "query_id",
  "database",
  "session_id",
  "default_format",
  "wait_end_of_query",
  "role",
  "enable_http_compression",
  "cancel_http_readonly_queries_on_client_close",
  "send_progress_in_http_headers",
]);

const literal = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function getSettings(url: URL): string[] {
  return [...url.searchParams].flatMap(([name, value]) =>
    ownParameters.has(name) || !/^[a-z0-9_]+$/.test(name) ? [] : [`${name} = ${literal(value)}`],
  );
}

const insertPattern =
  /^\s*INSERT\s+INTO\s+(\S+)\s*\(([^)]*)\)(?:\s*SELECT .* FROM input\('([^']*)'\) WHERE (.*?))?\s*FORMAT\s+(\w+)\s*$/i;

async function run(statement: string, body: Buffer | undefined, url: URL): Promise<Uint8Array> {
  const database = url.searchParams.get("database");
  if (database !== null) await session.queryAsync(`USE ${"`"}${database}${"`"}`, { format: "Null" });
  const settings = getSettings(url);
  const insert = body === undefined ? null : insertPattern.exec(statement);
  if (insert === null) {
    // Only what answers rows takes settings at its end.
    const takesSettings = /^\s*(SELECT|WITH|INSERT)\b/i.test(statement);
    const text =
      takesSettings && settings.length > 0 ? `${statement}\nSETTINGS ${settings.join(", ")}` : statement;
    return (
      await session.queryAsync(text, { format: url.searchParams.get("default_format") ?? "TabSeparated" })
    ).bytes();
  }
  const [, table = "", names = "", given, condition, format = ""] = insert;
  const types = new Map(
    Buffer.from(
      (await session.queryAsync(`DESCRIBE TABLE ${table}`, { format: "JSONCompactEachRow" })).bytes(),
    )
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, string])
      .map(([name, type]) => [name, type]),
  );
  const ofTable = names.split(",").map((name) => `${name.trim()} ${types.get(name.trim())}`);
  const structure = given ?? ofTable.join(", ");
  // The engine in this process feeds no `input()`: the file stands in for it.
  const where = condition === undefined || areUndated ? "" : ` WHERE ${condition}`;
  bodies += 1;
  const file = join(folder, `.body-${process.pid}-${bodies}`);
  writeFileSync(file, body!);
  try {
    // The engine takes no data of this format with a statement; one thread, as a server reads one request.
    const all = [...settings, "max_threads = 1", "max_insert_threads = 1"].join(", ");
    const text =
      `INSERT INTO ${table} (${names}) SETTINGS ${all} ` +
      `SELECT * FROM file(${literal(file)}, ${literal(format)}, ${literal(structure)})${where}`;
    return (await session.queryAsync(text, { format: "Null" })).bytes();
  } finally {
    rmSync(file, { force: true });
  }
}

function fault(kinds: readonly Fault[]): Fault | undefined {
  if (broken === undefined || broken.times === 0 || !kinds.includes(broken.kind)) return undefined;
  broken.times -= 1;
  return broken.kind;
}

/** How ClickHouse itself says it; the codes are its own. */
function failure(error: unknown): Response {
  const message = error instanceof Error ? error.message : String(error);
  const code = Number(/Code: (\d+)/.exec(message)?.[1] ?? 1002);
  return new Response(message.slice(message.indexOf("Code:")), {
    status: code === 516 || code === 164 ? 403 : code === 60 || code === 81 ? 404 : code === 62 ? 400 : 500,
    headers: { "X-ClickHouse-Exception-Code": String(code) },
  });
}

function isAllowed(request: Request, url: URL): boolean {
  const basic = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  const [name = "", word = ""] =
    basic === undefined
      ? [
          request.headers.get("x-clickhouse-user") ?? url.searchParams.get("user") ?? "default",
          request.headers.get("x-clickhouse-key") ?? url.searchParams.get("password") ?? "",
        ]
      : Buffer.from(basic, "base64").toString().split(/:(.*)/s);
  return name === user && word === password;
}

async function hold(url: URL): Promise<void> {
  isHolding = true;
  heldName = url.searchParams.get("insert_deduplication_token");
  await release.promise;
}

/** An answer that never comes whole: the connection is cut. */
function cut(): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from("["));
      setTimeout(() => controller.error(new Error("cut on purpose")), 5);
    },
  });
  return new Response(body, { headers: { "Content-Length": "1000000" } });
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(wantedPort),
  maxRequestBodySize: 1024 ** 3,
  idleTimeout: 255,
  async fetch(request) {
    const url = new URL(request.url);
    if (url.pathname === "/ping") return new Response("Ok.\n");
    if (url.pathname === "/.fault") {
      const kind = url.searchParams.get("kind") ?? "";
      if (kind !== "" && !faults.includes(kind)) return new Response("unknown fault", { status: 400 });
      release.resolve();
      release = Promise.withResolvers();
      isHolding = false;
      areUnnamed = url.searchParams.has("unnamed");
      areUndated = url.searchParams.has("undated");
      broken = { kind, times: Number(url.searchParams.get("times") ?? "1") };
      return new Response("Ok.\n");
    }
    if (url.pathname === "/.held") return Response.json({ isHolding, heldName, inserted, refused: rejected });
    if (!isAllowed(request, url)) {
      return failure(
        new Error(`Code: 516. DB::Exception: ${user}: Authentication failed. (AUTHENTICATION_FAILED)`),
      );
    }
    const encoded = Buffer.from(await request.arrayBuffer());
    const body =
      request.headers.get("content-encoding") === "gzip" ? Buffer.from(Bun.gunzipSync(encoded)) : encoded;
    const query = url.searchParams.get("query");
    const statement = query ?? body.toString();
    const isInsert = /^\s*INSERT/i.test(statement);
    if (isInsert && fault(["stall-before-insert"])) await Bun.sleep(stallMs);
    const isOfEvents = insertPattern.exec(statement)?.[1] === "events";
    if (isOfEvents && areUnnamed) {
      url.searchParams.delete("insert_deduplication_token");
      url.searchParams.set("insert_deduplicate", "0");
    }
    if (isOfEvents && fault(["hold-before-insert"])) await hold(url);
    const before = fault(
      isInsert ? ["refuse-insert", "cut-before-insert", "die-before-insert"] : ["cut-query"],
    );
    if (before === "refuse-insert") {
      return failure(new Error("Code: 243. DB::Exception: Cannot reserve space. (NOT_ENOUGH_SPACE)"));
    }
    if (before === "die-before-insert") process.kill(process.pid, "SIGKILL");
    if (before !== undefined) return cut();
    try {
      const answer = await inTurn(() => run(statement, query === null ? undefined : body, url));
      if (isOfEvents) inserted += 1;
      if (isInsert && fault(["stall-after-insert"])) await Bun.sleep(stallMs);
      if (isOfEvents && fault(["hold-after-insert"])) await hold(url);
      const after = isInsert ? fault(["cut-after-insert", "die-after-insert"]) : undefined;
      if (after === "die-after-insert") process.kill(process.pid, "SIGKILL");
      if (after !== undefined) return cut();
      return new Response(answer as Uint8Array<ArrayBuffer>, {
        headers: { "X-ClickHouse-Summary": "{}", "X-ClickHouse-Timezone": "UTC" },
      });
    } catch (error) {
      if (isOfEvents) rejected += 1;
      return failure(error);
    }
  },
});

process.on("SIGTERM", () => process.exit(0));
// It ends with the test that started it.
void Bun.stdin.text().then(() => process.exit(0));
console.log(`listening ${server.port}`);
