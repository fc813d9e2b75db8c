/** Writes flags as the API shows them to one user. */

import { userBody } from "../../accounts/api/user-shapes.ts";
import type { Reading } from "../../accounts/db.ts";
import type { Organization } from "../../accounts/organizations.ts";
import { type User, type UserFinder, userFinder } from "../../accounts/users.ts";
import type { JsonObject } from "../../lib/json.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import { LocalIssues } from "../definitions/local-issues.ts";
import { type Flag, type FlagAnswer, storedFields } from "../fields.ts";
import { statusFieldOf } from "../rules/status.ts";
import { isSimpleFlag, renderFilters } from "../rules/stored-filters.ts";
import type { CohortDefinition, CohortFacts } from "../rules/types.ts";
import { cohortFacts, localFacts } from "../store/flag-dependencies.ts";
import {
  accessLevel,
  canEdit,
  type FlagPermissions,
  readFlagPermissions,
} from "../store/flag-permissions.ts";
import type { GroupTypeSource } from "../store/flag-sets.ts";
import type { PayloadCipher } from "../store/flag-writes.ts";

/** Writes flags for one user; reads what many flags share once. */
export class FlagAnswers {
  readonly permissions: FlagPermissions;
  private readonly userOf: UserFinder;
  /** All flags are of one project. */
  private issues: LocalIssues | undefined;
  private readonly cohortsById = new Map<number, CohortDefinition | undefined>();

  constructor(
    private readonly db: Reading,
    private readonly payloads: PayloadCipher,
    organization: Organization,
    user: User,
    private readonly now: Date,
    private readonly groupTypes: GroupTypeSource | undefined,
  ) {
    this.permissions = readFlagPermissions(db, organization, user.id);
    this.userOf = userFinder(db);
  }

  /** The wire form of one flag. @param warnings about the write that it answers. */
  one(flag: Flag, warnings: readonly string[] = []): FlagAnswer {
    const answer = this.many([flag])[0]!;
    return warnings.length === 0 ? answer : { ...answer, warnings: [...warnings] };
  }

  /** The wire form of many flags. */
  many(flags: readonly Flag[]): FlagAnswer[] {
    return flags.map((flag) => this.write(flag));
  }

  private write(flag: Flag): FlagAnswer {
    const all: JsonObject = {
      ...storedFields(flag),
      filters: renderFilters(this.payloads.open(flag), this.cohorts(flag.projectId)),
      created_by: this.user(flag.createdById),
      created_at: toWire(flag.createdAt),
      updated_at: toWire(flag.updatedAt),
      last_modified_by: this.user(flag.lastModifiedById),
      last_called_at: toWireOrNull(flag.lastCalledAt),
      is_simple_flag: isSimpleFlag(flag.filters),
      performed_rollback: flag.performedRollback ?? false,
      local_evaluation_issues: this.issuesOf(flag),
      can_edit: canEdit(this.permissions, flag),
      user_access_level: accessLevel(this.permissions, flag),
      status: statusFieldOf(flag, this.now),
    };
    return all as unknown as FlagAnswer;
  }

  private issuesOf(flag: Flag): string[] {
    const { projectId } = flag;
    this.issues ??= new LocalIssues(localFacts(this.db, projectId, this.groupTypes));
    return this.issues.of(flag);
  }

  private user(id: number | null) {
    const user = this.userOf(id);
    return user ? userBody(user) : null;
  }

  /** Most flags name no cohort, and those that do often name the same. */
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
