import { describe, expect, test } from "bun:test";
import { normalize } from "../../src/ingestion/normalize.ts";
import type { CanonicalEvent } from "../../src/journal/entry.ts";
import { facts, generatedUuid, item, noon, normalizedText, stored, warningTypes } from "./support.ts";

const uuidForm = "01a1fb87-8ea9-71da-a728-780e77655af4";
const event = (more: Record<string, unknown> = {}) => ({ event: "e", distinct_id: "d", ...more });
const getOutcome = (value: Record<string, unknown>) => normalize(item(value), facts());

test("an event is normalized", () => {
  const outcome = getOutcome({
    event: "bought",
    distinct_id: "d",
    uuid: uuidForm.toUpperCase(),
    timestamp: "2026-11-21T11:00:00Z",
    properties: { price: 12.5 },
    type: "capture",
    library: "old",
  });
  expect(outcome).toEqual({
    kind: "event",
    event: {
      uuid: uuidForm,
      hasGeneratedUuid: false,
      name: "bought",
      distinctId: "d",
      time: noon - 3_600_000_000,
      mode: "full",
      elementsChain: null,
      properties: '{"price":12.5}',
    },
    warnings: [],
  });
});

describe("dropped, and why", () => {
  for (const [reason, values] of Object.entries({
    missing_event_name: [
      { distinct_id: "d" },
      event({ event: null }),
      event({ event: "" }),
      event({ event: " \t\n\u00a0" }),
      event({ event: {} }),
      event({ event: ["e"] }),
    ],
    missing_distinct_id: [
      { event: "e" },
      event({ distinct_id: null }),
      event({ distinct_id: "" }),
      event({ distinct_id: " \t\n" }),
      event({ distinct_id: "", properties: { distinct_id: "inside" } }),
      { event: "e", properties: { distinct_id: "" } },
      { event: "e", properties: { distinct_id: null } },
      { event: "e", properties: null },
    ],
    event_not_stored: [event({ event: "$snapshot" }), { event: "$snapshot" }],
  })) {
    values.forEach((value, index) => {
      test(`${reason} ${index + 1}`, () => {
        const outcome = getOutcome(value);
        expect(outcome.kind).toBe("dropped");
        expect(warningTypes(outcome)).toEqual([reason]);
      });
    });
  }

  test("with what is known about the event, cut to a bounded length", () => {
    const outcome = getOutcome({ event: "n".repeat(1_000), uuid: `x${"\0\ud800".repeat(5_000)}` });
    expect(outcome.kind === "dropped" && outcome.reason.details).toEqual({
      event: "n".repeat(400),
      eventUuid: `x${"\ufffd\ufffd".repeat(5_000)}`.slice(0, 400),
    });
  });
});

const group = { $group_type: "t", $group_key: "k" };

