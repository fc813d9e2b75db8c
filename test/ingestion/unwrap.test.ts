import { describe, expect, test } from "bun:test";
import * as zlib from "node:zlib";
import LZString from "lz-string";
import { decodeBody, toDisplayString } from "../../src/http/decode/decode-body.ts";
import { InvalidPayloadError, PayloadTooLargeError } from "../../src/http/decode/errors.ts";
import { queryFields } from "../../src/http/decode/form.ts";

const mib = 1024 * 1024;
const limitBytes = 20 * mib;
const toJsonString = '{"event":"größe","distinct_id":"a+b ?/>>>~~","properties":{"n":12.0}}';

const utf8 = Buffer.from(toJsonString);
const base64 = utf8.toString("base64");
const base64Url = utf8.toString("base64url");
const twice = Buffer.from(base64).toString("base64");
const lz64 = LZString.compressToBase64(toJsonString);
const gzip = zlib.gzipSync(utf8);
const zstd = zlib.zstdCompressSync(utf8);
const noGzipHeader = gzip.subarray(2);

interface Wrapping {
  name: string;
  body?: string | Uint8Array;
  url?: string;
  encoding?: string;
}

async function unwrapped(
  { body = "", url = "/e/", encoding }: Wrapping,
  limit = limitBytes,
): Promise<string> {
  const unwrapped = await decodeBody(
    {
      bytes: Buffer.from(body as string),
      query: queryFields(url),
      contentEncoding: encoding ?? null,
    },
    limit,
  );
  return toDisplayString(unwrapped);
}

const form = (data: string) => `data=${encodeURIComponent(data)}`;

describe("the JSON is decoded from", () => {
  for (const wrapping of [
    { name: "nothing around it", body: toJsonString },
    { name: "a byte order mark", body: `\ufeff${toJsonString}` },
    { name: "white space", body: ` \n${toJsonString}` },
    { name: "a content type that means nothing", body: toJsonString },

    { name: "base64", body: base64 },
    { name: "base64 with a line break behind it", body: `${base64}\n` },
    { name: "base64 for URLs with a hint", body: base64Url, url: "/e/?compression=base64" },
    { name: "base64 in base64", body: twice },
    { name: "base64 under a form type", body: base64 },
    { name: "base64 of gzip", body: gzip.toString("base64") },

    { name: "a form with base64", body: form(base64) },
    { name: "a form with base64 in base64", body: form(twice) },
    { name: "a form with base64 for URLs", body: form(base64Url) },
    { name: "a form with base64 whose + was not escaped", body: `data=${base64}` },
    {
      name: "a form with base64 whose + became spaces",
      body: `data=${base64.replaceAll("+", "%20")}`,
    },
    { name: "a form with JSON", body: form(toJsonString) },
    { name: "a form with JSON and + for spaces", body: form(toJsonString).replaceAll("%20", "+") },
    { name: "a form with gzip in base64", body: form(gzip.toString("base64")) },
    { name: "a form with other fields first", body: `_=1&ip=1&ver=1.2&${form(base64)}` },
    { name: "a form without its content type", body: form(base64) },
    { name: "a form in gzip", body: zlib.gzipSync(form(base64)) },

    { name: "gzip without a word", body: gzip },
    { name: "gzip with a header", body: gzip, encoding: "gzip" },
    { name: "gzip with a parameter", body: gzip, url: "/e/?compression=gzip-js&_=1" },
    {
      name: "gzip under every wrong hint",
      body: gzip,
      url: "/e/?compression=lz64",
      encoding: "br",
    },
    { name: "gzip in gzip", body: zlib.gzipSync(gzip) },
    {
      name: "gzip in two members",
      body: Buffer.concat([zlib.gzipSync(utf8.subarray(0, 9)), zlib.gzipSync(utf8.subarray(9))]),
    },
    {
      name: "plain JSON that claims gzip",
      body: toJsonString,
      url: "/e/?compression=gzip",
      encoding: "gzip",
    },
    { name: "plain JSON that claims br", body: toJsonString, encoding: "br" },
    { name: "plain JSON that claims zstd", body: toJsonString, encoding: "zstd" },
    { name: "plain JSON that claims lz64", body: toJsonString, url: "/e/?compression=lz64" },
    {
      name: "plain JSON that claims the unknown",
      body: toJsonString,
      url: "/e/?compression=rot13",
      encoding: "identity",
    },
    { name: "deflate", body: zlib.deflateSync(utf8), encoding: "deflate" },
    { name: "deflate without the zlib header", body: zlib.deflateRawSync(utf8), encoding: "deflate" },
    { name: "br", body: zlib.brotliCompressSync(utf8), encoding: "br" },
    { name: "zstd", body: zlib.zstdCompressSync(utf8), encoding: "ZSTD" },
    {
      name: "gzip in br",
      body: zlib.brotliCompressSync(gzip),
      encoding: "br",
      url: "/e/?compression=gzip-js",
    },

    { name: "lz64", body: lz64, url: "/e/?compression=lz64" },
    { name: "lz64 by its other name and case", body: lz64, url: "/e/?compression=LZ-String" },
    { name: "lz64 by a header", body: lz64, encoding: "lz64" },
    { name: "lz64 in a form with its own hint", body: `${form(lz64)}&compression=lz64` },
    { name: "base64 that claims lz64", body: base64, url: "/e/?compression=lz64" },

    { name: "a query with base64", url: `/e/?data=${encodeURIComponent(base64)}&_=1` },
    { name: "a query with base64 whose + was not escaped", url: `/e/?data=${base64}` },
    { name: "a query with base64 for URLs, which has no padding", url: `/e/?data=${base64Url}` },
    { name: "a query with JSON", url: `/e/?ip=1&data=${encodeURIComponent(toJsonString)}` },
    { name: "a query with lz64", url: `/e/?compression=lz64&data=${encodeURIComponent(lz64)}` },
    {
      name: "a query, which wins over a body",
      url: `/e/?data=${encodeURIComponent(toJsonString)}`,
      body: "[]",
    },
  ] as Wrapping[]) {
    test(wrapping.name, async () => expect((await unwrapped(wrapping)).trim()).toBe(toJsonString));
  }
});

