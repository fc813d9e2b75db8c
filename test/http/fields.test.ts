import { describe, expect, test } from "bun:test";
import { parseFields } from "../../src/http/fields.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  nullable,
  object,
  optional,
  record,
  string,
  uuid,
} from "../../src/http/schemas.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";

const Schema = object({
  name: string({ max: 5 }),
  note: optional(string({ blank: true })),
  count: optional(int({ minimum: 1, maximum: 9 })),
  isOn: optional(bool()),
  kind: optional(enumeration(["a", "b"])),
  id: optional(uuid()),
  labels: optional(list(string())),
  free: optional(record()),
  maybe: optional(nullable(bool())),
  inner: optional(object({ size: int() })),
  at: optional(dateTime()),
});

function getError(body: unknown, partial = false) {
  try {
    parseFields(Schema, body, { partial });
  } catch (error) {
    if (error instanceof InvalidFieldError) return [error.field, error.code, error.message];
    throw error;
  }
  return undefined;
}

describe("what is rejected", () => {
  for (const [body, field, code, detail] of [
    [{}, "name", "required", "This field is required."],
    [{ name: null }, "name", "null", "This field may not be null."],
    [{ name: "  " }, "name", "blank", "This field may not be blank."],
    [{ name: "abcdef" }, "name", "max_length", "Ensure this field has no more than 5 characters."],
    [{ name: true }, "name", "invalid_input", "Not a valid string."],
    [{ name: [] }, "name", "invalid_input", "Not a valid string."],
    [{ name: "a\0" }, "name", "null_characters_not_allowed", "Null characters are not allowed."],
    [{ name: "a", count: "x" }, "count", "invalid_input", "A valid integer is required."],
    [{ name: "a", count: 1.5 }, "count", "invalid_input", "A valid integer is required."],
    [{ name: "a", count: 0 }, "count", "min_value", "Ensure this value is greater than or equal to 1."],
    [{ name: "a", count: 10 }, "count", "max_value", "Ensure this value is less than or equal to 9."],
    [{ name: "a", isOn: 2 }, "isOn", "invalid_input", "Must be a valid boolean."],
    [{ name: "a", isOn: null }, "isOn", "null", "This field may not be null."],
    [{ name: "a", kind: "c" }, "kind", "invalid_choice", '"c" is not a valid choice.'],
    [{ name: "a", id: "x" }, "id", "invalid_input", "Must be a valid UUID."],
    [{ name: "a", labels: "x" }, "labels", "not_a_list", 'Expected a list of items but got type "str".'],
    [{ name: "a", labels: ["x", ""] }, "labels__1", "blank", "This field may not be blank."],
    [{ name: "a", free: [] }, "free", "not_a_dict", 'Expected a dictionary of items but got type "list".'],
    [{ name: "a", free: 1 }, "free", "not_a_dict", 'Expected a dictionary of items but got type "int".'],
    [{ name: "a", free: 1.5 }, "free", "not_a_dict", 'Expected a dictionary of items but got type "float".'],
    [{ name: "a", free: true }, "free", "not_a_dict", 'Expected a dictionary of items but got type "bool".'],
    ...["tomorrow", "2026-02-30T00:00:00Z", "2026-03-05T25:00", "+012026-01-01T00:00:00Z", "1e300"].map(
      (at) => [{ name: "a", at }, "at", "invalid_input", "Datetime has wrong format."] as const,
    ),
    [{ name: "a", inner: {} }, "inner__size", "required", "This field is required."],
    ["text", null, "invalid_input", "Invalid data. Expected a dictionary, but got str."],
    [null, null, "invalid_input", "Invalid data. Expected a dictionary, but got NoneType."],
  ] as const) {
    test(`${JSON.stringify(body)}`, () => expect(getError(body)).toEqual([field, code, detail]));
  }
});

describe("accepted values", () => {
  for (const [body, parsed] of [
    [{ name: " a ", other: 1 }, { name: "a" }],
    [{ name: 7 }, { name: "7" }],
    [
      { name: "a", count: "3" },
      { name: "a", count: 3 },
    ],
    [
      { name: "a", isOn: "false", maybe: null },
      { name: "a", isOn: false, maybe: null },
    ],
    [
      { name: "a", note: "" },
      { name: "a", note: "" },
    ],
    [
      { name: "a", free: { x: [1] } },
      { name: "a", free: { x: [1] } },
    ],
  ] as const) {
    test(`${JSON.stringify(body)}`, () => expect(parseFields(Schema, body)).toEqual(parsed as never));
  }
  test("times, UTC without a zone, in any time zone of the server", () => {
    const zone = process.env.TZ;
    process.env.TZ = "America/New_York";
    try {
      for (const [at, read] of [
        ["2026-03-05T09:00:00", "2026-03-05T09:00:00.000000Z"],
        ["2026-03-05 09:00", "2026-03-05T09:00:00.000000Z"],
        ["2026-03-05", "2026-03-05T00:00:00.000000Z"],
        ["2026-03-05T09:00:00.123456Z", "2026-03-05T09:00:00.123456Z"],
        ["2026-03-05T09:00:00-05:00", "2026-03-05T14:00:00.000000Z"],
      ] as const) {
        expect(parseFields(Schema, { name: "a", at })).toEqual({ name: "a", at: read } as never);
      }
    } finally {
      if (zone === undefined) delete process.env.TZ;
      else process.env.TZ = zone;
    }
  });
  test("nothing, when only some fields are written", () => {
    expect(parseFields(Schema, {}, { partial: true })).toEqual({} as never);
    expect(getError({ name: "" }, true)?.[1]).toBe("blank");
  });
});
