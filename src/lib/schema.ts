/** Building blocks for schemas of output and responses. */

import { type TProperties, type TSchema, Type } from "@sinclair/typebox";

/** An object with these members and no others. */
export const strictObject = <Properties extends TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A UTC timestamp, for example 2026-11-21T20:00:00.000Z. */
export const DateTime = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d+Z$" });

export const NonNegativeInt = Type.Integer({ minimum: 0 });
