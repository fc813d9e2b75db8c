/**
 * Measures the road from the bytes of a request to the lines of the journal, without HTTP and without a disk:
 * `bun test/bench/decode.ts [seconds per case]`. Prints events per second on one thread, and per second of processor
 * time (garbage collection on other threads included): the best of five rounds, because a machine that does other
 * things as well only ever makes rounds slower.
 */

import { cpus } from "node:os";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { BodyReader } from "../../src/http/body.ts";
import type { EdgeDeps, RegisteredPath } from "../../src/http/edge-deps.ts";
import { RequestContext } from "../../src/http/request-context.ts";
import { captureProfile } from "../../src/http/route-profile.ts";
import { TrustedProxies } from "../../src/http/trusted-proxies.ts";
import { CaptureHandler } from "../../src/ingestion/event-intake.ts";
import type { JournalSink } from "../../src/ingestion/ports.ts";

const seconds = Number(process.argv[2] ?? 2);
const rounds = 5;
const mib = 1024 * 1024;

/** Forgets the lines, or does what a journal must with them: makes one buffer. */
class BenchJournal implements JournalSink {
  isBuffering = false;
  bytes = 0;
  async append(_lane: string, entries: readonly string[]): Promise<number> {
    if (this.isBuffering) this.bytes += Buffer.from(entries.join("\n")).length;
    return 1;
  }
}

const journal = new BenchJournal();
const deps = {
  journal,
  projects: { findByToken: () => ({ id: 1, anonymizeIps: false }) },
};
const intake = new CaptureHandler(deps);
const edge = {
  bodies: new BodyReader({ bytesMax: 20 * mib, apiBytesMax: mib, inFlightBytesMax: 256 * mib }),
  origins: new TrustedProxies([]),
  now: () => new Date(),
} as Partial<EdgeDeps> as EdgeDeps;
const path: RegisteredPath = { path: "/batch", profile: captureProfile, methods: new Map() };
const connection = { peer: () => "127.0.0.1", allowSilence: () => undefined };

function webEvent(index: number) {
  return {
    uuid: Bun.randomUUIDv7(),
    event: index % 3 === 0 ? "$pageview" : "checkout finished",
    properties: {
      $os: "Linux",
      $browser: "Chrome",
      $device_type: "Desktop",
      $timezone: "Europe/Berlin",
      $current_url: `https://shop.example.test/products/${index}?campaign=spring&step=2`,
      $host: "shop.example.test",
      $pathname: `/products/${index}`,
      $raw_user_agent:
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0",
      $browser_version: 156,
      $browser_language: "en-US",
      $screen_height: 720,
      $screen_width: 1280,
      $viewport_height: 720,
      $viewport_width: 1280,
      $lib: "web",
      $lib_version: "1.449.2",
      $insert_id: "7q2ubg4ceurn6vnc",
      $time: 1795221327.621 + index,
      $session_id: "01a1fb87-8e85-7ce2-a5f2-9b1359cb775e",
      $window_id: "01a1fb87-8e85-7ce2-a5f2-9b1359cb775f",
      distinct_id: `user-${index % 1000}`,
      $device_id: "01a1fb87-8e85-7ce2-a5f2-9b1359cb775d",
      $process_person_profile: true,
      cart: { items: 3, total: 129.9, currency: "EUR" },
    },
    timestamp: new Date(1_795_221_327_621 + index).toISOString(),
  };
}

function batch(size: number): string {
  const events = Array.from({ length: size }, (_, index) => webEvent(index));
  return JSON.stringify({ api_key: "phc_benchmark", batch: events, sent_at: new Date().toISOString() });
}

/** A request as the server hands it over; building a real one would copy the body once more. */
function arrived(body: Uint8Array, headers: Record<string, string>): Request {
  const sent = new Headers({ "content-length": String(body.length), ...headers });
  const request = {
    url: "http://localhost/batch/",
    headers: sent,
    bytes: async () => body,
    get body() {
      return new Blob([Buffer.from(body)]).stream();
    },
  };
  return request as unknown as Request;
}

async function take(request: Request): Promise<void> {
  const exchange = new RequestContext(request, connection, path, edge);
  await intake.take(exchange, { kind: "classic", rule: "drop" });
  exchange.end();
}

async function measure(
  name: string,
  eventsPerBody: number,
  body: Uint8Array,
  headers: Record<string, string> = {},
) {
  const request = arrived(body, headers);
  for (let warmUp = 0; warmUp < 20_000 / eventsPerBody; warmUp++) await take(request);
  let perSecond = 0;
  let perCpuSecond = 0;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    const cpuStart = process.cpuUsage();
    let bodies = 0;
    while (performance.now() - start < (seconds * 1_000) / rounds) {
      await take(request);
      bodies++;
    }
    const events = bodies * eventsPerBody;
    const cpu = process.cpuUsage(cpuStart);
    perSecond = Math.max(perSecond, (events * 1_000) / (performance.now() - start));
    perCpuSecond = Math.max(perCpuSecond, (events * 1_000_000) / (cpu.user + cpu.system));
  }
  const megabytes = Math.round(((perSecond / eventsPerBody) * body.length) / 1e6);
  const rate = String(Math.round(perSecond)).padStart(9);
  const cpuRate = String(Math.round(perCpuSecond)).padStart(9);
  console.log(
    `${name.padEnd(30)}${rate} events/s${cpuRate} per cpu s${String(megabytes).padStart(6)} MB/s of body`,
  );
}

const hundred = Buffer.from(batch(100));
const withUmlauts = Buffer.from(batch(100).replaceAll("Europe/Berlin", "Größe/東京"));
const one = Buffer.from(JSON.stringify({ api_key: "phc_benchmark", ...webEvent(1) }));
const escaped = Buffer.from(batch(100).replaceAll("Europe/Berlin", "Gr\\u00f6\\u00dfe"));
console.log(
  `${cpus().length} cores, ${cpus()[0]?.model}; ${Math.round(hundred.length / 100)} bytes per event`,
);
await measure("batch of 100", 100, hundred);
await measure("batch of 100, not only ASCII", 100, withUmlauts);
await measure("batch of 100, escaped letters", 100, escaped);
await measure("batch of 100, gzip", 100, gzipSync(hundred));
await measure("batch of 100, br", 100, brotliCompressSync(hundred), {
  "content-encoding": "br",
});
await measure("batch of 100, zstd", 100, zstdCompressSync(hundred), {
  "content-encoding": "zstd",
});
await measure(
  "batch of 100, pretty-printed",
  100,
  Buffer.from(JSON.stringify(JSON.parse(batch(100)), null, 2)),
);
await measure("batch of 10,000", 10_000, Buffer.from(batch(10_000)));
await measure("one event", 1, one);
await measure("one event, gzip", 1, gzipSync(one));
journal.isBuffering = true;
await measure("batch of 100, into one buffer", 100, hundred);
