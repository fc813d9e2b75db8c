import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import LZString from "lz-string";
import {
  InvalidPayloadError,
  PayloadTooLargeError,
  RequestRejectedError,
} from "../../src/http/decode/errors.ts";
import { decompressLz64 } from "../../src/http/decode/lz64.ts";

const limitBytes = 1_000_000;
const read = (base64: string, limit = limitBytes) => decompressLz64(Buffer.from(base64), limit);

describe("reads what lz-string wrote", () => {
  test("for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        expect(read(LZString.compressToBase64(text))).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  test("for texts that repeat themselves", () => {
    const words = fc.array(fc.constantFrom("a", "ab", "aaa", "größe", "東京", '{"k":', "😀"), {
      maxLength: 400,
    });
    fc.assert(
      fc.property(words, (parts) => {
        expect(read(LZString.compressToBase64(parts.join("")))).toBe(parts.join(""));
      }),
      { numRuns: 300 },
    );
  });

  test("for a long text with many codes", () => {
    const text = JSON.stringify(
      Array.from({ length: 20_000 }, (_, index) => ({ index, text: `${index * 7919}` })),
    );
    expect(read(LZString.compressToBase64(text), 2 * limitBytes)).toBe(text);
  });
});

test("stops at the limit, counted in UTF-8", () => {
  const base64 = LZString.compressToBase64("é".repeat(600));
  expect(read(base64, 1200)).toBe("é".repeat(600));
  expect(() => read(base64, 1199)).toThrow(PayloadTooLargeError);
  expect(() => read(base64, 599)).toThrow(PayloadTooLargeError);
});

test("a few bytes that stand for much are not unpacked beyond the limit", () => {
  const bomb = LZString.compressToBase64("a".repeat(2_000_000));
  expect(bomb.length).toBeLessThan(10_000);
  expect(() => read(bomb, 1_999_999)).toThrow(PayloadTooLargeError);
  expect(read(bomb, 2_000_000)).toHaveLength(2_000_000);
});

test("any other bytes are rejected or read, never worse", () => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 200 }), (base64) => {
      try {
        expect(typeof read(base64)).toBe("string");
      } catch (error) {
        expect(error).toBeInstanceOf(RequestRejectedError);
      }
    }),
    { numRuns: 500 },
  );
  expect(() => read("")).toThrow(InvalidPayloadError);
  expect(() => read(LZString.compressToBase64("hello world").slice(0, -6))).toThrow(InvalidPayloadError);
});
