/** Runs operations in the data directory, as its operator. */

import type { Metadata } from "../../src/accounts/metadata.ts";
import { findOrganization, type Organization } from "../../src/accounts/organizations.ts";
import type { Project } from "../../src/accounts/project-directory.ts";
import { ApprovalRequiredError } from "../../src/flags/rules/errors.ts";
import { parseFields } from "../../src/http/fields.ts";
import { object } from "../../src/http/schemas.ts";
import {
  type Caller,
  getQuery,
  type Members,
  type Operation,
  otherMembers,
  type Run,
  sendsQuery,
} from "../../src/operations/operation.ts";
import { changeTime } from "../cluster-stores.ts";
import { configFromOptions } from "../settings.ts";
import {
  creatingAuthor,
  osUserAuthor,
  resolveOrganization,
  resolveProject,
  resolveProjects,
  withMetadata,
} from "../stores.ts";
import { LocalStores, type OpenStores } from "./local-stores.ts";
import type { CallOptions } from "./server.ts";

const allResults = { limit: Number.MAX_SAFE_INTEGER, offset: 0 };

/** Opens the stores, finds the organization or project, and closes the stores afterwards. */
export async function withLocalCaller(
  { on }: Operation,
  options: CallOptions,
  work: (caller: Caller) => Promise<void>,
  open: OpenStores = (metadata) => new LocalStores(metadata, options),
): Promise<void> {
  await withMetadata(options, async (metadata) => {
    using stores = open(metadata, options);
    const project = on === "project" ? resolveProject(metadata, options.project) : undefined;
    const organization =
      on === "organization" ? resolveOrganization(metadata, options.organization) : undefined;
    await work(localCaller({ metadata, stores, options }, { project, organization }));
  });
}

interface Opened {
  metadata: Metadata;
  stores: LocalStores;
  options: CallOptions;
}

function localCaller(
  opened: Opened,
  { project, organization }: { project?: Project | undefined; organization?: Organization | undefined },
): Caller {
  const { metadata, stores, options } = opened;
  const organizationId = organization?.id ?? project?.organizationId;
  // Lookups in a project's command may be about its organization, such as a role by its name.
  const owner =
    organization ??
    (organizationId === undefined ? undefined : findOrganization(metadata.db, organizationId));
  const actor = {
    kind: "operator",
    userEmail: options.user,
    skipsApproval: options.confirm,
    // Found when an operation needs it: a user who decides, by contrast, need not be a member.
    get author() {
      if (organizationId === undefined) return osUserAuthor();
      return creatingAuthor(metadata, organizationId, options.user);
    },
  };
  const run = (operation: Operation, input: Members, page: object = {}) =>
    (operation.run as Run)(
      { stores, actor, organization: owner, project, now: changeTime(), baseUrl: () => getBaseUrl(options) },
      { ...checked(operation, input), ...page },
    );
  return {
    call: async (operation, input) => await run(operation, input),
    list: async (operation, input = {}) =>
      ((await run(operation, input, allResults)) as { results: unknown[] }).results,
    callAll: async (operation, inputs) =>
      metadata.change(() => runAll(inputs, (input) => run(operation, input))),
    in: (projectId) => localCaller(opened, { project: resolveProjects(metadata, projectId)[0] }),
  };
}

/** Of the running server, else from the settings of this command and its environment. */
async function getBaseUrl(options: CallOptions): Promise<string> {
  const { getConsoleUrl: whereConsoleIs } = await import("../console-link.ts");
  return await whereConsoleIs(configFromOptions(options as Record<string, unknown>));
}

/** @throws {ApprovalRequiredError} names the protected flags of all inputs. */
function runAll(inputs: readonly Members[], run: (input: Members) => unknown): unknown[] {
  const keys = new Set<string>();
  const outputs = inputs.map((input) => {
    try {
      return run(input);
    } catch (error) {
      if (!(error instanceof ApprovalRequiredError)) throw error;
      for (const key of error.keys) keys.add(key);
      return undefined;
    }
  });
  if (keys.size > 0) throw new ApprovalRequiredError([...keys].sort());
  return outputs;
}

/** Validates the input as the API does. @throws {InvalidFieldError} */
function checked(operation: Operation, input: Members): Members {
  if (operation.http.takesRawBody) return input;
  if (operation.readQuery !== undefined && sendsQuery(operation))
    return { ...input, ...operation.readQuery(getQuery(input)) };
  const others = object(Object.fromEntries(otherMembers(operation)));
  return { ...input, ...parseFields(others, input) };
}
