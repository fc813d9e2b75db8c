/** Permissions that operations check beyond their scope. The operator of the data directory has all of them. */

import { checkAdmin, checkMayGrantFlags } from "../accounts/api/permissions.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { flagsAccess, flagsAccessLevels } from "../accounts/organizations.ts";
import type { Actor, Context, OrganizationContext } from "./operation.ts";

/** @throws {PermissionDeniedError} the actor is a plain member. */
export function assertAdmin(context: OrganizationContext<{ metadata: Metadata }>): void {
  assertAdminOf(context, context.organization.id);
}

/** The same for the organization of a project. @throws {PermissionDeniedError} */
export function assertAdminOf(
  { actor, stores }: Context<{ metadata: Metadata }>,
  organizationId: string,
): void {
  if (actor.kind === "user") checkAdmin(stores, { user: actor.user, organization: { id: organizationId } });
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
