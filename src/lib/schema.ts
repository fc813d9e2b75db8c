/** Building blocks for schemas of what Flagkeep prints and answers. */

import { type TProperties, type TSchema, Type } from "@sinclair/typebox";

/** An object with these members and no others. */
export const exactly = <Properties extends TProperties>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false });

export const orNull = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** A moment in UTC, such as 2026-11-21T20:00:00.000Z. */
export const Instant = Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d+Z$" });

/** How many, or how many bytes. */
export const Count = Type.Integer({ minimum: 0 });
