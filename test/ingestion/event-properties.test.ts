import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { editedObject } from "../../src/ingestion/event-properties.ts";
import { normalize } from "../../src/ingestion/normalize.ts";
import { facts, itemFromText, noon, normalizedText, stored } from "./support.ts";

const properties = (json: string, overrides: Parameters<typeof facts>[0] = {}, beside = "") =>
  normalizedText(`{"event":"e","distinct_id":"d","properties":${json}${beside}}`, overrides).properties;

describe("the text of the properties is stored as it was sent", () => {
  for (const json of [
    "{}",
    '{"a":12.0,"b":1e400,"c":-0,"d":123456789012345678901234567890,"e":0.10}',
    '{"unicode":"größe 東京 😀 \\u00e9 \\ud83d\\ude00","escapes":"\\"\\\\\\/\\b\\f\\n\\r\\t"}',
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1}',
    '{ "spaced" : [ 1 , 2 ] ,\t"empty" : { } }',
    '{"":0,"long name":"' + "x".repeat(100_000) + '"}',
    '{"$groups":{"company":"x"},"$unset":["a"],"token":"phc","distinct_id":"x"}',
    '{"nested":{"$elements":[1],"$process_person_profile":true,"$ip":"1"},"text":"\\"$elements\\":1"}',
  ]) {
    test(json.slice(0, 60), () => {
      expect(properties(json)).toBe(json);
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });
  }

  test("absent and null ones are empty", () => {
    expect(normalizedText('{"event":"e","distinct_id":"d"}').properties).toBe("{}");
    expect(properties("null")).toBe("{}");
  });

  // Names that have a meaning are left out: what happens to them is told below.
  const name = fc
    .string({ unit: "binary" })
    .filter((text) => !/^\$|^(?:distinct_id|capture_internal)$|\0/.test(text));
  const value = fc.jsonValue({ stringUnit: "binary" });

  test("whatever the values are", () => {
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.constantFrom(undefined, 1, "\t"), (sent, indent) => {
        const text = JSON.stringify(sent, null, indent);
        // An escaped back slash in front would make the next line's replacement wrong.
        fc.pre(!text.includes("\\\\u0000"));
        const retained = properties(text);
        expect(retained).not.toMatch(/[\r\n]/);
        if (indent === undefined && !text.includes("\\u0000")) expect(retained).toBe(text);
        // NUL is the one character that does not come back.
        expect(JSON.parse(retained)).toEqual(JSON.parse(text.replaceAll("\\u0000", "\\ufffd")));
      }),
      { numRuns: 500 },
    );
  });

  test("any form of numbers", () => {
    const number = fc.stringMatching(/^-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,4})?$/);
    fc.assert(
      fc.property(fc.array(number), (numbers) => {
        const text = `{"numbers":[${numbers.join(",")}]}`;
        expect(properties(text, { clientIp: "1.2.3.4" })).toBe(
          `{"numbers":[${numbers.join(",")}],"$ip":"1.2.3.4"}`,
        );
      }),
      { numRuns: 300 },
    );
  });

  test("and stays exact next to members that are removed", () => {
    const flags = fc.subarray(["$elements_chain", "$process_person_profile", "$elements", "$session_id"]);
    const cutOnes: Record<string, string> = {
      $elements_chain: '"a:"',
      $process_person_profile: "true",
      $elements: '[{"tag_name":"a"}]',
      $session_id: '"01A1FB87-8EA9-71DA-A728-780E77655AF4"',
    };
    fc.assert(
      fc.property(fc.dictionary(name, value), flags, fc.nat(), (sent, cut, seed) => {
        fc.pre(!JSON.stringify(sent).includes("\\u0000"));
        const members = Object.entries(sent).map(
          ([key, one]) => `${JSON.stringify(key)}:${JSON.stringify(one)}`,
        );
        const retained = `{${members.join(",")}${members.length > 0 && cut.includes("$session_id") ? "," : ""}`;
        cut.forEach((key, index) => {
          members.splice((seed + index) % (members.length + 1), 0, `${JSON.stringify(key)}:${cutOnes[key]}`);
        });
        const session = cut.includes("$session_id")
          ? '"$session_id":"01a1fb87-8ea9-71da-a728-780e77655af4"'
          : "";
        expect(properties(`{${members.join(",")}}`)).toBe(`${retained}${session}}`);
      }),
      { numRuns: 300 },
    );
  });
});

