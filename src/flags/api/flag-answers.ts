import { userBody } from "../../accounts/api/user-schemas.ts";
import type { Reading } from "../../accounts/db.ts";
import type { Organization } from "../../accounts/organizations.ts";
import { type User, type UserFinder, userFinder } from "../../accounts/users.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/api-time.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { LocalIssues } from "../definitions/local-issues.ts";
import { type Flag, type FlagAnswer, storedFields } from "../fields.ts";
import { getStatusField } from "../rules/status.ts";
import { isSimpleFlag, renderFilters } from "../rules/stored-filters.ts";
import {
  type CohortDefinition,
  type CohortFacts,
  unreadablePayloads,
  withHiddenPayloads,
} from "../rules/types.ts";
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
import type { PayloadCipher } from "../store/flag-writes.ts";

const unreadableWarning = (name: string) =>
  `The payload "${name}" cannot be decrypted (payload_unreadable): it is corrupt or was encrypted for another flag or ` +
  "with another payload.key. Set it again, or restore a backup.";

/** Renders flags for one user; reads data shared by many flags once. */
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
    return this.issues.of(flag);
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