describe("rejected are", () => {
  for (const [wrapping, message] of [
    [{ name: "nothing", body: "" }, "request missing data payload"],
    [{ name: "an empty data parameter and no body", url: "/e/?data=" }, "request missing data payload"],
    [{ name: "a form without data", body: "ip=1&_=2" }, "request missing data payload"],
    [{ name: "half a gzip", body: gzip.subarray(0, gzip.length - 9) }, "not valid gzip data"],
    [{ name: "a gzip without its end", body: gzip.subarray(0, gzip.length - 1) }, "not valid gzip data"],
    [
      {
        name: "a corrupt gzip",
        body: Buffer.concat([gzip.subarray(0, 20), Buffer.alloc(20, 7), gzip.subarray(40)]),
      },
      "not valid gzip data",
    ],
    ...[1, 4, 5, 20].map((cut): [Wrapping, string] => [
      { name: `a zstd without its last ${cut} bytes`, body: zstd.subarray(0, -cut), encoding: "zstd" },
      "not valid zstd data",
    ]),
    [{ name: "a false br", body: Buffer.from("....garbage....."), encoding: "br" }, "not valid br data"],
    [
      { name: "a false zstd", body: Buffer.from("....garbage....."), encoding: "zstd" },
      "not valid zstd data",
    ],
    [
      { name: "a false deflate", body: Buffer.from([0x78, 0x9c, 1, 2, 3, 4]), encoding: "deflate" },
      "not valid deflate data",
    ],
    [{ name: "a false lz64", body: "!!!!", url: "/e/?compression=lz64" }, "not valid lz64 data"],
    [{ name: "latin1", body: Buffer.from(toJsonString, "latin1") }, "the body is JSON that is not UTF-8"],
    [{ name: "random bytes", body: noGzipHeader }, "the body is not JSON: it begins with the bytes 0800"],
  ] as [Wrapping, string][]) {
    test(wrapping.name, async () => {
      const error = await unwrapped(wrapping).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(InvalidPayloadError);
      expect(error.message).toContain(message);
    });
  }
});

describe("a word that resembles base64 is left to the parser, which rejects it", () => {
  for (const body of ["deadbeef", "notJson1", "hello world"]) {
    test(body, async () => expect(await unwrapped({ name: body, body })).toBe(body));
  }
});

describe("a body above the limit after decompression is rejected", () => {
  const huge = Buffer.alloc(21 * mib, '[" ');
  const lz64Bomb = LZString.compressToBase64(`["${"a".repeat(3 * mib)}"]`);
  for (const [name, wrapping, limit] of [
    ["gzip", { body: zlib.gzipSync(huge) }, limitBytes],
    ["gzip in base64", { body: zlib.gzipSync(huge).toString("base64") }, limitBytes],
    ["deflate", { body: zlib.deflateSync(huge), encoding: "deflate" }, limitBytes],
    [
      "br",
      {
        body: zlib.brotliCompressSync(huge, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
        encoding: "br",
      },
      limitBytes,
    ],
    ["zstd", { body: zlib.zstdCompressSync(huge), encoding: "zstd" }, limitBytes],
    ["gzip over a small limit", { body: zlib.gzipSync(Buffer.alloc(1001, " ")) }, 1000],
    ["lz64", { body: lz64Bomb, url: "/e/?compression=lz64" }, 2 * mib],
  ] as [string, Omit<Wrapping, "name">, number][]) {
    test(name, async () => {
      const error = await unwrapped({ name, ...wrapping }, limit).catch((thrown) => thrown);
      expect(error).toBeInstanceOf(PayloadTooLargeError);
    });
  }

  test("and at the limit it is not", async () => {
    const body = zlib.gzipSync(Buffer.from(toJsonString.padEnd(1000, " ")).subarray(0, 1000));
    expect((await unwrapped({ name: "", body }, 1000)).trim()).toBe(toJsonString);
  });

  test("a large result is decompressed outside of the event loop", async () => {
    const body = zlib.gzipSync(Buffer.from(`["${"x".repeat(10 * mib)}"]`));
    let turns = 0;
    const ticking = setInterval(() => turns++, 1);
    const text = await unwrapped({ name: "", body });
    clearInterval(ticking);
    expect(text.length).toBe(10 * mib + 4);
    expect(turns).toBeGreaterThan(0);
  });
});

test("a form of nothing but separators is read in linear time", async () => {
  const started = performance.now();
  const error = await unwrapped({ name: "", body: `ip=1${"&".repeat(5 * mib)}` }).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(InvalidPayloadError);
  expect(performance.now() - started).toBeLessThan(10_000);
});
