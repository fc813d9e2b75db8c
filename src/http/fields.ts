/**
 * Validates a body against its schema, with the error messages of a PostHog server.
 *
 * As lenient as the original: unknown fields are dropped, numbers are accepted as strings, and strings as numbers and
 * booleans; times are returned in UTC, the default zone. Reports only the first fault. Source: contract, management-api
 * 1.2 and 1.3.
 */

import type { Static, TObject } from "@sinclair/typebox";
import { InvalidFieldError } from "../lib/errors.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { formatNumber } from "../lib/json/exact.ts";
import { isJsonObject, typeName } from "../lib/json/value.ts";
import { microsToApiTime } from "../lib/time.ts";
import { isRepresentable, parseInstant } from "../lib/timestamp.ts";

/** The supported parts of a JSON schema. */
interface Shape {
  type?: string;
  enum?: readonly unknown[];
  format?: string;
  anyOf?: readonly Shape[];
  items?: Shape;
  properties?: Record<string, Shape>;
  required?: readonly string[];
  readOnly?: boolean;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
}

const trueWords = new Set<unknown>([true, "true", "True", "TRUE", "t", "1", 1, "yes", "on"]);
const falseWords = new Set<unknown>([false, "false", "False", "FALSE", "f", "0", 0, "no", "off"]);

/**
 * Extracts the fields of `schema` from a parsed body.
 *
 * @param options.partial fields may be missing (PATCH).
 * @throws {InvalidFieldError} the first fault, in the order of the schema.
 */
export function parseFields<Schema extends TObject>(
  schema: Schema,
  body: unknown,
  options: { partial?: boolean } = {},
): Static<Schema> {
  if (!isJsonObject(body)) {
    throw new InvalidFieldError(
      null,
      "invalid_input",
      `Invalid data. Expected a dictionary, but got ${typeName(body)}.`,
    );
  }
  return parseObject(
    schema as Shape,
    body as Record<string, unknown>,
    "",
    options.partial === true,
  ) as Static<Schema>;
}

function parseObject(
  shape: Shape,
  value: Record<string, unknown>,
  prefix: string,
  isPartial: boolean,
): Record<string, unknown> {
  const parsed: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape.properties ?? {})) {
    if (field.readOnly) continue;
    const attr = prefix === "" ? name : `${prefix}__${name}`;
    if (!Object.hasOwn(value, name)) {
      if (!isPartial && shape.required?.includes(name)) {
        throw new InvalidFieldError(attr, "required", "This field is required.");
      }
      continue;
    }
    parsed[name] = parseValue(field, value[name], attr);
  }
  return parsed;
}

function parseValue(shape: Shape, value: unknown, attr: string): unknown {
  if (shape.anyOf) {
    if (value === null && shape.anyOf.some((branch) => branch.type === "null")) return null;
    const branch = shape.anyOf.find((candidate) => candidate.type !== "null");
    return branch ? parseValue(branch, value, attr) : value;
  }
  if (shape.type === undefined) return value;
  if (value === null) throw new InvalidFieldError(attr, "null", "This field may not be null.");
  switch (shape.type) {
    case "string":
      return parseString(shape, value, attr);
    case "boolean":
      if (trueWords.has(value)) return true;
      if (falseWords.has(value)) return false;
      throw new InvalidFieldError(attr, "invalid_input", "Must be a valid boolean.");
    case "integer":
    case "number":
      return parseNumber(shape, value, attr);
    case "array":
      if (!Array.isArray(value)) {
        const found = typeName(value);
        throw new InvalidFieldError(attr, "not_a_list", `Expected a list of items but got type "${found}".`);
      }
      if (shape.maxItems !== undefined && value.length > shape.maxItems) {
        const detail = `Ensure this field has no more than ${shape.maxItems} elements.`;
        throw new InvalidFieldError(attr, "max_length", detail);
      }
      return shape.items
        ? value.map((item, index) => parseValue(shape.items!, item, `${attr}__${index}`))
        : value;
    case "object":
      if (!isJsonObject(value)) {
        const found = typeName(value);
        throw new InvalidFieldError(
          attr,
          "not_a_dict",
          `Expected a dictionary of items but got type "${found}".`,
        );
      }
      return shape.properties ? parseObject(shape, value as Record<string, unknown>, attr, false) : value;
    default:
      return value;
  }
}

function parseString(shape: Shape, value: unknown, attr: string): string {
  if (shape.enum) {
    if (shape.enum.includes(value)) return value as string;
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    throw new InvalidFieldError(attr, "invalid_choice", `"${shown}" is not a valid choice.`);
  }
  const sent = formatNumber(value) ?? value;
  if (typeof sent !== "string" && typeof sent !== "number") {
    throw new InvalidFieldError(attr, "invalid_input", "Not a valid string.");
  }
  const found = String(sent).trim();
  if (found.includes("\0")) {
    throw new InvalidFieldError(attr, "null_characters_not_allowed", "Null characters are not allowed.");
  }
  if (found === "" && (shape.minLength ?? 0) > 0) {
    throw new InvalidFieldError(attr, "blank", "This field may not be blank.");
  }
  if (shape.maxLength !== undefined && found.length > shape.maxLength) {
    const detail = `Ensure this field has no more than ${shape.maxLength} characters.`;
    throw new InvalidFieldError(attr, "max_length", detail);
  }
  if (shape.format === "uuid") {
    const uuid = canonicalUuid(found);
    if (uuid === undefined) throw new InvalidFieldError(attr, "invalid_input", "Must be a valid UUID.");
    return uuid;
  }
  if (shape.format === "date-time") {
    const micros = parseInstant(found);
    if (micros !== undefined && isRepresentable(micros)) return microsToApiTime(micros);
    throw new InvalidFieldError(attr, "invalid_input", "Datetime has wrong format.");
  }
  return found;
}

function parseNumber(shape: Shape, value: unknown, attr: string): number {
  const isInteger = shape.type === "integer";
  const sent = formatNumber(value) ?? value;
  const found = typeof sent === "string" && sent.trim() !== "" ? Number(sent) : sent;
  if (typeof found !== "number" || !Number.isFinite(found) || (isInteger && !Number.isSafeInteger(found))) {
    const detail = isInteger ? "A valid integer is required." : "A valid number is required.";
    throw new InvalidFieldError(attr, "invalid_input", detail);
  }
  if (shape.enum && !shape.enum.includes(found)) {
    throw new InvalidFieldError(attr, "invalid_choice", `"${found}" is not a valid choice.`);
  }
  if (shape.minimum !== undefined && found < shape.minimum) {
    const detail = `Ensure this value is greater than or equal to ${shape.minimum}.`;
    throw new InvalidFieldError(attr, "min_value", detail);
  }
  if (shape.maximum !== undefined && found > shape.maximum) {
    const detail = `Ensure this value is less than or equal to ${shape.maximum}.`;
    throw new InvalidFieldError(attr, "max_value", detail);
  }
  return found;
}