describe("kept with a warning", () => {
  for (const [warning, value] of [
    ["invalid_uuid", event({ uuid: "not a uuid" })],
    ["invalid_uuid", event({ uuid: 12 })],
    ["invalid_uuid", event({ uuid: {} })],
    ["invalid_uuid", event({ uuid: `${uuidForm}0` })],
    ["invalid_uuid", event({ uuid: uuidForm.replace("0", "g") })],
    ...["$set", "$identify", "$create_alias", "$merge_dangerously", "$groupidentify", "$group_identify"].map(
      (name) => [
        "invalid_event_when_process_person_profile_is_false",
        event({ event: name, properties: { $process_person_profile: false } }),
      ],
    ),
    ["invalid_group_set", event({ event: "$groupidentify", properties: { ...group, $group_set: "text" } })],
    ["invalid_group_set", event({ event: "$group_identify", properties: { ...group, $group_set: [1] } })],
    ["invalid_group_set", event({ event: "$groupidentify", properties: { ...group, $group_set: false } })],
    ["groupidentify_without_group", event({ event: "$groupidentify" })],
    ["groupidentify_without_group", event({ event: "$groupidentify", properties: { $group_type: "t" } })],
    ["groupidentify_without_group", event({ event: "$group_identify", properties: { $group_key: "k" } })],
    [
      "groupidentify_without_group",
      event({ event: "$groupidentify", properties: { ...group, $group_key: " " } }),
    ],
    ["create_alias_without_alias", event({ event: "$create_alias" })],
    ["create_alias_without_alias", event({ event: "$create_alias", properties: { alias: "" } })],
    ["create_alias_without_alias", event({ event: "$create_alias", properties: { alias: null } })],
    ["merge_without_alias", event({ event: "$merge_dangerously", properties: { alias: {} } })],
    ["invalid_set", event({ event: "$identify", properties: { $set: "x" } })],
    ["invalid_set", event({ event: "$identify", properties: { $set_once: [] } })],
    ["invalid_set", event({ event: "$set", properties: { $set: 7 } })],
    ["invalid_set", event({ event: "$set", $set: [1] })],
    ["invalid_set", event({ event: "$set" })],
    ["invalid_set", event({ properties: { $set: true } })],
    ["invalid_unset", event({ properties: { $unset: "name" } })],
    ["invalid_groups", event({ properties: { $groups: ["acme"] } })],
    ["invalid_groups", event({ properties: { $groups: "acme" } })],
    ["screen_without_name", event({ event: "$screen" })],
    ["screen_without_name", event({ event: "$screen", properties: { $screen_name: "" } })],
    ["timestamp_in_properties", event({ properties: { timestamp: "2026-11-21T02:00:00Z" } })],
    ["invalid_offset", event({ offset: "500" })],
    ["invalid_process_person_profile", event({ properties: { $process_person_profile: "false" } })],
    ["invalid_process_person_profile", event({ properties: { $process_person_profile: 0 } })],
    ["invalid_process_person_profile", event({ properties: { $process_person_profile: null } })],
    ["survey_without_id", event({ event: "survey sent" })],
    ["survey_without_id", event({ event: "survey shown", properties: { $survey_id: "" } })],
    ["survey_without_id", event({ event: "survey dismissed", properties: { $survey_id: null } })],
    ["survey_without_id", event({ event: "survey abandoned" })],
    ["ignored_invalid_timestamp", event({ timestamp: "soon" })],
  ] as [string, Record<string, unknown>][]) {
    test(`${warning}: ${JSON.stringify(value).slice(0, 80)}`, () => {
      const outcome = getOutcome(value);
      expect(outcome.kind).toBe("event");
      expect(warningTypes(outcome)).toEqual([warning]);
    });
  }

  test("an event with an invalid uuid gets one", () => {
    const { uuid, hasGeneratedUuid } = stored(getOutcome(event({ uuid: "u" })));
    expect({ uuid, hasGeneratedUuid }).toEqual({ uuid: generatedUuid, hasGeneratedUuid: true });
  });

  test("valid events cause no warning", () => {
    for (const value of [
      event({ event: "$performance_event" }),
      event({ event: "$groupidentify", properties: { $group_type: "t", $group_key: "k".repeat(5_000) } }),
      event({ event: "$groupidentify", properties: { $group_type: "t", $group_key: "k", $group_set: null } }),
      event({ event: "other", properties: { $group_set: 1, alias: null, $screen_name: null } }),
      event({ event: "$create_alias", properties: { alias: 7 } }),
      event({ event: "$identify" }),
      event({ event: "$identify", properties: { $set: null } }),
      event({ event: "$set", properties: { $unset: ["a"] } }),
      event({ event: "$set", $set: {} }),
      event({ event: "$screen", properties: { $screen_name: 1 } }),
      event({ properties: { $groups: null, $unset: { a: 1 } } }),
      event({ timestamp: "2026-11-21T02:00:00Z", properties: { timestamp: "2026-11-21T02:00:00Z" } }),
      event({ offset: 5, properties: { timestamp: "2026-11-21T02:00:00Z" } }),
      event({ properties: { timestamp: "soon" } }),
      event({ properties: { text: "é".repeat(2_000_000) } }),
    ]) {
      const outcome = getOutcome(value);
      expect(outcome.kind).toBe("event");
      expect(warningTypes(outcome)).toEqual([]);
    }
  });

  test("a survey with its id has none", () => {
    expect(
      warningTypes(getOutcome(event({ event: "survey sent", properties: { $survey_id: "s" } }))),
    ).toEqual([]);
  });

  test("all together, each once", () => {
    const value = event({
      event: "survey sent",
      uuid: "u",
      timestamp: {},
      properties: { $process_person_profile: 1 },
    });
    expect(warningTypes(getOutcome(value)).sort()).toEqual([
      "ignored_invalid_timestamp",
      "invalid_process_person_profile",
      "invalid_uuid",
      "survey_without_id",
    ]);
  });
});

