/**
 * Feature flags: activity, and code shared by operations and routes; never a hard delete (contract: management-api 5.1
 * to 5.5).
 */

import type { Author } from "../../accounts/activity.ts";
import { itemActivityRoutes } from "../../accounts/api/activity.ts";
import { projectRoute } from "../../accounts/api/routes.ts";
import { userBody } from "../../accounts/api/user-schemas.ts";
import type { Reading } from "../../accounts/db.ts";
import { findOrganization, type Organization } from "../../accounts/organizations.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { type User, type UserFinder, userFinder } from "../../accounts/users.ts";
import { parseFields } from "../../http/fields.ts";
import { methodNotAllowed, notFound } from "../../http/http-error.ts";
import { readId } from "../../http/params.ts";
import type { Route } from "../../http/route.ts";
import { ApiFailure } from "../../http/schemas.ts";
import { PermissionDeniedError } from "../../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import { LocalIssues } from "../definitions/local-issues.ts";
import { type Flag, type FlagAnswer, type FlagFields, flagFields, storedFields } from "../fields.ts";
import { ApprovalRequiredError } from "../rules/errors.ts";
import { getStatusField } from "../rules/status.ts";
import { isSimpleFlag, renderFilters } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type CohortFacts,
  unreadablePayloads,
  withHiddenPayloads,
} from "../rules/types.ts";
import { findFlag } from "../store/flag.ts";
import type { Edit } from "../store/flag-conflicts.ts";
import { cohortFacts, localFacts } from "../store/flag-dependencies.ts";
import { type FlagLink, linksByFlag, withLinks } from "../store/flag-links.ts";
import {
  accessLevel,
  canEdit,
  type FlagPermissions,
  operatorPermissions,
  readFlagPermissions,
} from "../store/flag-permissions.ts";
import type { GroupTypeSource } from "../store/flag-sets.ts";
import { type FlagWriteDeps, flagToEdit, type PayloadCipher, writeFlag } from "../store/flag-writes.ts";
import { encryptionWarning, isEncryptionTurnedOn } from "../store/payload-history.ts";
import { assertNoApprovalNeeded, protectedBy } from "../store/protected-flags.ts";
import { FlagEditInput } from "./flag-schemas.ts";

const unreadableWarning = (name: string) =>
  `The payload "${name}" cannot be decrypted (payload_unreadable): it is corrupt or was encrypted for another flag or ` +
  "with another payload.key. Set it again, or restore a backup.";

/** Renders flags for one user; reads data shared by many flags once. */
class FlagAnswers {
  readonly permissions: FlagPermissions;
  private readonly userOf: UserFinder;
  /** All flags are of one project. */
  private issues: LocalIssues | undefined;
  private readonly cohortsById = new Map<number, CohortDefinition | undefined>();

  constructor(
    private readonly db: Reading,
    private readonly payloads: PayloadCipher,
    organization: Organization,
    /** Undefined: the operator, who may edit every flag, but does not see secret payloads. */
    private readonly viewer: User | undefined,
    private readonly now: Date,
    private readonly groupTypes: GroupTypeSource | undefined,
  ) {
    this.permissions =
      viewer === undefined ? operatorPermissions : readFlagPermissions(db, organization, viewer.id);
    this.userOf = userFinder(db);
  }

  /** The API representation of a flag. @param warnings about the write that the response answers. */
  one(flag: Flag, warnings: readonly string[] = []): FlagAnswer {
    const answer = this.many([flag])[0]!;
    const all = [...warnings, ...(answer.warnings ?? [])];
    return all.length === 0 ? answer : { ...answer, warnings: all };
  }

  /** The API representation of several flags. */
  many(flags: readonly Flag[]): FlagAnswer[] {
    const links = linksByFlag(
      this.db,
      flags.map(({ id }) => id),
    );
    return flags.map((flag) => this.write(flag, links.get(flag.id) ?? []));
  }

  private write(flag: Flag, links: readonly FlagLink[]): FlagAnswer {
    const opened = this.filters(flag);
    const unreadable = this.viewer === undefined ? [] : unreadablePayloads(flag, opened);
    const all: JsonObject = {
      ...storedFields(withLinks(flag, links)),
      filters: renderFilters(opened, this.cohorts(flag.projectId)),
      created_by: this.user(flag.createdById),
      created_at: toApiTime(flag.createdAt),
      updated_at: toApiTime(flag.updatedAt),
      last_modified_by: this.user(flag.lastModifiedById),
      last_called_at: toApiTimeOrNull(flag.lastCalledAt),
      is_simple_flag: isSimpleFlag(flag.filters),
      performed_rollback: flag.performedRollback ?? false,
      local_evaluation_issues: this.getIssues(flag),
      can_edit: canEdit(this.permissions, flag),
      user_access_level: accessLevel(this.permissions, flag),
      status: getStatusField(flag, this.now),
      ...(unreadable.length === 0 ? {} : { warnings: unreadable.map(unreadableWarning) }),
    };
    return all as unknown as FlagAnswer;
  }

  private filters(flag: Flag): JsonObject {
    return this.viewer === undefined ? withHiddenPayloads(flag) : this.payloads.open(flag);
  }

