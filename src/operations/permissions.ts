/** Permissions that operations check beyond their scope. The operator of the data directory has all of them. */

import { checkAdmin, checkMayGrantFlags } from "../accounts/api/permissions.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { flagsAccess, flagsAccessLevels } from "../accounts/organizations.ts";
import type { Actor, OrganizationContext } from "./operation.ts";

/** @throws {PermissionDeniedError} the actor is a plain member. */
export function assertAdmin(context: OrganizationContext<{ metadata: Metadata }>): void {
  const { actor, stores, organization } = context;
  if (actor.kind === "user") checkAdmin(stores, { user: actor.user, organization });
}

/** @throws {HttpError} the actor's key may not edit flags. */
export function assertMayGrantFlags(actor: Actor): void {
  if (actor.kind === "user") checkMayGrantFlags(actor.limits);
}

/** Command option for a member that is 21 or 37 in the API. */
export const flagsAccessOption = {
  flags: "--flags-access <level>",
  choices: flagsAccess,
  parse: (level: string) => flagsAccessLevels[level as keyof typeof flagsAccessLevels],
};
