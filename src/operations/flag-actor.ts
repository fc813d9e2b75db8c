/** The actor of flag operations, and the user in whose name pending changes are scheduled and decided. */

import { getCreatorId } from "../accounts/activity.ts";
import { checkScopes } from "../accounts/api/permissions.ts";
import { findUser, findUserByEmail, listUsers, type User } from "../accounts/users.ts";
import { checkMayEdit, type FlagActor, flagAnswers } from "../flags/api/feature-flags.ts";
import { assertEditor, assertMember } from "../flags/api/pending-changes.ts";
import type { Flag } from "../flags/fields.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { notFound } from "../http/http-error.ts";
import { AppError, NotFoundError } from "../lib/errors.ts";
import type { ProjectContext } from "./operation.ts";

export type FlagContext = ProjectContext<FlagWriteDeps>;

export function getFlagActor({ project, actor, now }: FlagContext): FlagActor {
  return { project, user: actor.kind === "user" ? actor.user : undefined, now };
}

/** The flag in the path. @throws {HttpError} 404 */
export function getFlagById({ stores, project }: FlagContext, id: number): Flag {
  const flag = findFlag(stores.metadata.db, project.id, id);
  if (!flag) throw notFound();
  return flag;
}

/** The same, if the actor may edit it. @throws {HttpError} 404 @throws {PermissionDeniedError} */
export function getEditableFlag(context: FlagContext, id: number): Flag {
  const flag = getFlagById(context, id);
  checkMayEdit(flagAnswers(context.stores, getFlagActor(context)), flag);
  return flag;
}

/** The operator named none of several users. */
class AmbiguousUserError extends AppError {
  readonly code = "which_one";
  override readonly hint = "Name one with --user EMAIL.";
}

/** A user, and checks of what the user may change. They throw {PermissionDeniedError} or {HttpError}. */
export interface ActingUser {
  user: User;
  assertMayEdit(flag: Flag): void;
  assertMayEditCohorts(): void;
}

/** Who decides a change request: the user of the request; of the operator, the named user or the only active one. */
export function getDecider(context: FlagContext): ActingUser {
  const { actor, stores } = context;
  if (actor.kind === "user") return actingUser(context, actor.user);
  if (actor.userEmail === undefined) return actingUser(context, getOnlyUser(context));
  const named = findUserByEmail(stores.metadata.db, actor.userEmail);
  if (named === undefined) throw new NotFoundError(`User ${actor.userEmail} does not exist.`);
  return actingUser(context, named);
}

/** Who schedules a change: the user of the request; of the operator, the creator, else the only active user. */
export function getScheduler(context: FlagContext): ActingUser {
  const { actor, stores } = context;
  if (actor.kind === "user") return actingUser(context, actor.user);
  const creatorId = getCreatorId(actor.author);
  const creator = creatorId === null ? undefined : findUser(stores.metadata.db, creatorId);
  return actingUser(context, creator ?? getOnlyUser(context));
}

/** @throws {AmbiguousUserError} */
function getOnlyUser({ stores }: FlagContext): User {
  const active = listUsers(stores.metadata.db).filter(({ isActive }) => isActive);
  if (active.length === 1) return active[0]!;
  throw new AmbiguousUserError("Several users exist.");
}

function actingUser(context: FlagContext, user: User): ActingUser {
  const { actor, stores, project } = context;
  if (actor.kind === "user") {
    const answers = flagAnswers(stores, getFlagActor(context));
    return {
      user,
      assertMayEdit: (flag) => checkMayEdit(answers, flag),
      assertMayEditCohorts: () => checkScopes(actor.limits, ["cohort:write"]),
    };
  }
  const sentence = `${user.email} may not edit cohorts of this project.`;
  return {
    user,
    assertMayEdit: (flag) =>
      assertEditor(stores, flag, user.id, `${user.email} may not edit flag ${flag.key}.`),
    assertMayEditCohorts: () => void assertMember(stores, project.id, user.id, sentence),
  };
}
