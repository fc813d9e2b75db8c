/** Whatever is sent: no 5xx, no exception, no changed prototype, and every line of the journal is one JSON object. */

import { expect, test } from "bun:test";
import * as zlib from "node:zlib";
import fc from "fast-check";
import LZString from "lz-string";
import { anyToken, startCapture } from "./support.ts";

const paths = [
  "/e/",
  "/batch",
  "/capture/",
  "/engage",
  "/i/v0/e/",
  "/s/",
  "/i/v1/analytics/events",
  "/i/v1/logs",
];
const answers = [200, 204, 400, 401, 405, 413];

const text = fc.oneof(fc.string({ unit: "binary" }), fc.string());
const json = fc.jsonValue({ stringUnit: "binary" });
/** Values that have been trouble somewhere, as JSON text. */
const nastyJson = fc.constantFrom(
  "1e400",
  "-1e400",
  "-0",
  "12345678901234567890.0",
  String.raw`"\u0000"`,
  String.raw`"\ud800"`,
  String.raw`"\udfff x"`,
  '{"__proto__":{"polluted":1}}',
  '{"constructor":{"prototype":{"polluted":1}}}',
  '{"toString":1,"valueOf":1,"toJSON":1}',
  `{"a":1,"a":{"b":1,"b":2}}`,
  "[".repeat(600) + "]".repeat(600),
  "{\n\r\n}",
  '"2026-11-21T00:00:00Z"',
  "null",
  '""',
);
const anyJson = fc.oneof(
  json.map((value) => JSON.stringify(value)),
  nastyJson,
);
const names = [
  "event",
  "distinct_id",
  "$distinct_id",
  "uuid",
  "timestamp",
  "offset",
  "properties",
  "$set",
  "$set_once",
  "token",
  "api_key",
  "batch",
  "sent_at",
  "historical_migration",
  "options",
  "session_id",
];
const propertyNames = [
  "$ip",
  "$sent_at",
  "$elements",
  "$elements_chain",
  "$process_person_profile",
  "$session_id",
  "$set",
  "$unset",
  "$group_0",
  "$group_key",
  "$group_set",
  "$survey_id",
  "$ignore_sent_at",
  "capture_internal",
  "distinct_id",
  "__proto__",
  "own",
];
const serializeObject = (name: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(name, value), { maxLength: 8 })
    .map((members) => `{${members.map(([key, one]) => `${JSON.stringify(key)}:${one}`).join(",")}}`);
const properties = serializeObject(fc.constantFrom(...propertyNames), anyJson);
const eventName = fc.constantFrom(
  "e",
  "$identify",
  "$groupidentify",
  "survey sent",
  "$snapshot",
  "$$client_ingestion_warning",
);
/** Members that must be right, before or behind others that need not be: of equal names the last counts. */
const withOthers = (own: string, others: string, isOwnLast: boolean) => {
  if (others === "{}") return `{${own}}`;
  return isOwnLast ? `${others.slice(0, -1)},${own}}` : `{${own},${others.slice(1)}`;
};
const others = serializeObject(fc.constantFrom(...names), anyJson);
const mostly = fc.nat(9).map(Boolean);
const event = fc
  .tuple(eventName, properties, others, mostly)
  .map(([name, inside, more, isOwnLast]) =>
    withOthers(
      `"event":"${name}","distinct_id":"d","token":"${anyToken}","properties":${inside}`,
      more,
      isOwnLast,
    ),
  );
const item = fc.oneof({ weight: 9, arbitrary: event }, { weight: 1, arbitrary: anyJson });
const batch = fc
  .tuple(fc.array(item, { maxLength: 4 }), others, mostly)
  .map(([events, more, isOwnLast]) =>
    withOthers(
      `"api_key":"${anyToken}","historical_migration":null,"batch":[${events.join(",\n")}]`,
      more,
      isOwnLast,
    ),
  );
const requestText = fc.oneof(
  { weight: 4, arbitrary: fc.array(event, { maxLength: 4 }).map((events) => `[${events.join(",\n")}]`) },
  { weight: 4, arbitrary: batch },
  { weight: 2, arbitrary: event },
  { weight: 1, arbitrary: anyJson },
  { weight: 1, arbitrary: text },
);

