/** What each of the server's three roles can do at this moment, and what hinders it: for probes, metrics and `status`. */

import { type Static, Type } from "@sinclair/typebox";
import type { EngineState } from "../engine/supervisor.ts";
import { type RoleReadiness, roleNames } from "../http/probes.ts";
import type { Admission } from "../journal/journal.ts";
import { exactly, orNull } from "../lib/schema.ts";

export const RoleState = exactly({
  role: Type.Union(roleNames.map((name) => Type.Literal(name))),
  ready: Type.Boolean(),
  /** Why it is not ready. */
  reason: orNull(Type.String()),
});
export type RoleState = Static<typeof RoleState>;

export interface RoleSources {
  /** `ready` when the server listens. */
  state: string;
  /** Undefined before the journal is open. */
  admission: Admission | undefined;
  engine: EngineState;
  /** Why persons and groups cannot be read; null: nothing is known to hinder it. */
  damage: string | null;
}

/** In the order of `roleNames`. */
export function roleStates(sources: RoleSources): RoleReadiness[] {
  const { state } = sources;
  const reasons: Record<RoleReadiness["role"], string | null> =
    state === "ready"
      ? {
          capture: whyNoCapture(sources.admission!),
          flags: sources.damage,
          query: whyNoQuery(sources.engine),
        }
      : { capture: state, flags: state, query: state };
  return roleNames.map((role) => ({ role, ready: reasons[role] === null, reason: reasons[role] }));
}

function whyNoCapture({ isOpen, isFailing, trouble, freeBytes, neededBytes }: Admission): string | null {
  if (trouble) return trouble;
  if (isOpen) return isFailing ? "The journal could not be written; see the log." : null;
  const mib = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  return `The disk is almost full: ${mib(freeBytes)} are free, and events are refused below ${mib(neededBytes)}.`;
}

function whyNoQuery({ up, rebuilding, trouble }: EngineState): string | null {
  if (up) return null;
  if (rebuilding !== null)
    return `The event store is made again: ${rebuilding.done} of ${rebuilding.total} entries.`;
  return trouble?.message ?? "The event store is being opened.";
}
