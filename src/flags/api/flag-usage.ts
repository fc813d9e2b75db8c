/** Calls of flags, by value and day. */

import type { Static } from "@sinclair/typebox";
import { and, eq, inArray } from "drizzle-orm";
import { projectRoute } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { flag } from "../../accounts/schema.ts";
import type { FlagCalls, FlagCallsRequest } from "../../events/insights/flag-evaluations.ts";
import { unavailable } from "../../http/error-mapping.ts";
import type { Route } from "../../http/route.ts";
import { dateTime, int, list, named, nullable, object, optional, string } from "../../http/schemas.ts";
import { toApiTimeOrNull } from "../../lib/api-time.ts";
import { InvalidFieldError } from "../../lib/errors.ts";

/** Counts the calls that SDKs reported. */
export interface FlagCallCounter {
  flagCalls(request: FlagCallsRequest): Promise<FlagCalls>;
}

const idsMax = 500;
const daysMax = 90;
const daysDefault = 14;

const UsageBody = named(
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

/** `GET /feature_flags/usage`. */
export function flagUsageRoutes(deps: { metadata: Metadata; personCounter: FlagCallCounter }): Route[] {
  const { metadata } = deps;
  return [
    projectRoute("GET", "/feature_flags/usage", "feature_flag:read", {
      summary: "Count flag evaluations",
      description: "By value and day, from the events `$feature_flag_called` that SDKs send.",
      tag: "Feature flags",
      query: object({
        ids: string({ description: "Flag ids, separated by commas, at most 500." }),
        days: optional(int({ minimum: 1, maximum: daysMax, default: daysDefault })),
      }),
      answers: {
        200: {
          description: "One result per flag, in the order of the ids.",
          schema: UsageBody,
          example: {
            days: ["2026-03-03", "2026-03-04"],
            results: [
              {
                id: 12,
                key: "one-click-pay",
                last_called_at: "2026-03-04T16:00:01.007000Z",
                total: 42,
                values: [{ value: "true", total: 42, counts: [30, 12] }],
              },
            ],
          },
        },
        ...unavailable,
      },
      handle: async ({ project, query, now }) => {
        const ids = idsIn(query.get("ids") ?? "");
        const days = daysIn(query.get("days"));
        const found = new Map(
          metadata.db
            .select({ id: flag.id, key: flag.key, lastCalledAt: flag.lastCalledAt })
            .from(flag)
            .where(and(eq(flag.projectId, project.id), inArray(flag.id, ids)))
            .all()
            .map((one) => [one.id, one]),
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
            .sort((one, other) => other.total - one.total);
          const total = values.reduce((sum, value) => sum + value.total, 0);
          return { id, key, last_called_at: toApiTimeOrNull(lastCalledAt), total, values };
        });
        return { days: calls.days, results } satisfies Static<typeof UsageBody>;
      },
    }),
  ];
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
