/**
 * The arguments of tools as zod schemas, which the library of MCP wants, from the TypeBox schemas of operations.
 *
 * Not `z.fromJSONSchema`: it makes a union of a nullable object, whose error hides which member is unknown.
 */

import { type TProperties, Type } from "@sinclair/typebox";
import { z } from "zod";

/** The parts of a JSON schema that inputs of operations use. */
interface Shape {
  type?: string;
  enum?: readonly (string | number)[];
  format?: string;
  anyOf?: readonly Shape[];
  items?: Shape;
  properties?: Record<string, Shape>;
  patternProperties?: Record<string, Shape>;
  required?: readonly string[];
  additionalProperties?: unknown;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  description?: string;
  default?: unknown;
}

/** Arguments of a tool, by name. */
export function toArguments(properties: TProperties): z.ZodRawShape {
  return toMembers(Type.Object(properties) as Shape);
}

function toMembers({ properties = {}, required = [] }: Shape): z.ZodRawShape {
  return Object.fromEntries(
    Object.entries(properties).map(([name, shape]) => {
      const member = toZod(shape);
      return [name, required.includes(name) ? member : describe(member.optional(), shape)];
    }),
  );
}

function toZod(shape: Shape): z.ZodType {
  return describe(shape.anyOf === undefined ? toPlain(shape) : toUnion(shape.anyOf), shape);
}

/** Keeps the default as documentation: the API applies it. */
function describe(schema: z.ZodType, { description, default: byApi }: Shape): z.ZodType {
  return schema.meta({
    ...(description === undefined ? {} : { description }),
    ...(byApi === undefined ? {} : { default: byApi }),
  });
}

function toUnion(branches: readonly Shape[]): z.ZodType {
  const others = branches.filter(({ type }) => type !== "null").map(toZod);
  const schema = others.length === 1 ? others[0]! : z.union(others);
  return others.length === branches.length ? schema : schema.nullable();
}

function toPlain(shape: Shape): z.ZodType {
  if (shape.enum !== undefined) return z.literal([...shape.enum]);
  switch (shape.type) {
    case "string":
      return toText(shape);
    case "integer":
      return withinRange(z.int(), shape);
    case "number":
      return withinRange(z.number(), shape);
    case "boolean":
      return z.boolean();
    case "array":
      return toList(shape);
    case "object":
      return toObject(shape);
    default:
      return z.unknown();
  }
}

function toText({ minLength, maxLength, pattern }: Shape): z.ZodType {
  let schema = z.string();
  if (minLength !== undefined) schema = schema.min(minLength);
  if (maxLength !== undefined) schema = schema.max(maxLength);
  return pattern === undefined ? schema : schema.regex(new RegExp(pattern));
}

function withinRange(schema: z.ZodNumber, { minimum, maximum }: Shape): z.ZodType {
  let limited = schema;
  if (minimum !== undefined) limited = limited.min(minimum);
  if (maximum !== undefined) limited = limited.max(maximum);
  return limited;
}

function toList({ items, minItems, maxItems }: Shape): z.ZodType {
  let schema = z.array(items === undefined ? z.unknown() : toZod(items));
  if (minItems !== undefined) schema = schema.min(minItems);
  if (maxItems !== undefined) schema = schema.max(maxItems);
  return schema;
}

function toObject(shape: Shape): z.ZodType {
  const [values] = Object.values(shape.patternProperties ?? {});
  if (values !== undefined) return z.record(z.string(), toZod(values));
  if (shape.properties === undefined) return z.record(z.string(), z.unknown());
  const members = toMembers(shape);
  return shape.additionalProperties === false ? z.strictObject(members) : z.looseObject(members);
}
