/**
 * First part of `import` for PostHog projects: reads the key, copies the project, and imports its flags and cohorts,
 * experiments, early access features and surveys.
 */

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { importProject, type ProjectImport } from "../../src/flag-objects/import-project.ts";
import { type PostHogObjects, posthogLists, posthogObjects } from "../../src/flag-objects/posthog.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { toDocument } from "../../src/flags/import-export/read-document.ts";
import { ApprovalRequiredError } from "../../src/flags/rules/errors.ts";
import { parseFields } from "../../src/http/fields.ts";
import { rejectEnding } from "../../src/import/files.ts";
import { digest } from "../../src/import/progress-file.ts";
import { PostHogApi, SourceRejectedError } from "../../src/import/pull/posthog-api.ts";
import { cursorName, type PulledProject, pullProject } from "../../src/import/pull/pull.ts";
import type { ImportedFlags } from "../../src/import/summary.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { Json } from "../../src/lib/json/value.ts";
import { countCohortMembers } from "../../src/persons/cohort-members.ts";
import type { Progress } from "../progress.ts";
import { creatingAuthor, withProject } from "../stores.ts";
import { omittedLine, turnedOffLine } from "./flags-common.ts";

/** Source of the key without a key file. On the command line every user of the machine could read it. */
const keyVariable = "POSTHOG_PERSONAL_API_KEY";

/** For the names of cohorts, to which surveys refer by ID. */
const cohortList = "cohorts";

export interface PullOrder {
  /** URL of the other server. */
  address: string;
  sourceProject: number | undefined;
  keyFile: string | undefined;
  /** Target project. */
  projectId: number;
  stateFolder: string;
  isResumed: boolean;
}

export const isAddress = (source: string) => /^https?:\/\//.test(source);

/** @throws {SourceRejectedError} */
export async function pull(
  order: PullOrder,
  progress: Progress,
): Promise<PulledProject & { forget(): void }> {
  const { address, sourceProject, projectId, isResumed } = order;
  const name = `pull-${digest(`${projectId}:${address}:${sourceProject}`)}`;
  const folder = join(order.stateFolder, name);
  const api = new PostHogApi(address, getKey(order.keyFile));
  const onRecords = (_: string, count: number) => progress.addRecords(count, false);
  const pulled = await pullProject(api, {
    project: sourceProject,
    folder,
    isResumed,
    lists: [...posthogLists, cohortList],
    onRecords,
  });
  return { ...pulled, forget: () => forget(folder, pulled.folder) };
}

/** Keeps only rejected records, for inspection. */
function forget(folder: string, records: string): void {
  for (const name of readdirSync(records)) {
    if (!name.endsWith(rejectEnding)) rmSync(join(records, name));
  }
  if (readdirSync(records).length === 0) rmSync(folder, { recursive: true });
  else rmSync(join(folder, cursorName));
}

function getKey(file: string | undefined): string {
  const key = (file === undefined ? process.env[keyVariable] : readFileSync(file, "utf8"))?.trim();
  if (key !== undefined && /^[\x21-\x7e]+$/.test(key)) return key;
  throw new SourceRejectedError(
    file === undefined ? "The API key for the other server is missing." : `${file} contains no key.`,
    `Set ${keyVariable} to a personal key, or name a file with --key-file.`,
  );
}

/**
 * Makes the project's flags and cohorts match the copied ones, each independently: see `flags import`. An error that
 * prevents all of them is returned, and nothing changes.
 */
export function importFlags(
  options: { user?: string; project?: number; dataDir?: string; confirm?: true },
  { flags: copied, renamed, lists }: Pick<PulledProject, "flags" | "renamed" | "lists">,
  isDryRun: boolean,
): { flags: ImportedFlags; failure: AppError | undefined } {
  try {
    return withProject(options, ({ metadata, writing, project, people, flagSets }) => {
      const unreadable: string[] = [];
      const { objects, remarks } = posthogObjects(lists as PostHogObjects, lists[cohortList] ?? []);
      const result = importProject(
        writing,
        {
          by: creatingAuthor(metadata, project.organizationId, options.user),
          projectId: project.id,
          document: toDocument(copied as unknown as Json, (message) => unreadable.push(message)),
          switchedOff: new Set(),
          hasMembers: (cohortId) => countCohortMembers(people, cohortId) > 0,
          groupTypes: flagSets.get(project.id).groupTypes,
          toFields: (item) => flagFields(parseFields(FlagInput, item)),
          isDryRun,
          isConfirmed: options.confirm === true,
          now: new Date(),
        },
        objects,
      );
      const count = (change: string) => result.differences.filter((item) => item.change === change).length;
      const flags = {
        created: count("created"),
        updated: count("updated"),
        remarks: [
          ...renamed,
          ...remarks,
          ...unreadable.map((message) => `Not taken over: ${message}`),
          ...result.remarks,
          ...result.omitted.map(omittedLine),
          ...(result.turnedOff.length === 0 ? [] : [turnedOffLine(result.turnedOff, isDryRun)]),
          ...approvalRemark(result),
        ],
      };
      return { flags, failure: undefined };
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = `Flags and cohorts, experiments and surveys were not imported: ${error.message}`;
    const wayOut = error instanceof ApprovalRequiredError ? ` ${error.hint}` : "";
    const hint = `Events, persons and groups were imported; see \`flags import\`.${wayOut}`;
    const failure = new SourceRejectedError(message, hint);
    return { flags: { created: 0, updated: 0, remarks: [] }, failure };
  }
}

function approvalRemark({ needsApproval }: ProjectImport): string[] {
  if (needsApproval.length === 0) return [];
  return [`Flags that need approval, so the import needs --confirm: ${needsApproval.join(", ")}.`];
}
