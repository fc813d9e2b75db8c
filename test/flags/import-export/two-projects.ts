/** Two projects of one server: a document of the first is imported into the second. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { initialize } from "../../../src/accounts/initialize.ts";
import { openMetadata } from "../../../src/accounts/metadata.ts";
import { createProject } from "../../../src/accounts/projects.ts";
import { createCohort } from "../../../src/cohorts/cohorts.ts";
import { type FlagFields, FlagInput, flagFields } from "../../../src/flags/fields.ts";
import { type FlagDocument, writeDocument } from "../../../src/flags/import-export/document.ts";
import { importDocument } from "../../../src/flags/import-export/import-document.ts";
import { readContent } from "../../../src/flags/import-export/project-content.ts";
import { findFlagByKey } from "../../../src/flags/store/flag.ts";
import { createFlag, updateFlag } from "../../../src/flags/store/flag-writes.ts";
import { payloadCipher } from "../../../src/flags/store/payload-cipher.ts";
import { parseFields } from "../../../src/http/fields.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";

export const now = new Date("2026-03-01T12:00:00Z");
export const company = [{ index: 0, name: "company" }];

/** Two projects in one store; the second one is what is imported into. */
export class TwoProjects implements Disposable {
  private readonly folder = mkdtempSync(join(tmpdir(), "flagkeep-exchange-"));
  readonly metadata = openMetadata(join(this.folder, "m.sqlite"));
  readonly writing = { metadata: this.metadata, payloads: payloadCipher(Buffer.alloc(32, 7)) };

  constructor() {
    const { organization } = initialize(
      this.metadata,
      { organization: "Acme", project: "One", email: "ann@example.com" },
      now,
    );
    createProject(this.metadata, { organizationId: organization.id, name: "Two" }, null, now);
    // Ids differ between the projects, so that an id that is carried over is found out.
    this.flag(2, "first in two", {});
  }

  flag(projectId: number, key: string, fields: Partial<FlagFields>): number {
    return createFlag(this.writing, {
      projectId,
      by: 1,
      createsUsageDashboard: false,
      now,
      fields: { key: key.replaceAll(" ", "-"), ...fields },
    }).id;
  }

  change(projectId: number, key: string, fields: Partial<FlagFields>): void {
    const { id } = findFlagByKey(this.metadata.db, projectId, key)!;
    updateFlag(this.writing, { projectId, id, by: 1, now, fields, sent: {} });
  }

  cohort(projectId: number, name: string, filters: JsonObject | undefined): number {
    const fields = filters ? { name, filters } : { name, isStatic: true };
    return createCohort(this.metadata, { projectId, by: 1, fields }, now).id;
  }

  document(projectId: number, groupTypes = company, withSecrets = false): FlagDocument {
    const payloads = withSecrets ? this.writing.payloads : undefined;
    return writeDocument(readContent(this.metadata.db, { projectId, groupTypes, payloads }));
  }

  import(document: FlagDocument, options: { isDryRun?: boolean; groupTypes?: typeof company } = {}) {
    return importDocument(this.writing, {
      projectId: 2,
      document,
      groupTypes: company,
      isDryRun: false,
      now,
      ...options,
      by: { job_type: "command_line", job_id: "ann", payload: {} },
      toFields: (item) => flagFields(parseFields(FlagInput, item)),
    });
  }

  /** A project with everything that refers to something. */
  fill(): void {
    const inner = this.cohort(1, "Visitors", {
      properties: { type: "AND", values: [person("visits", "gt", "3")] },
    });
    this.cohort(1, "Everybody listed", undefined);
    const outer = this.cohort(1, "Good visitors", {
      properties: {
        type: "OR",
        values: [{ type: "AND", values: [inCohort(inner), person("plan", "exact", "pro")] }],
      },
    });
    const base = this.flag(1, "z-base", { filters: when([inCohort(outer)], 40.5), tags: ["a", "b"] });
    this.flag(1, "above", { name: "Above the base", filters: when([dependsOn(String(base))]) });
    this.flag(1, "variants", {
      filters: {
        ...when([]),
        multivariate: {
          variants: [
            { key: "x", rollout_percentage: 50 },
            { key: "y", rollout_percentage: 50 },
          ],
        },
        payloads: { x: '{"deep":[1,{"a":null}]}' },
      },
      ensureExperienceContinuity: true,
      evaluationRuntime: "client",
      tags: ["web"],
      evaluationTags: ["web"],
    });
    this.flag(1, "in-apps", { tags: ["a"], evaluationContexts: ["a", "ios"] });
    this.flag(1, "by-company", {
      filters: {
        aggregation_group_type_index: 0,
        groups: [
          {
            properties: [{ key: "size", type: "group", group_type_index: 0, operator: "exact", value: "l" }],
            rollout_percentage: 100,
          },
        ],
      },
    });
    this.flag(1, "off", { active: false });
    this.flag(1, "secret", {
      isRemoteConfiguration: true,
      hasEncryptedPayloads: true,
      filters: { ...when([]), payloads: { true: '"s3cret"' } },
    });
  }

  [Symbol.dispose](): void {
    this.metadata.close();
    rmSync(this.folder, { recursive: true });
  }
}