test("a warning of a client library is only a warning", () => {
  for (const properties of [{ distinct_id: "d", $$client_ingestion_warning_message: "slow down" }, {}]) {
    const outcome = getOutcome({ event: "$$client_ingestion_warning", properties });
    expect(outcome.kind).toBe("notice");
    expect(warningTypes(outcome)).toEqual(["client_ingestion_warning"]);
    if (outcome.kind === "notice" && "distinct_id" in properties) {
      expect(outcome.warning.details).toEqual({
        event: "$$client_ingestion_warning",
        distinctId: "d",
        message: "slow down",
      });
    }
  }
});

describe("event names", () => {
  for (const [name, json, expected] of [
    ["are kept as they are", '" spaced "', " spaced "],
    ["are stringified when numbers", "12", "12"],
    ["are stringified when booleans", "false", "false"],
    ["are kept whole, however long", JSON.stringify("😀".repeat(20_000)), "😀".repeat(20_000)],
    ["lose NUL", String.raw`"a\u0000b"`, "a\ufffdb"],
    ["lose halves of pairs", String.raw`"a\ud83d"`, "a\ufffd"],
  ]) {
    test(name!, () => expect(normalizedText(`{"event":${json},"distinct_id":"d"}`).name).toBe(expected!));
  }
});

describe("distinct ids", () => {
  for (const [name, json, expected] of [
    ["a number", '"distinct_id":123', "123"],
    ["a number in its own spelling", '"distinct_id":12.0', "12.0"],
    ["a big number", '"distinct_id":123456789012345678901', "123456789012345678901"],
    ["zero", '"distinct_id":0', "0"],
    ["a boolean", '"distinct_id":false', "false"],
    ["an object", '"distinct_id":{"a": 1}', '{"a":1}'],
    ["an array", '"distinct_id":[]', "[]"],
    ["white space around it", '"distinct_id":"  x "', "  x "],
    ["20,000 pairs", `"distinct_id":"${"😀".repeat(20_000)}"`, "😀".repeat(20_000)],
    ["half a pair", String.raw`"distinct_id":"\ude00"`, "\ufffd"],
    ["NUL", String.raw`"distinct_id":"a\u0000"`, "a\ufffd"],
    ["the other name", '"$distinct_id":"x"', "x"],
    ["null gives way", '"distinct_id":null,"$distinct_id":"x"', "x"],
    ["inside", '"properties":{"distinct_id":"x"}', "x"],
    ["a number inside", '"properties":{"n":1,"distinct_id":1e3}', "1e3"],
    ["inside under the other name", '"properties":{"distinct_id":null,"$distinct_id":"x"}', "x"],
    ["null outside, one inside", '"distinct_id":null,"properties":{"distinct_id":"x"}', "x"],
    ["outside wins", '"distinct_id":"x","properties":{"distinct_id":"y"}', "x"],
    ["the last of several", '"distinct_id":1,"distinct_id":2', "2"],
    ["words that cannot be merged", '"distinct_id":"anonymous"', "anonymous"],
  ]) {
    test(name!, () => expect(normalizedText(`{"event":"e",${json}}`).distinctId).toBe(expected!));
  }
});

test("halves of surrogate pairs become U+FFFD anywhere, and the event is stored", () => {
  for (const [sent, expected] of [
    [String.raw`"properties":{"a":["\ud800"],"n":12.0}`, '{"a":["\ufffd"],"n":12.0}'],
    [String.raw`"properties":{"\udc00":1}`, '{"\ufffd":1}'],
    [String.raw`"properties":{"\udc00":1,"\udc01":2}`, '{"\ufffd":2}'],
    [String.raw`"$set":{"a":"\ud83dx"}`, '{"$set":{"a":"\ufffdx"}}'],
    [String.raw`"$set":{"a":1},"properties":{"$set":{"\ud83d":2}}`, '{"$set":{"\ufffd":2,"a":1}}'],
    [String.raw`"properties":{"ok":"\ud83d\ude00"}`, String.raw`{"ok":"\ud83d\ude00"}`],
  ]) {
    const { properties } = normalizedText(`{"event":"e","distinct_id":"d",${sent}}`);
    expect(properties).toBe(expected!);
  }
});

