/**
 * How many events per second the identity rules and their SQLite transaction take.
 *
 * `bun test/bench/identity.ts [--batches 20] [--size 5000] [--persons 100000]`; prints a table, checks nothing.
 */

import { mkdtempSync, rmSync, statSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { EventEntry } from "../../src/journal/entry.ts";
import { PropertyReader } from "../../src/journal/entry-properties.ts";
import { openPersons } from "../../src/persons/open.ts";
import { PersonStore } from "../../src/persons/store.ts";

const { values } = parseArgs({
  options: {
    batches: { type: "string", default: "20" },
    size: { type: "string", default: "5000" },
    persons: { type: "string", default: "100000" },
  },
});
const batches = Number(values.batches);
const size = Number(values.size);
const persons = Number(values.persons);

const folder = mkdtempSync(join(tmpdir(), "flagkeep-bench-"));
const path = join(folder, "people.sqlite");
const spikes = { factor: 10, minimumPerMinute: 1_000, historyMinutes: 60, historyMinutesMin: 2 };
const store = new PersonStore(openPersons(path), spikes);
const properties = new PropertyReader();
let seq = 0;
let clockMicros = Date.UTC(2026, 0, 1) * 1000;

type Kind = "web page view" | "server event" | "identify";

/** A page view as the web library sends it: a dozen automatic properties, one of them another at every view. */
function toEvent(kind: Kind, distinctId: string): EventEntry {
  seq += 1;
  clockMicros += 200;
  const common = { kind: "event" as const, seq, projectId: 1, uuid: Bun.randomUUIDv7(), distinctId };
  const times = {
    timeMicros: clockMicros,
    receivedMicros: clockMicros,
    historical: false,
    mode: "full" as const,
    hasGeneratedUuid: false,
    elementsChain: null,
  };
  const propertiesText = (properties: object) => Buffer.from(JSON.stringify(properties));
  if (kind === "server event") {
    const sent = { $lib: "posthog-node", total: seq };
    return { ...common, ...times, event: "order placed", propertiesText: propertiesText(sent) };
  }
  const web = {
    $lib: "web",
    $os: "Mac OS X",
    $os_version: "10.15.7",
    $browser: "Chrome",
    $browser_version: 125,
    $device_type: "Desktop",
    $current_url: `https://shop.example/products/${seq % 977}?page=${seq % 13}`,
    $pathname: `/products/${seq % 977}`,
    $referrer: "https://search.example/",
    $referring_domain: "search.example",
    $screen_height: 1080,
    $screen_width: 1920,
    $viewport_height: 938,
    $viewport_width: 1903,
    $raw_user_agent:
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/125",
    $session_id: "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4",
  };
  if (kind === "web page view")
    return { ...common, ...times, event: "$pageview", propertiesText: propertiesText(web) };
  const set = { email: `${distinctId}@mail.example`, name: `Person ${distinctId}`, plan: "pro" };
  const sent = { ...web, $anon_distinct_id: `anon-${distinctId}`, $set: set };
  return { ...common, ...times, event: "$identify", propertiesText: propertiesText(sent) };
}

/** Reads properties and applies events, in one step. */
function apply(entries: readonly EventEntry[]): void {
  const step = store.start("realtime");
  for (const { items } of properties.read(entries))
    step.add({ items: items.filter((item) => item !== undefined), duplicates: [] });
  step.commit(seq);
}

function run(name: string, kind: Kind, getId: (index: number) => string): void {
  let spent = 0;
  let cpuMicros = 0;
  for (let batch = 0; batch < batches; batch += 1) {
    const entries = Array.from({ length: size }, (_, index) => toEvent(kind, getId(batch * size + index)));
    const started = performance.now();
    const cpuBefore = process.cpuUsage();
    apply(entries);
    spent += performance.now() - started;
    const { user, system } = process.cpuUsage(cpuBefore);
    cpuMicros += user + system;
  }
  const perSecond = Math.round((batches * size) / (spent / 1000));
  const cpu = (cpuMicros / (batches * size)).toFixed(1);
  const shown = `${perSecond.toLocaleString("en").padStart(9)} events/s ${cpu.padStart(6)} µs of processor each`;
  console.log(`${name.padEnd(56)} ${shown}`);
}

/** Evenly spread, the same in every run. */
let state = 1;
const random = (below: number) => {
  state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
  return state % below;
};

console.log(
  `${cpus().length} cores, ${batches} batches of ${size}, ${persons.toLocaleString("en")} persons at first`,
);
for (let created = 0; created < persons; created += size) {
  apply(Array.from({ length: size }, (_, index) => toEvent("web page view", `person-${created + index}`)));
}
let fresh = 0;
const mostlyKnown = (perPerson: number) => {
  let current = "";
  return (index: number) => {
    if (index % perPerson === 0) {
      fresh += 1;
      current = random(100) < 80 ? `person-${random(persons)}` : `fresh-${fresh}`;
    }
    return current;
  };
};
run("page views, 80 % known persons, 1 event each in a batch", "web page view", mostlyKnown(1));
run("page views, 80 % known persons, 3 events each in a batch", "web page view", mostlyKnown(3));
run("page views, all new persons", "web page view", (index) => `new-${index}`);
run("server events, 80 % known persons", "server event", mostlyKnown(1));
run("server events, all new persons", "server event", (index) => `new-server-${index}`);
run("identify with an anonymous id, all new", "identify", (index) => `user-${index}`);
run("identify again", "identify", (index) => `user-${index}`);
store.db.$client.run("PRAGMA wal_checkpoint(TRUNCATE)");
const rows = store.db.$client.query<{ n: number }, []>("SELECT count(*) AS n FROM person").get()!.n;
console.log(`${rows.toLocaleString("en")} persons, ${Math.round(statSync(path).size / rows)} bytes each`);
store.db.$client.close();
rmSync(folder, { recursive: true });
