/** Schema builders for JSON in routes: one schema validates a body (`body.ts`) and documents it (`openapi.ts`). */

import { type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import type { Json, JsonObject } from "../lib/json/value.ts";

interface SchemaOptions {
  description?: string;
  readOnly?: boolean;
  writeOnly?: boolean;
  default?: unknown;
}

/** A string; empty only with `blank`. `max` counts UTF-16 units. */
export const string = (options: SchemaOptions & { max?: number; blank?: boolean; pattern?: string } = {}) => {
  const { max, blank, ...schemaOptions } = options;
  return Type.String({
    ...schemaOptions,
    ...(max === undefined ? {} : { maxLength: max }),
    ...(blank ? {} : { minLength: 1 }),
  });
};

/** Default for free text. */
const descriptionLengthMax = 10_000;
const tagLengthMax = 255;

/** Free text; may be empty. */
export const longString = (schemaOptions: SchemaOptions = {}) =>
  string({ ...schemaOptions, blank: true, max: descriptionLengthMax });
export const tag = () => string({ blank: true, max: tagLengthMax });

export const bool = (schemaOptions: SchemaOptions = {}) => Type.Boolean(schemaOptions);
export const int = (schemaOptions: SchemaOptions & { minimum?: number; maximum?: number } = {}) =>
  Type.Integer(schemaOptions);
export const num = (schemaOptions: SchemaOptions & { minimum?: number; maximum?: number } = {}) =>
  Type.Number(schemaOptions);

/** One of several strings. */
export const enumeration = <const Choice extends string>(
  choices: readonly Choice[],
  schemaOptions: SchemaOptions = {},
) => Type.Unsafe<Choice>({ type: "string", enum: [...choices], ...schemaOptions });

/** One of several integers. */
export const intEnum = <const Choice extends number>(
  choices: readonly Choice[],
  schemaOptions: SchemaOptions = {},
) => Type.Unsafe<Choice>({ type: "integer", enum: [...choices], ...schemaOptions });

/** UTC, microseconds, `Z`. */
export const dateTime = (schemaOptions: SchemaOptions = {}) =>
  Type.String({ format: "date-time", ...schemaOptions });
export const uuid = (schemaOptions: SchemaOptions = {}) => Type.String({ format: "uuid", ...schemaOptions });

/** Always null: a value that other responses have here is hidden. */
export const nothing = (schemaOptions: SchemaOptions = {}) => Type.Null(schemaOptions);

export const nullable = <Schema extends TSchema>(schema: Schema, schemaOptions: SchemaOptions = {}) =>
  Type.Union([schema, Type.Null()], schemaOptions);

export const union = <One extends TSchema, Other extends TSchema>(a: One, b: Other) => Type.Union([a, b]);

/** An object with arbitrary member names. */
export const record = (schemaOptions: SchemaOptions = {}) =>
  Type.Unsafe<JsonObject>({ type: "object", additionalProperties: true, ...schemaOptions });

/** Any JSON value. */
export const anyJson = (schemaOptions: SchemaOptions = {}) => Type.Unsafe<Json>({ ...schemaOptions });

export const list = <Schema extends TSchema>(
  schema: Schema,
  schemaOptions: SchemaOptions & { minItems?: number; maxItems?: number } = {},
) => Type.Array(schema, schemaOptions);
export const object = <Properties extends TProperties>(
  properties: Properties,
  schemaOptions: SchemaOptions = {},
) => Type.Object(properties, schemaOptions);
/** An object that may have further members. */
export const openObject = <Properties extends TProperties>(
  properties: Properties,
  schemaOptions: SchemaOptions = {},
) => Type.Object(properties, { additionalProperties: true, ...schemaOptions });
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema);

/** Names a schema in the documentation. */
export const named = <Schema extends TSchema>(name: string, schema: Schema): Schema => ({
  ...schema,
  $id: name,
});

/** The error envelope (contract: management-api 1.3). */
export const ApiFailure = named(
  "ApiFailure",
  object({
    type: string({ description: "Category of the error." }),
    code: string({ description: "Stable error code for programs." }),
    detail: string({ description: "For people.", blank: true }),
    attr: nullable(string(), { description: "The invalid field; nested names are joined by `__`." }),
    extra: optional(record()),
  }),
);

/** The envelope of a list (contract: management-api 1.4). */
export const pageOf = <Schema extends TSchema>(name: string, schema: Schema) =>
  named(
    name,
    object({
      count: int({ description: "Total number of records." }),
      next: nullable(string(), { description: "URL of the next page." }),
      previous: nullable(string(), { description: "URL of the previous page." }),
      results: list(schema),
    }),
  );

/** The documented response of a list. @param example of a result */
export const pageExample = (description: string, schema: TSchema, example: unknown) => ({
  description,
  schema,
  example: { count: 1, next: null, previous: null, results: [example] },
});

/** The query of every list. */
const PageQuery = object({
  limit: optional(int({ description: "Page size; default: 100.", default: 100 })),
  offset: optional(int({ description: "Number of records to skip.", default: 0 })),
});

/** A query schema with the parameters of a list added. */
export const withPage = <Properties extends TProperties>(schema: TObject<Properties>) =>
  object({ ...PageQuery.properties, ...schema.properties });
