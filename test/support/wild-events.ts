/** Events that no one would send, as JSON, from a seed. */

import { anyToken } from "../ingestion/support.ts";
import { WildJson, type WrittenMembers } from "./wild-json.ts";

export class WildEvents extends WildJson {
  protected properties(): string {
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
        ...this.maybe(0.2, "alias", () => this.oneOf(['"other"'], ['""', "null", "7", '" "'])),
        ...this.maybe(0.2, "$screen_name", () => this.oneOf(['"Home"'], ['""', "null", "{}"])),
        ...this.maybe(0.2, "timestamp", () =>
          this.oneOf(['"2026-11-21T11:00:00.000Z"'], ['"soon"', "1795389272", "null"]),
        ),
      ]),
    );
  }

  protected event(): string {
    return this.object(this.shuffled(this.eventMembers()));
  }

  protected eventMembers(): WrittenMembers {
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
      '"$set"',
      '"$screen"',
      '"$group_identify"',
    ];
    const times = [
      '"2026-11-21T11:00:00.000Z"',
      '"2026-11-21T11:00:00.123456Z"',
      '"2026-11-20T10:00:00+02:00"',
      '"2026-11-20 10:00:00"',
      '"2026-10-31T23:59:59.9Z"',
      '"2026-11-20 10:00:00.123456789-09:30"',
      '"2026-11-22T10:59:59.999Z"',
    ];
    const strangeTimes = [
      '"2026-11-21 11:00:00 UTC"',
      '"2026-11-21 11:00:00.5 +0000 UTC"',
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
      '"2026-11-21T11:00:00.Z"',
      '"2026-11-21T11:00:00.1234567"',
      '"2026-11-21T11:00:00+24:00"',
      '"2026-11-21T11:00:00+0100"',
      '"2026-11-21T11:00:00+01"',
      '"2026-11-21T11:00:00 +01:00"',
      '"2026-11-21T11:00:00ZZ"',
      '"2026-11-21T11:00:00+01:00Z"',
      '"2026-04-31T11:00:00Z"',
      '"2100-02-29T11:00:00Z"',
      '"2000-02-29T11:00:00Z"',
      '"1970-01-01T00:00:00+00:01"',
      '"2026-11-21T11:00"',
      '"2026/11/21 11:00:00.000Z"',
      '"yesterday"',
      '"2026"',
      '"2026325"',
      '"20261121"',
      '"1234567"',
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
    return [
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
      ...this.maybe(0.03, "token", () => this.oneOf([`"${anyToken}"`], ['""', '"other"', "5", '"\\u0061"'])),
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
    ];
  }
}
