/** Usual records are copied, and lead to the same events, rejects and progress as when they are parsed. */

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { type Imported, importAll } from "../../src/import/import-all.ts";
import type { ImportClient } from "../../src/import/import-client.ts";
import type { FieldRule } from "../../src/import/map/fields.ts";
import { CaptureHandler } from "../../src/ingestion/event-intake.ts";
import type { EntryJson } from "../../src/journal/entry.ts";
import { nowMicros } from "../../src/lib/time.ts";
import { generatedUuid } from "../ingestion/support.ts";
import { temporaryFolder } from "../support/server.ts";
import { WildRecords } from "./wild-records.ts";

const receivedMicros = nowMicros();
/** Does nothing, but records that go through rules are parsed. */
const parsing: FieldRule[] = [{ target: "no such target", sources: [{ field: "no such field" }] }];

/** Keeps the entries that the server would write. */
class StartedServer implements ImportClient {
  readonly entries: string[] = [];
  /** Events that were copied: their uuid comes first. */
  copied = 0;
  private readonly intake = new CaptureHandler({
    projects: { find: () => undefined, findByToken: () => undefined } as never,
    journal: { append: async (_, entries) => this.keep(entries) },
    nowMicros: () => receivedMicros,
    generateUuid: () => generatedUuid,
  });

  /** @param failAt fails instead of taking this batch. */
  constructor(private failAt = Number.POSITIVE_INFINITY) {}

  private keep(entries: readonly EntryJson[]): number {
    for (const entry of entries) {
      // Copied texts keep the spelling of values; values are what counts.
      this.entries.push(JSON.stringify(JSON.parse(`{${Buffer.from(entry as string).toString()}`)));
    }
    return 0;
  }

  async send(requests: Uint8Array): Promise<void> {
    if (--this.failAt <= 0) throw new Error("no");
    this.copied += Buffer.from(requests).toString().split('{"uuid":"').length - 1;
    await this.intake.appendImported({ id: 1, anonymizeIps: false }, requests);
  }

  knownUuids = async () => new Set<string>();
  limits = async () => ({ eventBytesMax: 20 * 1024 * 1024 });
  hasHistory = async () => true;
  storedEvents = async () => [];
  personsOf = async () => new Map();
  importedPersons = async () => [];
  deletePerson = async () => undefined;
  settled = async () => undefined;
  lastSeq = async () => 0;
  waitUntilLoaded = async () => undefined;
}

interface Outcome {
  imported?: Imported;
  error?: string;
}

class Trial {
  readonly folder = temporaryFolder();
  readonly path = join(this.folder, "events.ndjson");

  constructor(content: Buffer) {
    writeFileSync(this.path, content);
  }

