/** Probes for process supervisors and load balancers: liveness, and readiness per role. */

import { InvalidFieldError } from "../lib/errors.ts";
import { publicRoute, type Route } from "./route.ts";
import { RouteResponse } from "./route-response.ts";
import { bool, enumeration, list, nullable, object, optional, string } from "./schemas.ts";

/** Server roles: capture of events, evaluation and management of flags, queries of events. */
export const roleNames = ["capture", "flags", "query"] as const;
export type RoleName = (typeof roleNames)[number];

export interface RoleReadiness {
  role: RoleName;
  ready: boolean;
  /** Why it is not ready. */
  reason: string | null;
}

const Alive = object({ status: string() });
const Readiness = object({
  status: enumeration(["ready", "not_ready"]),
  roles: list(object({ role: enumeration(roleNames), ready: bool(), reason: nullable(string()) })),
  warnings: optional(
    list(string(), { description: "Problems that need an operator; absent if there are none." }),
  ),
});
const ready = { status: "ready", roles: roleNames.map((role) => ({ role, ready: true, reason: null })) };
const rebuilding = "Rebuilding the event store: 1000 of 5000 entries.";

/** @param roles all of them. @param warnings of the server, included for every role. */
export function probeRoutes(
  roles: () => readonly RoleReadiness[],
  warnings: () => readonly string[],
): Route[] {
  return [
    publicRoute("GET", "/_liveness", {
      summary: "Liveness probe",
      tag: "Probes",
      answers: { 200: { description: "Alive.", schema: Alive, example: { status: "alive" } } },
      handle: () => ({ status: "alive" }),
    }),
    publicRoute("GET", "/_readiness", {
      summary: "Readiness probe",
      description:
        "Ready if all roles can be served, or the one in `role`: flags and capture work while the event " +
        "store opens or rebuilds, flags and queries while the disk is full.",
      tag: "Probes",
      query: object({ role: optional(enumeration(roleNames, { description: "Check only this role." })) }),
      answers: {
        200: { description: "Ready.", schema: Readiness, example: ready },
        503: {
          description: "Roles that cannot be served, with the reason.",
          schema: Readiness,
          example: { status: "not_ready", roles: [{ role: "query", ready: false, reason: rebuilding }] },
        },
      },
      handle: ({ query }) => {
        const requested = query.get("role");
        if (requested !== null && !roleNames.some((name) => name === requested)) {
          throw new InvalidFieldError("role", "invalid_choice", `"${requested}" is not a valid choice.`);
        }
        const counted = roles().filter(({ role }) => requested === null || role === requested);
        const found = warnings();
        const body = { roles: counted, ...(found.length > 0 && { warnings: found }) };
        return counted.every(({ ready }) => ready)
          ? { status: "ready", ...body }
          : new RouteResponse(503, { status: "not_ready", ...body });
      },
    }),
  ];
}
