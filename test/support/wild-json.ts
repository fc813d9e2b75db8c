/** JSON that is nearly right, or strange in every way that is known to matter, from a seed. */

import { randomFrom } from "./seeded-random.ts";

/** Names and values, as they are written. */
export type WrittenMembers = (readonly [string, string])[];

export class WildJson {
  protected readonly random: () => number;
  constructor(
    seed: number,
    /** How much of it is strange, from 0 to 1. */
    private readonly strangeness: number,
  ) {
    this.random = randomFrom(seed);
  }

  protected pick<One>(items: readonly One[]): One {
    return items[Math.floor(this.random() * items.length)]!;
  }

  protected isStrange(share = 1): boolean {
    return this.random() < this.strangeness * share;
  }

  private space(): string {
    if (this.isStrange(0.005)) return this.pick(["\f", "\u00a0", "\0", "/**/"]);
    return this.isStrange() ? this.pick(["", " ", " ", "  ", "\t", this.isStrange() ? "\n" : " "]) : "";
  }

  private string(): string {
    const chunks = [
      "a",
      "word ",
      "größe",
      "東京",
      "😀",
      "x".repeat(15),
      "y".repeat(40),
      "{",
      "[",
      ",",
      ":",
      "\x7f",
      "\u2028",
    ];
    const escapes = [
      "\\n",
      '\\"',
      "\\\\",
      "\\/",
      "\\u00e9",
      "\\ud83d\\ude00",
      "\\u0041",
      "\\uD83D\\uDE00",
      "\\b",
    ];
    const invalid = [
      "\\u0000",
      "\\ud83d",
      "\\ude00",
      "\\ud83d\\ud83d",
      "\\ud83d\\n",
      "\\u00",
      "\\x",
      "\n",
      "\0",
      "\\u00g0",
      "\\",
      "\ufeff",
    ];
    let text = "";
    for (let count = Math.floor(this.random() * 4); count > 0; count--) {
      text += this.pick(this.isStrange(0.1) ? invalid : this.isStrange() ? escapes : chunks);
    }
    return `"${text}"`;
  }

  protected value(level: number): string {
    const kind = this.random();
    if (this.isStrange(0.01)) {
      return this.pick([
        "01",
        "1.",
        "+1",
        ".5",
        "1e",
        "-",
        "nul",
        "True",
        "'a'",
        "NaN",
        "",
        "1e+",
        "[1,]",
        '{"a":1,}',
        '{"a"}',
        "{,}",
        "[",
        "}",
        "00",
        "-01",
        "1e5.5",
        "tru",
        "falsey",
        "0x1",
        '{"a":1 "b":2}',
        "[1 2]",
        "--1",
        "Infinity",
      ]);
    }
    if (this.isStrange(0.02)) {
      const depth = this.pick([20, 57, 58, 59, 60, 61, 200, 497, 498, 499, 500, 501, 502, 503]);
      return this.pick([
        () => "[".repeat(depth) + "]".repeat(depth),
        () => '{"a":'.repeat(depth) + "1" + "}".repeat(depth),
      ])();
    }
    if (kind < 0.4) return this.string();
    if (kind < 0.6)
      return this.pick([
        "0",
        "-0",
        "1",
        "12.5",
        "1e5",
        "1E-5",
        "-1.25e+10",
        "1e400",
        "12345678901234567890.0",
        "1795389272.623",
      ]);
    if (kind < 0.8) return this.pick(["true", "false", "null"]);
    if (level > 3) return "[]";
    if (kind < 0.9) {
      const values = Array.from({ length: Math.floor(this.random() * 4) }, () =>
        this.spaced(this.value(level + 1)),
      );
      return `[${values.length === 0 ? this.space() : values.join(",")}]`;
    }
    const names = [
      "a",
      "b",
      "c",
      "__proto__",
      "constructor",
      "toString",
      "$set",
      "$ip",
      "0",
      "",
      "ä",
      "long name of a member",
      "long name of another member",
    ];
    return this.object(
      Array.from({ length: Math.floor(this.random() * 4) }, () => [this.pick(names), this.value(level + 1)]),
    );
  }

  protected spaced(text: string): string {
    return this.space() + text + this.space();
  }

  protected object(members: readonly (readonly [string, string])[]): string {
    const seen = new Set<string>();
    const written: string[] = [];
    for (const [name, value] of members) {
      if (seen.has(name) && !this.isStrange(0.3)) continue;
      seen.add(name);
      const spelled =
        this.isStrange(0.02) && name !== ""
          ? `\\u00${name.charCodeAt(0).toString(16).padStart(2, "0")}${name.slice(1)}`
          : name;
      written.push(`${this.spaced(`"${spelled}"`)}:${this.spaced(value)}`);
    }
    return `{${written.length === 0 ? this.space() : written.join(",")}${this.isStrange(0.005) ? "," : ""}}`;
  }

  protected oneOf(common: readonly string[], strange: readonly string[]): string {
    if (this.isStrange(0.1)) return this.value(2);
    return this.pick(this.isStrange() ? [...common, ...strange] : common);
  }

  protected shuffled<One>(items: readonly One[]): One[] {
    if (!this.isStrange()) return [...items];
    return items
      .map((item) => ({ item, key: this.random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
  }

  protected maybe(share: number, name: string, value: () => string): WrittenMembers {
    return this.random() < share ? [[name, value()]] : [];
  }

  protected corrupted(body: Buffer): Buffer {
    if (body.length === 0 || !this.isStrange(0.1)) return body;
    const at = Math.floor(this.random() * body.length);
    const byte = this.pick([0, 10, 32, 34, 44, 58, 91, 92, 93, 123, 125, 0x80, 0xc3, 0xed, 0xff, 48, 101]);
    switch (this.pick(["cut", "change", "insert", "remove"])) {
      case "cut":
        return body.subarray(0, at);
      case "change":
        body[at] = byte;
        return body;
      case "insert":
        return Buffer.concat([body.subarray(0, at), Buffer.from([byte]), body.subarray(at)]);
      default:
        return Buffer.concat([body.subarray(0, at), body.subarray(at + 1)]);
    }
  }
}