describe("uuids", () => {
  const getUuid = (uuid: unknown): Pick<CanonicalEvent, "uuid" | "hasGeneratedUuid"> => {
    const { uuid: text, hasGeneratedUuid } = stored(getOutcome(event({ uuid })));
    return { uuid: text, hasGeneratedUuid };
  };
  for (const [name, given] of [
    ["canonical", uuidForm],
    ["upper case", uuidForm.toUpperCase()],
    ["without hyphens", uuidForm.replaceAll("-", "")],
    ["upper case without hyphens", uuidForm.replaceAll("-", "").toUpperCase()],
  ] as const) {
    test(name, () => expect(getUuid(given)).toEqual({ uuid: uuidForm, hasGeneratedUuid: false }));
  }
  for (const version of ["1", "4", "5", "7", "8", "f"]) {
    const uuid = `01a1fb87-8ea9-${version}1da-a728-780e77655af4`;
    test(`version ${version}`, () => expect(getUuid(uuid)).toEqual({ uuid, hasGeneratedUuid: false }));
  }
  for (const absent of [undefined, null, ""]) {
    test(`created for ${JSON.stringify(absent)}`, () =>
      expect(getUuid(absent)).toEqual({ uuid: generatedUuid, hasGeneratedUuid: true }));
  }
});

describe("anonymous events", () => {
  test("cannot change a profile or belong to groups", () => {
    const properties = {
      $process_person_profile: false,
      $set: { a: 1 },
      $set_once: { b: 1 },
      $unset: ["c"],
      $group_0: "x",
      $group_4: "y",
      $group_17: "z",
      $group_x: "of the client",
      $groups: { company: "x" },
      plan: "free",
    };
    const { mode, properties: retained } = stored(
      getOutcome(event({ properties, $set: { d: 1 }, $set_once: { e: 1 } })),
    );
    expect(mode).toBe("propertyless");
    expect(JSON.parse(retained)).toEqual({
      $process_person_profile: false,
      $group_x: "of the client",
      $groups: { company: "x" },
      plan: "free",
    });
  });

  test("are anonymous only with the boolean false", () => {
    for (const value of [true, "false", 0, null, {}]) {
      const { mode, properties } = stored(
        getOutcome(event({ properties: { $process_person_profile: value, a: 1 } })),
      );
      expect(mode).toBe("full");
      expect(properties).toBe('{"a":1}');
    }
  });
});

test("nameless items have a name where the route gives one", () => {
  const engage = facts({ nameOfNameless: "$identify" });
  expect(stored(normalize(item({ $distinct_id: "d", $set: { a: 1 } }), engage))).toMatchObject({
    name: "$identify",
    distinctId: "d",
    properties: '{"$set":{"a":1}}',
  });
  expect(stored(normalize(item({ event: "own", distinct_id: "d" }), engage)).name).toBe("own");
});

test("objects that bring their own toString do no harm", () => {
  const own = { toString: 1, valueOf: 1, toJSON: 1, constructor: null };
  for (const value of [
    event({ distinct_id: own }),
    event({ event: own }),
    event({ uuid: own }),
    event({ timestamp: own, offset: own }),
    event({ event: "$groupidentify", properties: { $group_type: own, $group_key: own, $group_set: own } }),
    event({
      properties: { $elements: [own, { attr__class: own, nth_child: own, $el_text: own, attr__x: own }] },
    }),
    event({ properties: { $session_id: own, $survey_id: own, $ip: own, $set: own }, $set: own }),
    { event: "$$client_ingestion_warning", properties: { $$client_ingestion_warning_message: own } },
  ]) {
    expect(["event", "dropped", "notice"]).toContain(getOutcome(value).kind);
  }
});
