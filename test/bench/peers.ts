/**
 * `make bench-peers`: events acknowledged by Flagkeep and by what people would build instead, with the same client and
 * the same bodies: a Bun server that unpacks, parses and stores each event durably in Redis (a stream, `appendfsync
 * always`) or in PostgreSQL (a table with a `jsonb` column, `synchronous_commit`). Takes what is installed, and says what is not.
 *
 * A peer only stores what came: no key is checked, no duplicate found, no person made.
 */

import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { RedisClient, SQL, type Subprocess } from "bun";
import { ServerProcess, until } from "../support/server.ts";
import { startClient } from "./client.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);

interface Item {
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: unknown;
}
type Store = (items: readonly Item[]) => Promise<unknown>;

interface Peer {
  name: string;
  /** Has to be in the path, or in one of the folders. */
  program: string;
  folders?: string[];
  start(program: string, folder: string): Promise<{ address: string; process: Subprocess }>;
  connect(address: string): Promise<Store>;
}

const quiet = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
/** PostgreSQL does not run as root. */
const asPostgres =
  process.getuid?.() === 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];

const peers: Peer[] = [
  {
    name: "Redis stream",
    program: "redis-server",
    async start(program, folder) {
      const socket = join(folder, "redis.sock");
      const flags = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--appendonly", "yes"];
      const process = Bun.spawn([program, ...flags, "--appendfsync", "always", "--save", ""], quiet);
      return { address: `redis+unix://${socket}`, process };
    },
    async connect(address) {
      const client = new RedisClient(address);
      await client.connect();
      return (items) =>
        Promise.all(items.map((item) => client.send("XADD", ["events", "*", "e", JSON.stringify(item)])));
    },
  },
  {
    name: "PostgreSQL",
    program: "postgres",
    folders: ["/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/15/bin"],
    async start(program, folder) {
      chmodSync(folder, 0o777);
      const data = join(folder, "data");
      // Its companions are beside the program itself, not beside a link to it.
      const bin = dirname(realpathSync(program));
      const initdb = join(bin, "initdb");
      const created = Bun.spawnSync([
        ...asPostgres,
        initdb,
        "-D",
        data,
        "-U",
        "bench",
        "--auth=trust",
        "--no-sync",
      ]);
      if (created.exitCode !== 0) throw new Error(created.stderr.toString());
      const flags = ["-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "shared_buffers=512MB"];
      const process = Bun.spawn([...asPostgres, program, ...flags], quiet);
      const isReady = () => Bun.spawnSync([join(bin, "pg_isready"), "-h", folder]).exitCode === 0;
      await until(isReady, "PostgreSQL takes connections");
      return { address: folder, process };
    },
    async connect(folder) {
      const sql = new SQL({
        path: join(folder, ".s.PGSQL.5432"),
        adapter: "postgres",
        username: "bench",
        database: "postgres",
        max: 16,
      });
      await sql`CREATE TABLE IF NOT EXISTS events
        (uuid uuid PRIMARY KEY, event text, distinct_id text, at timestamptz, properties jsonb)`;
      return (items) =>
        sql`INSERT INTO events SELECT (e->>'uuid')::uuid, e->>'event', e->>'distinct_id', (e->>'timestamp')::timestamptz, e->'properties'
          FROM json_array_elements(${JSON.stringify(items)}::text::json) e ON CONFLICT DO NOTHING`;
    },
  },
];

const single = { kind: "single", connections: 32, requests: 15_000 * (seconds + 1) } as const;
const batch = { kind: "batch", connections: 16, requests: 600 * (seconds + 1), size: 100 } as const;

async function measure(url: string, token: string) {
  const events = async (plan: typeof single | typeof batch, each: number) => {
    const result = await (await startClient({ ...plan, seconds, seed: 1, url, token })).run();
    return ((result.requests - result.failures) * each) / result.seconds;
  };
  return { singles: await events(single, 1), batched: await events(batch, 100) };
}

type Figures = Awaited<ReturnType<typeof measure>>;

async function ofPeer(peer: Peer, program: string): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-peer-"));
  const { address, process: server } = await peer.start(program, folder);
  try {
    await until(
      () =>
        peer.connect(address).then(
          () => true,
          () => false,
        ),
      `${peer.name} answers`,
    );
    const server = Bun.spawn([process.execPath, import.meta.path, peer.name, address], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    try {
      const { value } = await server.stdout.getReader().read();
      return await measure(new TextDecoder().decode(value).trim(), "phc_bench");
    } finally {
      server.kill();
      await server.exited;
    }
  } finally {
    // Not SIGTERM, at which PostgreSQL waits for its clients.
    server.kill("SIGINT");
    await server.exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The server in front of a peer, in a process of its own. */
async function servePeer(peer: Peer, address: string): Promise<void> {
  const store = await peer.connect(address);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const sent = new Uint8Array(await request.arrayBuffer());
      const plain = request.headers.get("content-encoding") === "gzip" ? gunzipSync(sent) : Buffer.from(sent);
      const body = JSON.parse(plain.toString());
      await store(body.batch ?? [body]);
      return Response.json({ status: "Ok" });
    },
  });
  console.log(`http://127.0.0.1:${server.port}`);
}

function getMedian(rows: readonly Figures[]): Figures {
  const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
  return {
    singles: median(rows.map(({ singles }) => singles)),
    batched: median(rows.map(({ batched }) => batched)),
  };
}

async function compare(): Promise<void> {
  const installed = peers.flatMap((peer) => {
    const path = [process.env.PATH, ...(peer.folders ?? [])].join(":");
    const program = Bun.which(peer.program, { PATH: path });
    if (program === null) console.log(`MISSING ${peer.name}: ${peer.program} is not installed.`);
    return program === null ? [] : [{ peer, program }];
  });
  const rows: Record<string, Figures[]> = { Flagkeep: [] };
  for (let round = 0; round < rounds; round++) {
    await using server = await ServerProcess.start();
    console.log(`round ${round + 1} of ${rounds}`);
    rows.Flagkeep!.push(await measure(server.url, server.token));
    for (const { peer, program } of installed) {
      rows[peer.name] ??= [];
      rows[peer.name]!.push(await ofPeer(peer, program));
    }
  }
  const own = getMedian(rows.Flagkeep!);
  const table = Object.entries(rows).map(([name, figures]) => {
    const { singles, batched } = getMedian(figures);
    return {
      name,
      "singles/s": Math.round(singles),
      "batched events/s": Math.round(batched),
      "Flagkeep ÷, singles": (own.singles / singles).toFixed(2),
      "Flagkeep ÷, batched": (own.batched / batched).toFixed(2),
    };
  });
  console.table(table);
  writeFileSync("dist/bench-peers.json", JSON.stringify({ rounds, seconds, rows }, null, 2));
}

const [name, address] = process.argv.slice(2);
const asked = peers.find((peer) => peer.name === name);
if (asked === undefined) await compare();
else await servePeer(asked, address!);