const wraps: Record<string, (body: Buffer) => Uint8Array | string> = {
  nothing: (body) => body,
  gzip: (body) => zlib.gzipSync(body),
  deflate: (body) => zlib.deflateSync(body),
  br: (body) => zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (body) => zlib.zstdCompressSync(body),
  base64: (body) => body.toString("base64"),
  form: (body) => `data=${encodeURIComponent(body.toString("base64"))}`,
  formOfJson: (body) => `ip=1&data=${encodeURIComponent(body.toString())}`,
  lz64: (body) => LZString.compressToBase64(body.toString()),
};
const corruption = fc.oneof(
  { weight: 5, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: fc.record({ at: fc.nat(), byte: fc.nat(255), isCut: fc.boolean() }) },
);
const hint = fc.constantFrom(
  undefined,
  "gzip",
  "deflate",
  "br",
  "zstd",
  "lz64",
  "base64",
  "identity",
  "gzip, br",
);
const contentType = fc.constantFrom(
  undefined,
  "application/json",
  "text/plain",
  "application/x-www-form-urlencoded",
);

function corrupted(bytes: Uint8Array, how: { at: number; byte: number; isCut: boolean } | null): Uint8Array {
  if (how === null || bytes.length === 0) return bytes;
  const at = how.at % bytes.length;
  if (how.isCut) return bytes.subarray(0, at);
  const copy = Uint8Array.from(bytes);
  copy[at] = how.byte;
  return copy;
}

const wrapNames = fc.constantFrom(...Object.keys(wraps));
/** Wrapped as clients do it, with the right hint, or in any way at all. */
const wrapping = fc.oneof(
  wrapNames.map((layer) => ({
    layers: [layer],
    corruption: null,
    encoding: layer,
    compression: layer,
    contentType: undefined,
  })),
  fc.record({
    layers: fc.array(wrapNames, { maxLength: 3 }),
    corruption,
    encoding: hint,
    compression: hint,
    contentType,
  }),
);
const request = fc.record({
  path: fc.constantFrom(...paths),
  body: requestText,
  wrapping,
  isInQuery: fc.nat(9).map((number) => number === 0),
});

test("any body in any wrapping", async () => {
  const { journal, send, unexpected } = startCapture();
  let stored = 0;
  await fc.assert(
    fc.asyncProperty(
      request,
      async ({
        path,
        body,
        wrapping: { layers, encoding, compression, contentType: type, corruption: harm },
        isInQuery,
      }) => {
        const wrapped = layers.reduce<Uint8Array>(
          (bytes, layer) => Buffer.from(wraps[layer]!(Buffer.from(bytes)) as Uint8Array),
          Buffer.from(body),
        );
        const bytes = corrupted(wrapped, harm);
        const headers: Record<string, string> = { authorization: `Bearer ${anyToken}` };
        if (encoding !== undefined) headers["content-encoding"] = encoding;
        if (type !== undefined) headers["content-type"] = type;
        const query = new URLSearchParams(compression === undefined ? {} : { compression });
        const isShort = isInQuery && bytes.length < 4_000;
        if (isShort) query.set("data", Buffer.from(bytes).toString("latin1"));
        const response = await send(`${path}?${query}`, { body: isShort ? "" : Buffer.from(bytes), headers });
        expect(answers).toContain(response.status);
        expect(unexpected).toEqual([]);
        expect(({} as Record<string, unknown>).polluted).toBeUndefined();
        // Reading the lines parses them; each has to be storable.
        for (const line of journal.lines) {
          expect(JSON.stringify(line)).not.toMatch(/[^\\](?:\\\\)*\\u(?:0000|d[89a-f])/);
          if (line.note === undefined) stored++;
        }
        journal.appends.length = 0;
      },
    ),
    { numRuns: 1_500 },
  );
  // The generator would be worth nothing if it only made rejections.
  expect(stored).toBeGreaterThan(100);
});

test("the bytes of nothing in particular", async () => {
  const { send, unexpected } = startCapture();
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.uint8Array({ maxLength: 300 }),
      hint,
      async (path, body, encoding) => {
        const headers: Record<string, string> =
          encoding === undefined ? {} : { "content-encoding": encoding };
        for (const prefix of [[], [0x1f, 0x8b, 8], [0x28, 0xb5, 0x2f, 0xfd], [0x78, 0x9c]]) {
          const response = await send(path, { body: Uint8Array.from([...prefix, ...body]), headers });
          expect(answers).toContain(response.status);
        }
      },
    ),
    { numRuns: 300 },
  );
  expect(unexpected).toEqual([]);
});

test("any query", async () => {
  const { send, unexpected } = startCapture();
  await fc.assert(
    fc.asyncProperty(fc.webQueryParameters(), text, async (query, data) => {
      for (const url of [
        `/e/?${query}`,
        `/e/?data=${encodeURIComponent(data.toWellFormed())}&${query}`,
        `/e?data=%&data=%zz&_=%f`,
      ]) {
        expect(answers).toContain((await send(url, { method: "GET" })).status);
      }
    }),
    { numRuns: 300 },
  );
  expect(unexpected).toEqual([]);
});
