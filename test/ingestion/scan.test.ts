/** The quick road gives the same answers, notes and stored bytes as the road on which events are parsed. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type CaptureBody,
  ParsedRequest,
  type Protocol,
  readRequest,
} from "../../src/ingestion/request-entries.ts";
import { scan } from "../../src/ingestion/scanned-lines.ts";
import { anyToken, generatedUuid, noon } from "./support.ts";
import { WildBodies } from "./wild-bodies.ts";

interface Circumstances {
  receivedMicros?: number;
  anonymizeIps: boolean;
  clientIp: string | undefined;
  rule: "drop" | "reject-single" | "treat-as-identify";
  query: CaptureBody["query"];
}

const defaults: Circumstances = {
  anonymizeIps: false,
  clientIp: "192.0.2.7",
  rule: "drop",
  query: {},
};

/** What becomes of a body on one of the roads, as text. */
async function becomes(
  body: Uint8Array,
  { receivedMicros = noon, anonymizeIps, clientIp, rule, query }: Circumstances,
  read: (
    opened: CaptureBody,
    protocol: Protocol,
  ) => Pick<ParsedRequest, "token"> & {
    lines: (...args: Parameters<ParsedRequest["lines"]>) => unknown;
  },
) {
  let uuids = 0;
  const generateUuid = () => `00000000-0000-7000-8000-${String(uuids++).padStart(12, "0")}`;
  try {
    const request = read({ content: body, form: undefined, query }, { kind: "classic", rule });
    const token = request.token();
    const arrival = { receivedMicros, clientIp };
    const lines = (await request.lines({ id: 1, anonymizeIps }, arrival, generateUuid)) as {
      lane: string;
      entries: (string | Uint8Array)[];
    };
    const entries = lines.entries.map((entry) => Buffer.from(entry as string).toString());
    return { token, lane: lines.lane, entries, kinds: lines.entries.map((entry) => typeof entry) };
  } catch (error) {
    return { rejected: `${(error as Error).constructor.name} ${(error as Error).message}` };
  }
}

/** Takes both roads. @returns how many lines the program wrote itself. */
async function bothRoads(body: Uint8Array, circumstances = defaults) {
  const parsed = await becomes(body, circumstances, (...of) => new ParsedRequest(...of));
  const { kinds, ...read } = await becomes(body, circumstances, readRequest);
  const { kinds: _, ...expected } = parsed;
  expect(read).toEqual(expected);
  return { copied: kinds?.filter((kind) => kind === "object").length ?? 0, stored: expected.entries };
}

const event = (inside: string, beside = "") =>
  `{"event":"e","distinct_id":"d","properties":${inside}${beside}}`;
const getBatch = (...events: string[]) =>
  Buffer.from(`{"api_key":"${anyToken}","batch":[${events.join(",")}]}`);

