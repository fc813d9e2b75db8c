/** Probes for process supervisors and load balancers: whether the process lives, and what each of its roles can do. */

import { InvalidField } from "../lib/errors.ts";
import { Reply } from "./reply.ts";
import { publicRoute, type Route } from "./route.ts";
import { bool, choice, list, nullable, object, optional, text } from "./shapes.ts";

/** What the server does: takes events, answers flags and manages them, answers questions about events. */
export const roleNames = ["capture", "flags", "query"] as const;
export type RoleName = (typeof roleNames)[number];

export interface RoleReadiness {
  role: RoleName;
  ready: boolean;
  /** Why it is not ready. */
  reason: string | null;
}

const Alive = object({ status: text() });
const Readiness = object({
  status: choice(["ready", "not_ready"]),
  roles: list(object({ role: choice(roleNames), ready: bool(), reason: nullable(text()) })),
});
const ready = { status: "ready", roles: roleNames.map((role) => ({ role, ready: true, reason: null })) };
const rebuilding = "The event store is made again: 1000 of 5000 entries.";

/** @param roles all of them. */
export function probeRoutes(roles: () => readonly RoleReadiness[]): Route[] {
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
        "Ready when everything can be served, or, with `role`, when that can: flags and captures go on while the event " +
        "store is opened or made again, flags and queries while the disk is full.",
      tag: "Probes",
      query: object({ role: optional(choice(roleNames, { description: "Only this role counts." })) }),
      answers: {
        200: { description: "Ready.", schema: Readiness, example: ready },
        503: {
          description: "Something cannot be served, and why.",
          schema: Readiness,
          example: { status: "not_ready", roles: [{ role: "query", ready: false, reason: rebuilding }] },
        },
      },
      handle: ({ query }) => {
        const asked = query.get("role");
        if (asked !== null && !roleNames.some((name) => name === asked)) {
          throw new InvalidField("role", "invalid_choice", `"${asked}" is not a valid choice.`);
        }
        const counted = roles().filter(({ role }) => asked === null || role === asked);
        return counted.every(({ ready }) => ready)
          ? { status: "ready", roles: counted }
          : new Reply(503, { status: "not_ready", roles: counted });
      },
    }),
  ];
}
