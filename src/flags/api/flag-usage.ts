/** Calls of flags, by value and day. */

import type { Static } from "@sinclair/typebox";
import { and, eq, inArray } from "drizzle-orm";
import type { Metadata } from "../../accounts/metadata.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { flag } from "../../accounts/schema.ts";
import type { FlagCalls, FlagCallsRequest } from "../../events/insights/flag-evaluations.ts";
import { dateTime, int, list, named, nullable, object, optional, string } from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { toApiTimeOrNull } from "../../lib/time.ts";

/** Counts the calls that SDKs reported. */
export interface FlagCallCounter {
  flagCalls(request: FlagCallsRequest): Promise<FlagCalls>;
}

const idsMax = 500;
const daysMax = 90;
const daysDefault = 14;

export const UsageBody = named(
  "FlagUsage",
  object({
    days: list(string(), {
      description: "In the project's time zone, oldest first; the last day is today.",
    }),
    results: list(
      object({
        id: int(),
        key: string(),
        last_called_at: nullable(dateTime()),
        total: int(),
        values: list(
          object({
            value: string({
              blank: true,
              description: "`true`, `false` or a variant; `$other` for values after the first 25.",
            }),
            total: int(),
            counts: list(int(), { description: "One count per day." }),
          }),
        ),
      }),
    ),
  }),
);

export const UsageQuery = object({
  ids: string({ description: "Flag ids, separated by commas, at most 500." }),
  days: optional(int({ minimum: 1, maximum: daysMax, default: daysDefault })),
});

/** @throws {InvalidFieldError} */
export const readUsageQuery = (query: URLSearchParams) => ({
  ids: idsIn(query.get("ids") ?? ""),
  days: daysIn(query.get("days")),
});

/** Counts the calls of these flags, in the order of the ids; unknown ones are omitted. */
export async function countFlagCalls(
  deps: { metadata: Metadata; personCounter: FlagCallCounter },
  { project, now }: { project: Project; now: Date },
  { ids, days }: { ids: readonly number[]; days: number },
): Promise<Static<typeof UsageBody>> {
  const found = new Map(
    deps.metadata.db
      .select({ id: flag.id, key: flag.key, lastCalledAt: flag.lastCalledAt })
      .from(flag)
      .where(and(eq(flag.projectId, project.id), inArray(flag.id, [...ids])))
      .all()
      .map((item) => [item.id, item]),
  );
  const known = ids.flatMap((id) => found.get(id) ?? []);
  const calls = await deps.personCounter.flagCalls({
    projectId: project.id,
    timezone: project.timezone,
    days,
    now: now.getTime(),
    keys: known.map(({ key }) => key),
  });
  const byKey = Map.groupBy(calls.flags, ({ key }) => key);
  const results = known.map(({ id, key, lastCalledAt }) => {
    const values = (byKey.get(key) ?? [])
      .map(({ value, counts }) => ({
        value,
        total: counts.reduce((sum, count) => sum + count, 0),
        counts,
      }))
      .sort((a, b) => b.total - a.total);
    const total = values.reduce((sum, value) => sum + value.total, 0);
    return { id, key, last_called_at: toApiTimeOrNull(lastCalledAt), total, values };
  });
  return { days: calls.days, results };
}

/** @throws {InvalidFieldError} */
function idsIn(text: string): number[] {
  const ids = text.split(",").map((id) => id.trim());
  if (text.trim() === "") throw new InvalidFieldError("ids", "required", "This field is required.");
  if (ids.length > idsMax) throw new InvalidFieldError("ids", "max_length", `Send at most ${idsMax} ids.`);
  if (!ids.every((id) => /^\d{1,15}$/.test(id))) {
    throw new InvalidFieldError("ids", "invalid_input", "Send ids separated by commas.");
  }
  return [...new Set(ids.map(Number))];
}

/** @throws {InvalidFieldError} */
function daysIn(text: string | null): number {
  if (text === null || text === "") return daysDefault;
  const days = Number(text);
  if (Number.isInteger(days) && days >= 1 && days <= daysMax) return days;
  throw new InvalidFieldError("days", "invalid_input", `Must be an integer from 1 to ${daysMax}.`);
}