  async run(
    fields: FieldRule[],
    state: string,
    target: ImportClient,
    more: Partial<Parameters<typeof importAll>[0]> = {},
  ): Promise<Outcome> {
    const nothing = () => undefined;
    try {
      const imported = await importAll({
        source: this.path,
        projectId: 1,
        dataDir: this.folder,
        stateFolder: join(this.folder, state),
        format: "auto",
        fields,
        isLinking: true,
        isDryRun: false,
        isResumed: false,
        maxRejects: 1_000,
        onBytes: nothing,
        onRecords: nothing,
        onReject: nothing,
        onFormat: nothing,
        target,
        ...more,
      });
      return { imported };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }

  /** The progress that was written down, and the rejects. */
  left(state: string): string[] {
    const found: string[] = [];
    const written = existsSync(join(this.folder, state));
    for (const name of written
      ? (readdirSync(join(this.folder, state), { recursive: true }) as string[])
      : [])
      if (name.endsWith(".json")) found.push(readFileSync(join(this.folder, state, name), "utf8"));
    const rejects = `${this.path}.rejected.ndjson`;
    if (existsSync(rejects)) found.push(readFileSync(rejects, "utf8"));
    rmSync(rejects, { force: true });
    return found;
  }

  /** Both ways. @returns how many events were copied. */
  async bothWays(maxRejects = 1_000): Promise<{ copied: number; accepted: number; rejected: number }> {
    const copied = new StartedServer();
    const parsed = new StartedServer();
    const quick = await this.run([], "copied", copied, { maxRejects });
    const quickLeft = this.left("copied");
    const slow = await this.run(parsing, "parsed", parsed, { maxRejects });
    expect(JSON.stringify(quick)).toBe(JSON.stringify(slow));
    expect(copied.entries).toEqual(parsed.entries);
    expect(quickLeft).toEqual(this.left("parsed"));
    const { accepted = 0, rejected = 0 } = quick.imported?.counts ?? {};
    return { copied: copied.copied, accepted, rejected };
  }

  end(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function both(content: string | Buffer, maxRejects?: number) {
  const trial = new Trial(Buffer.from(content as string));
  try {
    return await trial.bothWays(maxRejects);
  } finally {
    trial.end();
  }
}

const uuid = (n: number) => `01a1fb87-8ea9-71da-a728-${String(n).padStart(12, "0")}`;
const event = { event: "e", distinct_id: "d", timestamp: "2026-11-20T11:12:13.456Z", properties: { a: 1 } };
const lines = (...records: object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");
/** Behind the first ones, which tell what the file is. */
const behindOne = (record: object) =>
  lines({ ...event, uuid: uuid(1) }, { ...event, uuid: uuid(2), ...record });

describe("simple records are copied", () => {
  const exported = { received_at: "2026-11-20T11:12:14.000000Z", historical: false, seq: 7, person_id: null };
  const fromPostHog = { team_id: 2, person_id: uuid(9), created_at: "2026-11-20 11:12:13+00:00" };
  for (const [name, record] of Object.entries({
    "with their properties": { properties: { a: [{ b: "größe" }], $set: { c: 1 } } },
    "with none": { properties: {} },
    "with other times": { timestamp: "2026-11-20 11:12:13.456789+02:00" },
    "with a zone in words": { timestamp: "2026-11-20 11:12:13 UTC" },
    "with empty columns": { plan: null },
    "with five groups": { properties: { $groups: { a: "1", b: "2", c: "3", d: "4", e: "5" } } },
  })) {
    test(name, async () => {
      expect((await both(behindOne(record))).copied).toBe(1);
    });
  }

  test("rows of an own export, of any time", async () => {
    const rows = [1, 2, 3].map((n) => ({ ...event, ...exported, uuid: uuid(n) }));
    const old = { ...rows[1]!, timestamp: "1980-01-01T00:00:00.000000Z", elements_chain: "" };
    const clicked = { ...rows[2]!, elements_chain: 'a.link:text="Go"' };
    expect(
      (await both(lines(rows[0]!, old, clicked, { ...clicked, properties: {}, uuid: uuid(4) }))).copied,
    ).toBe(3);
  });

  test("rows of PostHog's", async () => {
    const rows = [1, 2, 3].map((n) => ({ ...event, ...fromPostHog, elements_chain: "", uuid: uuid(n) }));
    const { uuid: id, ...answer } = { ...rows[2]!, elements: [], person: { a: 1 }, elements_chain: "a:text" };
    expect((await both(lines(rows[0]!, rows[1]!, { id, ...answer }))).copied).toBe(2);
    const own = { seq: 1, historical: true, elements: [] };
    expect((await both(lines(rows[0]!, { ...rows[1]!, ...own }, { ...rows[2]!, seq: 1 }))).copied).toBe(1);
  });

  test("groups without a limit and chains of elements", async () => {
    const many = Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`t${n}`, `${n}`]));
    const own = [1, 2].map((n) => ({ ...event, ...exported, uuid: uuid(n), properties: { $groups: many } }));
    expect((await both(lines(...own))).copied).toBe(1);
    const [first, second] = [1, 2].map((n) => ({ ...event, ...fromPostHog, uuid: uuid(n) }));
    for (const $elements_chain of ["", "b:text", null]) {
      const clicked = { ...second!, elements_chain: "a:text", properties: { $elements_chain } };
      expect((await both(lines(first!, clicked))).copied).toBe(0);
    }
  });

  test("at every end of a line", async () => {
    const [first, ...others] = [1, 2, 3, 4].map((n) => JSON.stringify({ ...event, uuid: uuid(n) }));
    for (const [end, copied] of [
      ["\r\n", 3],
      ["\n\n", 3],
      [" \t\n ", 3],
      ["\n\u00a0\n", 3],
      ["\r\r\n\n", 3],
    ] as const)
      expect((await both([first, ...others].join(end))).copied).toBe(copied);
  });
});

describe("others are parsed", () => {
  for (const [name, record] of Object.entries({
    "with a member that is a property": { plan: "free" },
    "with half of an own export's columns": { seq: 1 },
    "with properties that are text": { properties: "{}" },
    "with $set beside the properties": { $set: { a: 1 } },
    "with an id that is a number": { distinct_id: 7 },
    "without an id": { distinct_id: null },
    "with a name that is not stored": { event: "$snapshot" },
    "with an upper case uuid": { uuid: uuid(2).toUpperCase().replace("01A1", "A1A1") },
    "too early": { timestamp: "1989-12-31T23:59:59.999Z" },
    "in the future": { timestamp: "2200-01-01T00:00:00.000Z" },
    "with a number for a time": { timestamp: 1_700_000_000 },
    "with a number as text": { timestamp: "1700000000" },
    "with a zone in words that nobody knows": { timestamp: "2026-11-20 11:12:13 BST" },
    "with six groups": { properties: { $groups: { a: "1", b: "2", c: 3, d: "4", e: "5", f: { g: 1 } } } },
    "with NUL": { properties: { a: "\0" } },
  })) {
    test(name, async () => {
      const { copied, accepted, rejected } = await both(behindOne(record));
      expect({ copied, all: accepted + rejected }).toEqual({ copied: 0, all: 2 });
    });
  }

  test("what is no UTF-8, or continues in the next line; a character that means nothing is one", async () => {
    const first = behindOne({});
    for (const [bytes, copied] of [
      [Buffer.from([0xff, 0x0a]), 0],
      [Buffer.from('{"a":"\ufdd0\ufffe"}\n'), 1],
      [Buffer.from('{"uuid":\n"x"}\n'), 1],
    ] as const)
      expect((await both(Buffer.concat([Buffer.from(first), bytes]))).copied).toBe(copied);
  });
});

test("more lines than one read, and one that is longer than a block", async () => {
  const many = Array.from({ length: 9_000 }, (_, n) => ({ ...event, uuid: uuid(n) }));
  const long = { ...event, uuid: uuid(9_000), properties: { text: "x".repeat(5_000_000) } };
  const { copied, accepted } = await both(lines(...many, long, { ...event, uuid: uuid(9_001) }));
  expect(accepted).toBe(9_002);
  expect(copied).toBeGreaterThan(8_000);
  expect((await both("\n".repeat(3_000_000) + behindOne({}))).accepted).toBe(2);
});

test("more events than there is memory for, which is used again", async () => {
  const many = Array.from({ length: 20_000 }, (_, n) => {
    const properties = { n, text: "x".repeat(n % 800) };
    return n % 900 === 5 ? { ...event, properties } : { ...event, uuid: uuid(n), properties };
  });
  const { copied, accepted } = await both(lines(...many));
  expect({ copied, accepted }).toEqual({ copied: 19_976, accepted: 20_000 });
});

test("an import that was interrupted continues the other way", async () => {
  const content = lines(
    ...Array.from({ length: 8_000 }, (_, n) => ({ ...event, uuid: uuid(n), properties: { n } })),
  );
  for (const [first, second] of [
    [[], parsing],
    [parsing, []],
  ]) {
    const trial = new Trial(Buffer.from(content));
    const broken = new StartedServer(3);
    const whole = new StartedServer();
    expect(await trial.run(first!, "state", broken)).toEqual({ error: "no" });
    const { imported } = await trial.run(second!, "state", whole, { isResumed: true });
    expect(imported?.counts).toMatchObject({ read: 8_000, accepted: 8_000, rejected: 0 });
    expect([...broken.entries, ...whole.entries]).toHaveLength(8_000);
    trial.end();
  }
});

test("wild files", async () => {
  const all = { copied: 0, accepted: 0, rejected: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.noBias(fc.nat()),
      fc.constantFrom(0, 0.02, 0.05, 0.1, 0.3),
      fc.constantFrom("events" as const, "flagkeep" as const, "posthog" as const),
      fc.constantFrom(1_000, 1_000, 9),
      async (seed, strangeness, kind, maxRejects) => {
        const content = new WildRecords(seed, strangeness).file(kind, 90);
        const found = await both(content, maxRejects).catch((error) => {
          throw new Error(`${JSON.stringify(content.toString("latin1"))}\n${error.message}`);
        });
        for (const name of ["copied", "accepted", "rejected"] as const) all[name] += found[name];
      },
    ),
    // As many records as 600 files of 30: what costs time is the file, not the record.
    { numRuns: 200 },
  );
  expect(all.copied).toBeGreaterThan(3_000);
  expect(all.accepted - all.copied).toBeGreaterThan(1_000);
  expect(all.rejected).toBeGreaterThan(500);
});
