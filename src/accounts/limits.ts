/** Permissions of a key, or of a session created with one: scopes and restrictions (contract: management-api 2.2). */

import type { Scope } from "./route-scopes.ts";

/** Permissions of a key or session. Empty lists of ids: no restriction. No scopes: no access. */
export interface KeyRestrictions {
  scopes: string[];
  projectIds: number[];
  organizationIds: string[];
}

/** Permissions of a session that was not created with a key. */
export const unlimited: KeyRestrictions = { scopes: ["*"], projectIds: [], organizationIds: [] };

/** Whether these scopes include `wanted`. Writing implies reading. */
export function allows(scopes: readonly string[], wanted: Scope): boolean {
  return covers(scopes, wanted);
}

/** Whether everything is allowed everywhere. */
export function isUnlimited({ scopes, projectIds, organizationIds }: KeyRestrictions): boolean {
  return scopes.includes("*") && projectIds.length === 0 && organizationIds.length === 0;
}

/**
 * Whether `inner` allows nothing beyond `outer`.
 *
 * Restrictions are compared by kind: a restriction to projects that replaces one to organizations is not within it.
 */
export function isWithin(inner: KeyRestrictions, outer: KeyRestrictions): boolean {
  return (
    inner.scopes.every((scope) => covers(outer.scopes, scope)) &&
    isRestrictedTo(inner.projectIds, outer.projectIds) &&
    isRestrictedTo(inner.organizationIds, outer.organizationIds)
  );
}

function covers(scopes: readonly string[], wanted: string): boolean {
  if (scopes.includes("*") || scopes.includes(wanted)) return true;
  return wanted.endsWith(":read") && scopes.includes(`${wanted.slice(0, -":read".length)}:write`);
}

function isRestrictedTo<Id>(inner: readonly Id[], outer: readonly Id[]): boolean {
  return outer.length === 0 || (inner.length > 0 && inner.every((id) => outer.includes(id)));
}