describe("members are cut", () => {
  for (const [name, json, cut, expected] of [
    ["in the middle", '{"a":1,"$x":[1,{"b":2}],"c":3}', "$x", '{"a":1,"c":3}'],
    ["at the beginning", '{"$x":1, "c":3}', "$x", '{ "c":3}'],
    ["at the end", '{"a":1 , "$x" : 1 }', "$x", '{"a":1  }'],
    ["alone", '{ "$x":1 }', "$x", "{  }"],
    ["not from a nested object", '{"a":{"$x":1},"$x":2}', "$x", '{"a":{"$x":1}}'],
    ["not from a nested object behind it", '{"$x":2,"a":{"$x":1}}', "$x", '{"a":{"$x":1}}'],
    ["not from a text", '{"a":"{\\"$x\\":1","$x":2}', "$x", '{"a":"{\\"$x\\":1"}'],
    ["not from the end of a text", '{"a":"\\"$x","$x":2}', "$x", '{"a":"\\"$x"}'],
    ["not a value", '{"a":"$x","$x":2}', "$x", '{"a":"$x"}'],
    ["written with escapes", '{"a":{"$x":1},"\\u0024x":2}', "$x", '{"a":{"$x":1}}'],
  ] as const) {
    test(name, () => {
      const left = editedObject(json, [cut], "");
      expect(JSON.parse(left)).toEqual(JSON.parse(expected));
      expect(left.replaceAll(" ", "")).toBe(expected.replaceAll(" ", ""));
      const extended = JSON.parse(editedObject(json, [cut], '"m":1,"n":2'));
      expect(extended).toEqual({ ...JSON.parse(expected), m: 1, n: 2 });
    });
  }
});

describe("text that cannot be in a line is repaired", () => {
  test("line breaks between tokens", () => {
    expect(properties('{\n  "a": [\r\n1,\n\n 2.0\t],\r"b":"x\\ny"\n}')).toBe('{"a": [1,2.0\t],"b":"x\\ny"}');
  });

  test("repeated names: the last one counts, as in JSON.parse", () => {
    expect(properties('{"a":1,"b":2,"a":3}')).toBe('{"a":3,"b":2}');
    expect(properties('{"n":{"a":1,"a":2}}')).toBe('{"n":{"a":2}}');
    expect(properties('{"a":1,"\\u0061":2}')).toBe('{"a":2}');
    expect(properties('{"__proto__":1,"__proto__":2}')).toBe('{"__proto__":2}');
    expect(properties('{"a":{"__proto__":{"x":1}},"b":1,"b":2}')).toBe('{"a":{"__proto__":{"x":1}},"b":2}');
  });

  test("numbers next to repeated names stay as sent", () => {
    const numbers = '"a":12.0,"b":1e400,"c":-0,"d":[9007199254746192393],"e":{"f":0.10}';
    expect(properties(`{${numbers},"a":9007199254746192395}`)).toBe(
      `{${numbers.replace("12.0", "9007199254746192395")}}`,
    );
    expect(properties("{}", {}, `,"$set":{${numbers},"x":1,"x":2}`)).toBe(`{"$set":{${numbers},"x":2}}`);
  });

  test("the last of repeated properties counts", () => {
    expect(properties('{"a":1}', {}, ',"properties":{"b":2}')).toBe('{"b":2}');
    expect(properties('{"a":1}', {}, ',"properti\\u0065s":{"b":2}')).toBe('{"b":2}');
  });

  test("NUL in values and names, also when removing it makes names equal", () => {
    expect(properties(String.raw`{"a\u0000":"x\u0000y","n":12.0}`)).toBe(
      String.raw`{"a\ufffd":"x\ufffdy","n":12.0}`,
    );
    expect(JSON.parse(properties(String.raw`{"a\u0000":1,"a\ufffd":2}`))).toEqual({ "a\ufffd": 2 });
  });
});

describe("the client's address", () => {
  const clientIp = "192.0.2.7";
  for (const [name, json, expected, overrides] of [
    ["is added", '{"a":1}', '{"a":1,"$ip":"192.0.2.7"}', {}],
    ["is added to nothing", "{ }", '{"$ip":"192.0.2.7"}', {}],
    ["an explicit one wins", '{"$ip":"1.1.1.1"}', '{"$ip":"1.1.1.1"}', {}],
    ["an explicit null wins", '{"$ip":null}', '{"$ip":null}', {}],
    ["internal events", '{"capture_internal":true}', '{"capture_internal":true,"$ip":"127.0.0.1"}', {}],
    [
      "internal events with their own",
      '{"capture_internal":1,"$ip":"2"}',
      '{"capture_internal":1,"$ip":"2"}',
      {},
    ],
    ["is not kept when the project says so", '{"a":1}', '{"a":1}', { anonymizeIps: true }],
    ["nor is an explicit one", '{"$ip":"1.1.1.1","a":1}', '{"a":1}', { anonymizeIps: true }],
    ["nor an internal one", '{"capture_internal":true}', '{"capture_internal":true}', { anonymizeIps: true }],
  ] as const) {
    test(name, () => expect(properties(json, { clientIp, ...overrides })).toBe(expected));
  }
});

