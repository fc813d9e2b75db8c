/** Readiness of the server's three roles, with reasons: for probes, metrics and `status`. */

import { type Static, Type } from "@sinclair/typebox";
import { type CopyProgress, describeProgress } from "../cluster/replica-reader.ts";
import type { EngineState } from "../engine/supervisor.ts";
import { type RoleReadiness, roleNames } from "../http/probes.ts";
import type { Admission } from "../journal/journal.ts";
import { nullable, strictObject } from "../lib/schema.ts";

export const ReadinessState = strictObject({
  role: Type.Union(roleNames.map((name) => Type.Literal(name))),
  ready: Type.Boolean(),
  /** Why it is not ready. */
  reason: nullable(Type.String()),
});
export type ReadinessState = Static<typeof ReadinessState>;

export interface ReadinessSources {
  /** `ready` when the server listens. */
  state: string;
  /** Undefined before the journal is open. */
  admission: Admission | undefined;
  engine: EngineState;
  /** Why persons and groups cannot be read; null: no known reason. */
  corruption: string | null;
  /** Flags and keys are from before PostgreSQL was restored to an earlier state, and are being replaced. */
  copying: CopyProgress | undefined;
}

/** In the order of `roleNames`. */
export function readinessStates(sources: ReadinessSources): RoleReadiness[] {
  const { state } = sources;
  const reasons: Record<RoleReadiness["role"], string | null> =
    state === "ready"
      ? {
          capture: whyNoCapture(sources.admission!),
          flags: sources.corruption ?? whyNoFlags(sources.copying),
          query: whyNoQuery(sources.engine),
        }
      : { capture: state, flags: state, query: state };
  return roleNames.map((role) => ({ role, ready: reasons[role] === null, reason: reasons[role] }));
}

function whyNoCapture({ isOpen, isFailing, problem, freeBytes, neededBytes }: Admission): string | null {
  if (problem) return problem;
  if (isOpen) return isFailing ? "The journal could not be written; see the log." : null;
  const mib = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  return `The disk is almost full: ${mib(freeBytes)} are free, and events are rejected below ${mib(neededBytes)}.`;
}

function whyNoFlags(copying: CopyProgress | undefined): string | null {
  return copying === undefined ? null : `Copying flags and keys: ${describeProgress(copying)}.`;
}

function whyNoQuery({ up, rebuilding, trouble }: EngineState): string | null {
  if (up) return null;
  if (rebuilding !== null)
    return `Rebuilding the event store: ${rebuilding.done} of ${rebuilding.total} entries.`;
  return trouble?.message ?? "Opening the event store.";
}