describe("events of the fast path are copied", () => {
  for (const [name, text] of Object.entries({
    "as they are": event('{"a":1,"b":[true,null,{"c":"größe 東京 😀"}]}'),
    "with spaces": event('{ "a" : 1 , "b" : [ ] }'),
    "with escapes": event(String.raw`{"a":"\u00e9 \ud83d\ude00 \/ \" \\ \n"}`),
    "without properties": '{"event":"e","distinct_id":"d"}',
    "with an id among the properties": '{"event":"e","properties":{"distinct_id":"d"}}',
    "with a chain of elements": event('{"$elements_chain":"a:href=\\"/x\\"","b":1}'),
    "with a switch": event('{"$process_person_profile":true,"b":1}'),
    "without a person": event('{"$set":{"a":1},"$process_person_profile":false,"$unset":["a"],"b":1}'),
    "with times": event("{}", ',"timestamp":"2026-11-20T11:12:13.456Z"'),
    "with other times": event("{}", ',"timestamp":"2026-11-20T11:12:13.456789+01:00"'),
    "with an offset": event("{}", ',"offset":1500'),
    "with a uuid": event("{}", ',"uuid":"01a1fb87-8ea9-71da-a728-780e77655af4"'),
    "with an address of its own": event('{"$ip":"198.51.100.1","$sent_at":"x"}'),
  })) {
    test(name, async () => {
      for (const anonymizeIps of [false, true]) {
        const { copied } = await bothRoads(getBatch(text, text), { ...defaults, anonymizeIps });
        expect(copied).toBe(2);
      }
    });
  }

  test("alone, in an array, and in a batch with more around it", async () => {
    const own = event(`{"token":"${anyToken}"}`);
    for (const body of [
      own,
      `[${own},${own}]`,
      ` {"sent_at":"2026-11-21T11:59:00Z","more":{"x":[1]},"batch":[${own}],"token":"${anyToken}"} `,
      `{"historical_migration":true,"batch":[${event("{}", ',"timestamp":"2020-01-01T00:00:00.000Z"')}],"api_key":"k"}`,
    ]) {
      expect((await bothRoads(Buffer.from(body))).copied).toBeGreaterThan(0);
    }
  });

  test("and only events of the slow path are parsed", async () => {
    const invalid = event('{"$elements":[{"tag_name":"a"}]}');
    const { copied, stored } = await bothRoads(getBatch(event("{}"), invalid, event("{}"), invalid));
    expect(copied).toBe(2);
    expect(stored).toHaveLength(4);
  });

  test("but all of them where many are not", async () => {
    const invalid = event('{"$elements":[{"tag_name":"a"}]}', `,"uuid":"${generatedUuid}"`);
    const { copied } = await bothRoads(
      getBatch(...Array.from({ length: 201 }, () => invalid), event("{}", `,"uuid":"${generatedUuid}"`)),
    );
    expect(copied).toBe(0);
  });

  test("more than the capacity of one call", async () => {
    const large = event(`{"text":"${"x".repeat(300_000)}"}`);
    const tooLarge = event(`{"text":"${"y".repeat(1_100_000)}"}`);
    const { copied } = await bothRoads(getBatch(...Array.from({ length: 9 }, () => large), tooLarge, large));
    expect(copied).toBe(10);
  });

  test("every time of a day, and every day of four hundred years", async () => {
    const times: string[] = [];
    const dayMs = 86_400_000;
    const endings = ["Z", "", "+00:00", "-05:30", "456Z", "4567+14:00"];
    for (let day = 0; day < 400 * 366; day += 7) {
      const time = new Date(day * dayMs + ((day * 7_919_000) % dayMs)).toISOString();
      times.push(
        time,
        time.replace("Z", endings[day % endings.length]!).replace("T", day % 2 === 0 ? "T" : " "),
      );
    }
    const late = { ...defaults, receivedMicros: Date.UTC(2250, 0) * 1_000 };
    for (let start = 0; start < times.length; start += 500) {
      const events = times
        .slice(start, start + 500)
        .map((time) => event("{}", `,"timestamp":"${time}","uuid":"${generatedUuid}"`));
      const batch = getBatch(...events).toString();
      await bothRoads(Buffer.from(batch), late);
      await bothRoads(Buffer.from(batch.replace("{", '{"historical_migration":true,')), late);
    }
  });
});

test("a text of another request is never mistaken for this one's", () => {
  const first = readRequest(
    { content: getBatch(event('{"a":1}')), form: undefined, query: {} },
    { kind: "classic", rule: "drop" },
  );
  scan(getBatch(event('{"b":1}')));
  const arrival = { receivedMicros: noon, clientIp: undefined };
  expect(() => first.lines({ id: 1, anonymizeIps: false }, arrival, () => "")).toThrow("Another request");
});

test("wild bodies", async () => {
  let copied = 0;
  let accepted = 0;
  let rejected = 0;
  const circumstances = fc.record({
    anonymizeIps: fc.boolean(),
    clientIp: fc.constantFrom(undefined, "192.0.2.7", "2001:db8::7"),
    rule: fc.constantFrom("drop" as const, "reject-single" as const, "treat-as-identify" as const),
    query: fc.constantFrom({}, { token: anyToken, sentAt: "2026-11-21T11:00:00Z" }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.noBias(fc.nat()),
      fc.constantFrom(0, 0, 0.02, 0.1, 0.4),
      circumstances,
      async (seed, strangeness, how) => {
        const body = new WildBodies(seed, strangeness).body();
        const both = await bothRoads(body, how).catch((error) => {
          throw new Error(`${JSON.stringify(body.toString("latin1"))}\n${error.message}`);
        });
        copied += both.copied;
        if (both.stored === undefined) rejected++;
        else accepted++;
      },
    ),
    { numRuns: 8_000 },
  );
  // The generator would be worth nothing if all of its bodies went one road.
  expect(copied).toBeGreaterThan(2_000);
  expect(accepted).toBeGreaterThan(5_000);
  expect(rejected).toBeGreaterThan(500);
});