describe("the send time", () => {
  const sentAtMicros = noon - 1;
  const added = '"$sent_at":"2026-11-21T11:59:59.999999Z"';
  test("is added", () => expect(properties("{}", { sentAtMicros })).toBe(`{${added}}`));
  test("not over the client's own", () =>
    expect(properties('{"$sent_at":"x"}', { sentAtMicros })).toBe('{"$sent_at":"x"}'));
  test("not when it is to be ignored", () =>
    expect(properties('{"$ignore_sent_at":true}', { sentAtMicros })).toBe('{"$ignore_sent_at":true}'));
});

describe("$set and $set_once next to the properties", () => {
  for (const [name, inside, beside, expected] of [
    ["move inside", '{"a":1}', ',"$set":{"x":1.0}', '{"a":1,"$set":{"x":1.0}}'],
    ["both of them", "{}", ',"$set":{"x":1},"$set_once":{"y":2}', '{"$set":{"x":1},"$set_once":{"y":2}}'],
    ["win over those inside", '{"$set":{"x":1,"y":2.0}}', ',"$set":{"x":3}', '{"$set":{"y":2.0,"x":3}}'],
    ["replace what is no object", '{"$set":"text","a":1}', ',"$set":{"x":3}', '{"a":1,"$set":{"x":3}}'],
    [
      "are ignored when they are no objects",
      '{"$set":{"x":1}}',
      ',"$set":[1],"$set_once":null',
      '{"$set":{"x":1}}',
    ],
    ["$unset is only read inside", '{"$unset":["a"]}', ',"$unset":["b"]', '{"$unset":["a"]}'],
    ["repeated names", "{}", ',"$set":{"x":1,"x":2}', '{"$set":{"x":2}}'],
    ["the last of several", "{}", ',"$set":{"x":1},"$set":{"y":2}', '{"$set":{"y":2}}'],
    [
      "names of the prototype",
      '{"$set":{"__proto__":1}}',
      ',"$set":{"toString":2}',
      '{"$set":{"__proto__":1,"toString":2}}',
    ],
    ["line breaks", "{}", ',"$set":{\n"x":\n1.0}', '{"$set":{"x":1.0}}'],
    [
      "NUL",
      '{"$set":{"a\\u0000":1}}',
      ',"$set":{"a\\ufffd":2,"b\\u0000":3}',
      '{"$set":{"a\\ufffd":2,"b\\ufffd":3}}',
    ],
  ] as const) {
    test(name, () => expect(properties(inside, {}, beside)).toBe(expected));
  }
});

describe("clicked elements get their own column", () => {
  const getChain = (json: string) => {
    const event = stored(
      normalize(itemFromText(`{"event":"e","distinct_id":"d","properties":${json}}`), facts()),
    );
    return { chain: event.elementsChain, properties: event.properties };
  };
  for (const [name, json, chain, left] of [
    ["as a chain", '{"$elements_chain":"a.b:x=\\"1\\"","k":1}', 'a.b:x="1"', '{"k":1}'],
    ["as a list", '{"k":1,"$elements":[{"tag_name":"a"}]}', 'a:nth-child="0"nth-of-type="0"', '{"k":1}'],
    ["the chain wins", '{"$elements":[{"tag_name":"a"}],"$elements_chain":"b:"}', "b:", "{}"],
    [
      "an empty chain gives way",
      '{"$elements":[{"tag_name":"a"}],"$elements_chain":""}',
      'a:nth-child="0"nth-of-type="0"',
      "{}",
    ],
    ["an empty list", '{"$elements":[]}', null, "{}"],
    [
      "what is neither stays",
      '{"$elements":"x","$elements_chain":["y"]}',
      null,
      '{"$elements":"x","$elements_chain":["y"]}',
    ],
    ["NUL", '{"$elements_chain":"a\\u0000:"}', "a\ufffd:", "{}"],
  ] as const) {
    test(name, () => expect(getChain(json)).toEqual({ chain, properties: left }));
  }
});

test("a session id that is a uuid is lower-cased, any other is not", () => {
  expect(properties('{"$session_id":"01A1FB87-8EA9-71DA-A728-780E77655AF4","a":1}')).toBe(
    '{"a":1,"$session_id":"01a1fb87-8ea9-71da-a728-780e77655af4"}',
  );
  expect(properties('{"$session_id":"Session A"}')).toBe('{"$session_id":"Session A"}');
});
