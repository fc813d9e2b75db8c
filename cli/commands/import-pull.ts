/** The part of `import` that copies a PostHog project first: the key, the copy, and its flags and cohorts. */

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ExchangeDocument } from "../../src/flags/exchange/document.ts";
import { type ImportResult, importDocument, refusedItem } from "../../src/flags/exchange/import-document.ts";
import { documentOf } from "../../src/flags/exchange/read-document.ts";
import { type NamedItem, withoutDangling } from "../../src/flags/exchange/references.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { ApprovalRequired } from "../../src/flags/store/protected-flags.ts";
import { parseFields } from "../../src/http/fields.ts";
import { rejectEnding } from "../../src/import/files.ts";
import { digest } from "../../src/import/progress-file.ts";
import { PostHogApi, SourceRefused } from "../../src/import/pull/posthog-api.ts";
import { cursorName, type PulledProject, pullProject } from "../../src/import/pull/pull.ts";
import type { ImportedFlags } from "../../src/import/summary.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { Json } from "../../src/lib/json.ts";
import type { Progress } from "../progress.ts";
import { creatingAuthor, withProject } from "../stores.ts";

/** Where the key is looked for when no file is named: on the command line every user of the machine could read it. */
const keyVariable = "POSTHOG_PERSONAL_API_KEY";

export interface PullOrder {
  /** Of the other server. */
  address: string;
  sourceProject: number | undefined;
  keyFile: string | undefined;
  /** Of the project that is loaded into. */
  projectId: number;
  stateFolder: string;
  isResumed: boolean;
}

export const isAddress = (source: string) => /^https?:\/\//.test(source);

/** @throws {SourceRefused} */
export async function pull(
  order: PullOrder,
  progress: Progress,
): Promise<PulledProject & { forget(): void }> {
  const { address, sourceProject, projectId, isResumed } = order;
  const name = `pull-${digest(`${projectId}:${address}:${sourceProject}`)}`;
  const folder = join(order.stateFolder, name);
  const api = new PostHogApi(address, keyOf(order.keyFile));
  const onRecords = (_: string, count: number) => progress.addRecords(count, false);
  const pulled = await pullProject(api, { project: sourceProject, folder, isResumed, onRecords });
  return { ...pulled, forget: () => forget(folder, pulled.folder) };
}

/** Only what was rejected stays, for somebody to look at. */
function forget(folder: string, records: string): void {
  for (const name of readdirSync(records)) {
    if (!name.endsWith(rejectEnding)) rmSync(join(records, name));
  }
  if (readdirSync(records).length === 0) rmSync(folder, { recursive: true });
  else rmSync(join(folder, cursorName));
}

function keyOf(file: string | undefined): string {
  const key = (file === undefined ? process.env[keyVariable] : readFileSync(file, "utf8"))?.trim();
  if (key !== undefined && /^[\x21-\x7e]+$/.test(key)) return key;
  throw new SourceRefused(
    file === undefined ? "There is no key for the other server." : `${file} holds no key.`,
    `Put a personal key into ${keyVariable}, or into a file named by --key-file.`,
  );
}

/**
 * Brings the project's flags and cohorts to what was copied. One that is refused here is left out, and so is what refers to
 * it; what stands in the way of all is told, and changes nothing.
 */
export function importFlags(
  options: { user?: string; project?: number; dataDir?: string; confirm?: true },
  { flags: copied, leftOut }: Pick<PulledProject, "flags" | "leftOut">,
  isDryRun: boolean,
): { flags: ImportedFlags; failure: AppError | undefined } {
  try {
    return withProject(options, ({ metadata, writing, project, flagSets }) => {
      const by = creatingAuthor(metadata, project.organizationId, options.user);
      const load = (document: ExchangeDocument) =>
        importDocument(writing, {
          by,
          projectId: project.id,
          document: documentOf(document as unknown as Json),
          groupTypes: flagSets.of(project.id).groupTypes,
          toFields: (item) => flagFields(parseFields(FlagInput, item)),
          isDryRun,
          isConfirmed: options.confirm === true,
          now: new Date(),
        });
      const { result, leftOut: refused } = withoutRefused(copied, load);
      const count = (change: string) => result.differences.filter((item) => item.change === change).length;
      const flags = {
        created: count("created"),
        updated: count("updated"),
        remarks: [...leftOut, ...refused, ...result.remarks, ...approvalRemark(result)],
      };
      return { flags, failure: undefined };
    });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = `The flags and cohorts were not loaded: ${error.message}`;
    const wayOut = error instanceof ApprovalRequired ? ` ${error.hint}` : "";
    const hint = `Events, persons and groups were; see \`flags import\`.${wayOut}`;
    const failure = new SourceRefused(message, hint);
    return { flags: { created: 0, updated: 0, remarks: [] }, failure };
  }
}

function approvalRemark({ needsApproval }: ImportResult): string[] {
  if (needsApproval.length === 0) return [];
  return [`Flags that need approval, so the import needs --confirm: ${needsApproval.join(", ")}.`];
}

/** Loads a document again and again, each time without the item that was refused. */
function withoutRefused(document: ExchangeDocument, load: (document: ExchangeDocument) => ImportResult) {
  const leftOut: string[] = [];
  for (let left = document; ; ) {
    try {
      return { result: load(left), leftOut };
    } catch (error) {
      const refused = refusedItem(error);
      if (refused === undefined || !(error instanceof AppError)) throw error;
      leftOut.push(`${error.message} It is left out.`);
      const others = withoutDangling(withoutItem(left, refused));
      if (sizeOf(others.document) === sizeOf(left)) throw error;
      left = others.document;
      leftOut.push(...others.leftOut);
    }
  }
}

function withoutItem(document: ExchangeDocument, { kind, name }: NamedItem): ExchangeDocument {
  return {
    ...document,
    cohorts: document.cohorts.filter((item) => kind !== "cohort" || item.name !== name),
    flags: document.flags.filter((item) => kind !== "flag" || item.key !== name),
  };
}

const sizeOf = ({ cohorts, flags }: ExchangeDocument) => cohorts.length + flags.length;