  private getIssues(flag: Flag): string[] {
    const { projectId } = flag;
    this.issues ??= new LocalIssues(localFacts(this.db, projectId, this.groupTypes));
    return this.issues.getIssues(flag);
  }

  private user(id: number | null) {
    const user = this.userOf(id);
    return user ? userBody(user) : null;
  }

  /** Cached: most flags use no cohort, and the others often the same one. */
  private cohorts(projectId: number): CohortFacts {
    const facts = cohortFacts(this.db, projectId);
    return {
      find: (id) => {
        if (!this.cohortsById.has(id)) this.cohortsById.set(id, facts.find(id));
        return this.cohortsById.get(id);
      },
    };
  }
}

export const flagTag = "Feature flags";
const flagMethods = ["GET", "PATCH", "HEAD", "OPTIONS"];

export function featureFlagRoutes(deps: FlagWriteDeps): Route[] {
  return [
    ...itemActivityRoutes(deps, {
      path: "/feature_flags",
      scope: "FeatureFlag",
      names: ["flags", "a flag"],
      description: "Also works for deleted flags.",
      find: (call) => getFlag(deps, call).id,
    }),
    projectRoute("DELETE", "/feature_flags/:id", "feature_flag:write", {
      summary: "Not allowed: delete flags with PATCH",
      description: 'Returns 405 for every id and changes nothing. Send `PATCH {"deleted": true}`.',
      tag: flagTag,
      answers: { 405: { description: "Always.", schema: ApiFailure } },
      handle: () => {
        throw methodNotAllowed(
          "DELETE",
          flagMethods,
          'Hard delete of a feature flag is not allowed. Send a PATCH with {"deleted": true} instead.',
        );
      },
    }),
  ];
}

/** The user who reads or changes a project's flags; without a user, the operator at the data directory. */
export interface FlagActor {
  project: Project;
  user?: User | undefined;
  now: Date;
}

/** Renders flags for the actor. */
export function flagAnswers(deps: FlagWriteDeps, { project, user, now }: FlagActor): FlagAnswers {
  const { metadata, payloads, groupTypes } = deps;
  const organization = findOrganization(metadata.db, project.organizationId)!;
  return new FlagAnswers(metadata.db, payloads, organization, user, now, groupTypes);
}

/** The flag in the path. @throws {HttpError} 404 */
function getFlag(
  deps: FlagWriteDeps,
  call: { project: { id: number }; params: Record<string, string> },
): Flag {
  const flag = findFlag(deps.metadata.db, call.project.id, readId(call.params, "id"));
  if (!flag) throw notFound();
  return flag;
}

/** @throws {PermissionDeniedError} the caller may only view this flag (contract: management-api 3.7). */
export function checkMayEdit(answers: FlagAnswers, flag: Flag): void {
  if (canEdit(answers.permissions, flag)) return;
  throw new PermissionDeniedError("You don't have edit permissions for this feature flag.");
}

/**
 * Changes a flag for the actor.
 *
 * @param sent the members of a PATCH.
 * @param actor.isRollback a condition of the flag is violated: neither approvals nor dependent flags prevent it.
 * @throws {PermissionDeniedError} @throws {ApprovalRequiredError} the operator did not confirm the change of a
 * protected flag.
 */
export function editByActor(
  deps: FlagWriteDeps,
  actor: FlagActor & { by: Author; skipsApproval?: boolean | undefined; isRollback?: boolean | undefined },
  id: number,
  sent: JsonObject,
): FlagAnswer {
  const answers = flagAnswers(deps, actor);
  const { project, user, by, now, skipsApproval, isRollback } = actor;
  const { before, after } = deps.metadata.change((t) => {
    const before = flagToEdit(t, { projectId: project.id, id });
    checkMayEdit(answers, before);
    const edit = getEdit(sent, before);
    if (!skipsApproval && !isRollback) {
      if (user !== undefined) assertNoApprovalNeeded(deps, before, edit.fields);
      else assertConfirmed(deps, before, edit.fields);
    }
    return {
      before,
      after: writeFlag(deps, t, before, { ...edit, ignoresDependents: isRollback }, { by, now }),
    };
  });
  return answers.one(after, isEncryptionTurnedOn(before, after) ? [encryptionWarning] : []);
}

/** @throws {ApprovalRequiredError} */
function assertConfirmed(deps: FlagWriteDeps, flag: Flag, fields: Partial<FlagFields>): void {
  const affected = protectedBy(deps, flag, fields).map(({ key }) => key);
  if (affected.length > 0) throw new ApprovalRequiredError(affected.sort());
}

/** The edit that a PATCH requests. @throws {InvalidFieldError} */
export function getEdit(sent: JsonObject, before: Flag): Edit {
  const input = parseFields(FlagEditInput, withoutOwnKey(sent, before), { partial: true });
  return {
    fields: flagFields(input),
    version: input.version ?? undefined,
    originalFlag: input.original_flag ?? undefined,
    note: input.note,
    sent,
  };
}

/** A deleted flag may have a key that no write could choose; sending it back is not a change of the key. */
function withoutOwnKey(sent: JsonObject, { key: ownKey }: Flag): JsonObject {
  if (!isJsonObject(sent) || sent.key !== ownKey) return sent;
  const { key: _, ...others } = sent;
  return others;
}
