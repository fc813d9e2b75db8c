/** A project's flags, and what belongs to them, as one document: for version control and for import elsewhere. */

import type { Metadata } from "../accounts/metadata.ts";
import { flagTag as tag } from "../flags/api/feature-flags.ts";
import { documentVersion, writeDocument } from "../flags/import-export/document.ts";
import { assertPayloadsReadable, readContent } from "../flags/import-export/project-content.ts";
import type { FlagSets } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { int, list, named, object, optional, record } from "../http/schemas.ts";
import { readObjects, withObjects } from "./flag-document.ts";
import { operation, type ProjectContext } from "./operation.ts";

type Context = ProjectContext<{ metadata: Metadata; flagSets: FlagSets }>;

const items = (description: string) => list(record(), { description });

export const FlagDocumentBody = named(
  "FlagDocument",
  object({
    flagkeep_flags: int({ description: "Version of the format." }),
    group_types: record({ description: "Names by index, as far as flags refer to them." }),
    cohorts: items("Without ids; members of static cohorts are not exported."),
    flags: items("Without ids; secret payloads are replaced by a placeholder."),
    holdouts: optional(items("Absent if the project has none, like the following ones.")),
    saved_metrics: optional(list(record())),
    experiments: optional(list(record())),
    early_access_features: optional(list(record())),
    surveys: optional(list(record())),
  }),
);

/** @param payloads decrypts secret payloads; absent: placeholders replace them. @throws {AppError} one is unreadable. */
export function exportDocument(
  { stores, project }: Pick<Context, "stores" | "project">,
  payloads?: PayloadCipher,
) {
  const { db } = stores.metadata;
  const { groupTypes } = stores.flagSets.get(project.id);
  const content = readContent(db, { projectId: project.id, groupTypes, payloads });
  if (payloads !== undefined) assertPayloadsReadable(content);
  return withObjects(writeDocument(content), readObjects(db, project.id));
}

export const exportFlagDocument = operation({
  id: "flags.export",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Export flags, cohorts, experiments, early access features and surveys",
  description:
    "The document of `flagkeep flags export`, which `flagkeep flags import` reads. Ids are replaced by names, except those of holdouts and surveys; default values are omitted.",
  http: {
    method: "GET",
    path: "/feature_flags/export",
    // Every kind of the document: a key gets nothing that its lists would refuse.
    alsoNeeds: [
      "cohort:read",
      "experiment:read",
      "experiment_saved_metric:read",
      "early_access_feature:read",
      "survey:read",
      "web_experiment:read",
    ],
    answer: "The document.",
  },
  input: object({}),
  output: FlagDocumentBody,
  example: {
    flagkeep_flags: documentVersion,
    group_types: {},
    cohorts: [{ name: "Beta testers", filters: { properties: { type: "OR", values: [] } } }],
    flags: [{ key: "new-checkout", filters: { groups: [{ properties: [], rollout_percentage: 20 }] } }],
  },
  run: (context: Context) => exportDocument(context),
});

export const flagExportOperations = [exportFlagDocument];
