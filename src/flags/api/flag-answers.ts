/** Writes flags as the API shows them to one user. */

import type { Static } from "@sinclair/typebox";
import { userBody } from "../../accounts/api/user-shapes.ts";
import type { Reading } from "../../accounts/metadata.ts";
import type { Organization } from "../../accounts/organizations.ts";
import { type User, usersById } from "../../accounts/users.ts";
import { toWire, toWireOrNull } from "../../lib/wire-time.ts";
import { isSimpleFlag, renderFilters, rolloutPercentageOf } from "../rules/stored-filters.ts";
import type { CohortDefinition, CohortFacts } from "../rules/types.ts";
import { statusFieldOf } from "../status.ts";
import type { Flag } from "../store/flag.ts";
import { cohortFacts } from "../store/flag-dependencies.ts";
import {
  accessLevel,
  canEdit,
  type FlagPermissions,
  readFlagPermissions,
} from "../store/flag-permissions.ts";
import type { PayloadCipher } from "../store/flag-writes.ts";
import type { FlagBody } from "./flag-shapes.ts";

/** Writes flags for one user; reads what many flags share once. */
export class FlagAnswers {
  readonly permissions: FlagPermissions;
  private readonly users: Map<number, User>;
  private readonly cohortsById = new Map<number, CohortDefinition | undefined>();

  constructor(
    private readonly db: Reading,
    private readonly payloads: PayloadCipher,
    organization: Organization,
    user: User,
    private readonly now: Date,
  ) {
    this.permissions = readFlagPermissions(db, organization, user.id);
    this.users = usersById(db);
  }

  /** The wire form of one flag. */
  one(flag: Flag): Static<typeof FlagBody> {
    return this.many([flag])[0]!;
  }

  /** The wire form of many flags. */
  many(flags: readonly Flag[]): Static<typeof FlagBody>[] {
    return flags.map((flag) => this.write(flag));
  }

  private write(flag: Flag): Static<typeof FlagBody> {
    return {
      id: flag.id,
      name: flag.name,
      key: flag.key,
      filters: renderFilters(this.payloads.open(flag), this.cohorts(flag.projectId)),
      deleted: flag.deleted,
      active: flag.active,
      created_by: this.user(flag.createdById),
      created_at: toWire(flag.createdAt),
      updated_at: toWire(flag.updatedAt),
      version: flag.version,
      last_modified_by: this.user(flag.lastModifiedById),
      is_simple_flag: isSimpleFlag(flag.filters),
      rollout_percentage: rolloutPercentageOf(flag.filters),
      ensure_experience_continuity: flag.ensureExperienceContinuity,
      experiment_set: flag.experimentSet,
      surveys: flag.surveys,
      features: flag.features,
      rollback_conditions: flag.rollbackConditions,
      performed_rollback: flag.performedRollback ?? false,
      can_edit: canEdit(this.permissions, flag),
      tags: flag.tags,
      evaluation_tags: flag.evaluationTags,
      usage_dashboard: flag.usageDashboardId,
      analytics_dashboards: flag.analyticsDashboards,
      has_enriched_analytics: flag.hasEnrichedAnalytics,
      user_access_level: accessLevel(this.permissions, flag),
      creation_context: flag.creationContext as Static<typeof FlagBody>["creation_context"],
      is_remote_configuration: flag.isRemoteConfiguration,
      has_encrypted_payloads: flag.hasEncryptedPayloads,
      status: statusFieldOf(flag, this.now) as Static<typeof FlagBody>["status"],
      evaluation_runtime: flag.evaluationRuntime as Static<typeof FlagBody>["evaluation_runtime"],
      bucketing_identifier: flag.bucketingIdentifier as Static<typeof FlagBody>["bucketing_identifier"],
      last_called_at: toWireOrNull(flag.lastCalledAt),
    };
  }

  private user(id: number | null) {
    const user = id === null ? undefined : this.users.get(id);
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
