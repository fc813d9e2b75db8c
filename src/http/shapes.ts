/**
 * The words with which routes describe JSON: one schema checks a body (`body.ts`) and documents it
 * (`openapi.ts`).
 */

import { type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import type { Json, JsonObject } from "../lib/json.ts";

interface Words {
  description?: string;
  readOnly?: boolean;
  writeOnly?: boolean;
  default?: unknown;
}

/** Text; empty text is refused unless `blank`. `max` counts UTF-16 units. */
export const text = (options: Words & { max?: number; blank?: boolean; pattern?: string } = {}) => {
  const { max, blank, ...words } = options;
  return Type.String({
    ...words,
    ...(max === undefined ? {} : { maxLength: max }),
    ...(blank ? {} : { minLength: 1 }),
  });
};

/** Of what people write about something, when nothing says otherwise. */
const descriptionLengthMax = 10_000;
const tagLengthMax = 255;

/** What people write about something; may be empty. */
export const prose = (words: Words = {}) => text({ ...words, blank: true, max: descriptionLengthMax });
export const tag = () => text({ blank: true, max: tagLengthMax });

export const bool = (words: Words = {}) => Type.Boolean(words);
export const int = (words: Words & { minimum?: number; maximum?: number } = {}) => Type.Integer(words);
export const num = (words: Words & { minimum?: number; maximum?: number } = {}) => Type.Number(words);

/** One of a few texts. */
export const choice = <const Choice extends string>(choices: readonly Choice[], words: Words = {}) =>
  Type.Unsafe<Choice>({ type: "string", enum: [...choices], ...words });

/** One of a few integers. */
export const intChoice = <const Choice extends number>(choices: readonly Choice[], words: Words = {}) =>
  Type.Unsafe<Choice>({ type: "integer", enum: [...choices], ...words });

/** UTC, microseconds, `Z`. */
export const instant = (words: Words = {}) => Type.String({ format: "date-time", ...words });
export const uuid = (words: Words = {}) => Type.String({ format: "uuid", ...words });

/** Null, always: what other answers have here is not shown. */
export const nothing = (words: Words = {}) => Type.Null(words);

/** The schema or null. */
export const nullable = <Schema extends TSchema>(schema: Schema, words: Words = {}) =>
  Type.Union([schema, Type.Null()], words);

/** One of two schemas. */
export const either = <One extends TSchema, Other extends TSchema>(one: One, other: Other) =>
  Type.Union([one, other]);

/** An object whose names are not fixed. */
export const dictionary = (words: Words = {}) =>
  Type.Unsafe<JsonObject>({ type: "object", additionalProperties: true, ...words });

/** Anything that is JSON. */
export const anyJson = (words: Words = {}) => Type.Unsafe<Json>({ ...words });

export const list = <Schema extends TSchema>(
  schema: Schema,
  words: Words & { minItems?: number; maxItems?: number } = {},
) => Type.Array(schema, words);
export const object = <Properties extends TProperties>(properties: Properties, words: Words = {}) =>
  Type.Object(properties, words);
/** An object that may have other members, too. */
export const openObject = <Properties extends TProperties>(properties: Properties, words: Words = {}) =>
  Type.Object(properties, { additionalProperties: true, ...words });
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema);

/** Gives a schema a name of its own in the documentation. */
export const named = <Schema extends TSchema>(name: string, schema: Schema): Schema => ({
  ...schema,
  $id: name,
});

/** The failure envelope (contract: management-api 1.3). */
export const ApiFailure = named(
  "ApiFailure",
  object({
    type: text({ description: "Family of the failure." }),
    code: text({ description: "Stable, for programs." }),
    detail: text({ description: "For people.", blank: true }),
    attr: nullable(text(), { description: "The field at fault; nested parts are joined by `__`." }),
    extra: optional(dictionary()),
  }),
);

/** The envelope of a list (contract: management-api 1.4). */
export const pageOf = <Schema extends TSchema>(name: string, schema: Schema) =>
  named(
    name,
    object({
      count: int({ description: "How many there are in all." }),
      next: nullable(text(), { description: "Address of the next page." }),
      previous: nullable(text(), { description: "Address of the page before." }),
      results: list(schema),
    }),
  );

/** How a list answers. @param example of a result */
export const onePage = (description: string, schema: TSchema, example: unknown) => ({
  ...{ description, schema },
  example: { count: 1, next: null, previous: null, results: [example] },
});

/** The query of every list. */
export const PageQuery = object({
  limit: optional(int({ description: "Page size, 100 when absent.", default: 100 })),
  offset: optional(int({ description: "How many to skip.", default: 0 })),
});

/** A query schema with the parameters of a list added. */
export const withPage = <Properties extends TProperties>(schema: TObject<Properties>) =>
  object({ ...PageQuery.properties, ...schema.properties });
