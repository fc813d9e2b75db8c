/** Bodies of capture requests that nobody would send, from a seed. */

import { randomFrom } from "../bench/people-like.ts";
import { anyToken } from "./support.ts";

/** Writes bodies that are nearly right, or strange in every way that is known to matter. */
export class Wild {
  private readonly random: () => number;
  constructor(
    seed: number,
    /** How much of it is strange, from 0 to 1. */
    private readonly strangeness: number,
  ) {
    this.random = randomFrom(seed);
  }

  private pick<One>(items: readonly One[]): One {
    return items[Math.floor(this.random() * items.length)]!;
  }

  private isStrange(share = 1): boolean {
    return this.random() < this.strangeness * share;
  }

  private space(): string {
    if (this.isStrange(0.005)) return this.pick(["\f", "\u00a0", "\0", "/**/"]);
    return this.isStrange() ? this.pick(["", " ", " ", "  ", "\t", this.isStrange() ? "\n" : " "]) : "";
  }

  private string(): string {
    const pieces = [
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
    const odd = [
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
      text += this.pick(this.isStrange(0.1) ? odd : this.isStrange() ? escapes : pieces);
    }
    return `"${text}"`;
  }

  private value(level: number): string {
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

  private spaced(text: string): string {
    return this.space() + text + this.space();
  }

  private object(members: readonly (readonly [string, string])[]): string {
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

  private oneOf(usual: readonly string[], strange: readonly string[]): string {
    if (this.isStrange(0.1)) return this.value(2);
    return this.pick(this.isStrange() ? [...usual, ...strange] : usual);
  }

  private shuffled<One>(items: readonly One[]): One[] {
    if (!this.isStrange()) return [...items];
    return items
      .map((item) => ({ item, key: this.random() }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
  }

  private maybe(share: number, name: string, value: () => string): (readonly [string, string])[] {
    return this.random() < share ? [[name, value()]] : [];
  }

  private properties(): string {
    const own = [
      "price",
      "city",
      "$browser",
      "$current_url",
      "plan",
      "$groups",
      "$group_name",
      "$setter",
      "$i",
      "__proto__",
      "a name that is longer than sixteen bytes",
      "a name that is longer than 16 bytes",
    ];
    return this.object(
      this.shuffled([
        ...Array.from(
          { length: Math.floor(this.random() * 5) },
          () => [this.pick(own), this.value(1)] as const,
        ),
        ...this.maybe(0.3, "distinct_id", () =>
          this.oneOf(['"inside"'], ['""', '" "', "17.0", "null", '"\\u0061"']),
        ),
        ...this.maybe(0.03, "$distinct_id", () => this.value(2)),
        ...this.maybe(0.3, "token", () => this.oneOf([`"${anyToken}"`], ['""', '"other"', "1", "null"])),
        ...this.maybe(0.1, "$ip", () => this.oneOf(['"198.51.100.1"'], ["null"])),
        ...this.maybe(0.1, "$sent_at", () => this.value(2)),
        ...this.maybe(0.02, "capture_internal", () => this.value(2)),
        ...this.maybe(0.02, "$ignore_sent_at", () => this.oneOf(["true"], ["false", "1"])),
        ...this.maybe(0.3, "$session_id", () =>
          this.oneOf(
            ['"01a1fb87-8ea9-71da-a728-780e77655af4"'],
            ['"01A1FB87-8EA9-71DA-A728-780E77655AF4"', '"X"', '"01a1fb878ea971daa728780e77655af4"', "1"],
          ),
        ),
        ...this.maybe(0.2, "$elements_chain", () =>
          this.oneOf(
            ['"a.button:text=\\"Go\\""'],
            ['""', '"\\u00e9"', '"\\/"', "null", '"\\ud800"', '"\\b\\f\\n\\r\\t\\\\"'],
          ),
        ),
        ...this.maybe(0.04, "$elements", () =>
          this.oneOf(['[{"tag_name":"a","$el_text":"Go"}]'], ["[]", "null", '"x"', "[1]"]),
        ),
        ...this.maybe(0.3, "$process_person_profile", () =>
          this.oneOf(["true", "false"], ["null", '"false"', "0"]),
        ),
        ...this.maybe(0.2, "$set", () => this.oneOf(['{"a":1}'], ['{"a":1,"a":2}', "null", "[]"])),
        ...this.maybe(0.1, "$set_once", () => this.oneOf(['{"b":"x"}'], ["{}", "1"])),
        ...this.maybe(0.1, "$unset", () => this.oneOf(['["a"]'], ["null"])),
        ...this.maybe(0.03, "$group_0", () => this.value(2)),
        ...this.maybe(0.03, "$group_set", () => this.value(2)),
        ...this.maybe(0.03, "$survey_id", () => this.value(2)),
      ]),
    );
  }

  private event(): string {
    const names = ['"e"', '"$pageview"', '"$identify"', '"größe"'];
    const strangeNames = [
      '"$snapshot"',
      '"$groupidentify"',
      '"survey sent"',
      '"survival"',
      '"$$client_ingestion_warning"',
      '"$create_alias"',
      '""',
      '" "',
      '"\\u0065"',
      "1",
      "true",
      "null",
      '"\u00a0"',
      '"\\n"',
      '"$merge_dangerously"',
      '"$group_identify"',
    ];
    const times = [
      '"2026-11-21T11:00:00.000Z"',
      '"2026-11-21T11:00:00.123456Z"',
      '"2026-11-20T10:00:00+02:00"',
      '"2026-11-22T10:59:59.999Z"',
    ];
    const strangeTimes = [
      '"2026-11-22T11:00:00.001Z"',
      '"2026-02-29T00:00:00.000Z"',
      '"2024-02-29T23:59:59.999Z"',
      '"2026-13-01T00:00:00.000Z"',
      '"2026-11-31T00:00:00.000Z"',
      '"1969-12-31T23:59:59.999Z"',
      '"1970-01-01T00:00:00.000Z"',
      '"9999-12-31T23:59:59.999Z"',
      '"2300-01-01T00:00:00.000Z"',
      '"2026-11-21T24:00:00.000Z"',
      '"2026-11-21T23:59:60.000Z"',
      '"2026-11-21t11:00:00.000z"',
      '"2026-11-21T11:00:00,000Z"',
      '"2026/11/21 11:00:00.000Z"',
      '"yesterday"',
      '"2026-11-21T13:00:01.000Z"',
      '"20-1-11-21T11:00:00.000Z"',
      '"0000-11-21T11:00:00.000Z"',
      '""',
      "1795389272",
      "1795389272623",
      "null",
      "true",
      '"1795389272.623"',
      '"2026-11-21T11:00:0x.000Z"',
    ];
    return this.object(
      this.shuffled([
        ...this.maybe(this.isStrange() ? 0.9 : 1, "event", () => this.oneOf(names, strangeNames)),
        ...this.maybe(0.8, "distinct_id", () =>
          this.oneOf(['"d"', '"ü"'], ['""', '"\\t"', "12.0", "null", '{"a":1}', '"\\u0000"', '"\u3000"']),
        ),
        ...this.maybe(0.02, "$distinct_id", () => this.value(2)),
        ...this.maybe(0.7, "uuid", () =>
          this.oneOf(
            ['"01a1fb87-8ea9-71da-a728-780e77655af4"'],
            [
              '"01A1FB87-8EA9-71DA-A728-780E77655AF4"',
              '"01a1fb878ea971daa728780e77655af4"',
              '"01a1fb87-8ea9-71da-a728-780e77655afg"',
              '"01a1fb87x8ea9-71da-a728-780e77655af4"',
              '""',
              "null",
              "7",
            ],
          ),
        ),
        ...this.maybe(0.7, "timestamp", () => this.oneOf(times, strangeTimes)),
        ...this.maybe(0.2, "offset", () =>
          this.oneOf(
            ["0", "1500", "-1500"],
            [
              "-0",
              "-90000000",
              "1.5",
              "1e3",
              "99999999999",
              "999999999999",
              "1e999",
              '"5"',
              "null",
              "-82800000",
              "-82800001",
            ],
          ),
        ),
        ...this.maybe(0.95, "properties", () => (this.isStrange(0.05) ? this.value(2) : this.properties())),
        ...this.maybe(0.02, "$set", () => this.oneOf(['{"a":1}'], ["null"])),
        ...this.maybe(0.02, "$set_once", () => this.oneOf(['{"a":1}'], ["null"])),
        ...this.maybe(0.03, "token", () =>
          this.oneOf([`"${anyToken}"`], ['""', '"other"', "5", '"\\u0061"']),
        ),
        ...this.maybe(0.03, "api_key", () => this.oneOf([`"${anyToken}"`], ["null"])),
        ...this.maybe(0.01, "$token", () => this.oneOf([`"${anyToken}"`], ["null"])),
        ...this.maybe(
          0.02,
          this.pick(["batch", "sent_at", "historical_migration", "$unset", "other", "type"]),
          () => this.value(2),
        ),
        ...this.maybe(
          this.isStrange(0.1) ? 1 : 0,
          this.pick(["event", "properties", "distinct_id", "token"]),
          () => this.value(2),
        ),
      ]),
    );
  }

  body(): Buffer {
    const count = this.isStrange(0.02) ? 0 : 1 + Math.floor(this.random() * 4);
    const events = Array.from({ length: count }, () =>
      this.spaced(this.isStrange(0.02) ? this.value(2) : this.event()),
    );
    const list = `[${events.join(",")}]`;
    const kind = this.random();
    const around = () =>
      this.object(
        this.shuffled([
          ...this.maybe(0.9, "api_key", () =>
            this.oneOf([`"${anyToken}"`], ['""', '"other"', "null", '" x "', '"phx_1"']),
          ),
          ...this.maybe(0.05, "token", () => this.oneOf([`"${anyToken}"`], ['""', "null"])),
          ...this.maybe(0.02, "$token", () => `"${anyToken}"`),
          ...this.maybe(0.6, "sent_at", () =>
            this.oneOf(
              ['"2026-11-21T11:58:00.000Z"'],
              ['"x"', "null", "1795389272623", '"9999-01-01T00:00:00Z"', '"0001-01-01T00:00:00Z"'],
            ),
          ),
          ...this.maybe(0.2, "historical_migration", () =>
            this.oneOf(["true", "false"], ["null", '"true"', "1"]),
          ),
          ...this.maybe(0.05, this.pick(["event", "distinct_id", "properties", "other", "uuid"]), () =>
            this.value(2),
          ),
          ["batch", this.isStrange(0.02) ? this.value(2) : list],
          ...this.maybe(this.isStrange(0.1) ? 1 : 0, "batch", () => list),
          ...this.maybe(0.05, this.pick(["event", "timestamp", "properties", "$set", "offset"]), () =>
            this.value(2),
          ),
        ]),
      );
    const text = this.spaced(kind < 0.6 ? around() : kind < 0.8 ? list : (events[0] ?? ""));
    return this.damaged(Buffer.from(`${this.isStrange(0.02) ? "\ufeff" : ""}${text}`));
  }

  private damaged(body: Buffer): Buffer {
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
