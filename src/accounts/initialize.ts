/** Creates the first organization, project, user and key of an empty data directory. */

import { type Static, Type } from "@sinclair/typebox";
import { sql } from "drizzle-orm";
import { AppError } from "../lib/errors.ts";
import { strictObject } from "../lib/schema.ts";
import { bumpRevision, type Reading } from "./db.ts";
import type { Metadata } from "./metadata.ts";
import { insertOrganization } from "./organizations.ts";
import { insertKey } from "./personal-keys.ts";
import { insertProject } from "./projects.ts";
import { organization, user } from "./schema.ts";
import { insertUser } from "./users.ts";

/** Printed once; clear keys are not stored, except those of the project. */
export const Initialized = strictObject({
  organization: strictObject({ id: Type.String(), name: Type.String() }),
  project: strictObject({
    id: Type.Integer(),
    name: Type.String(),
    api_key: Type.String({ pattern: "^phc_" }),
    secret_api_key: Type.String({ pattern: "^phs_" }),
  }),
  user: strictObject({ id: Type.Integer(), email: Type.String() }),
  personal_api_key: Type.String({ pattern: "^phx_" }),
});
export type Initialized = Static<typeof Initialized>;

/** The store already has an organization. */
export class AlreadyInitializedError extends AppError {
  readonly code = "already_initialised";
  override readonly hint = "Use the existing keys, `flagkeep keys create`, or another data directory.";
  constructor() {
    super("This data directory already contains an organization.");
  }
}

export function isInitialized(db: Reading): boolean {
  return (db.select({ count: sql<number>`count(*)` }).from(organization).get()?.count ?? 0) > 0;
}

/**
 * Creates the first organization, its project, its owner and an unrestricted key.
 *
 * @param input.projectApiKey a `phc_` key that clients already use.
 * @throws {AlreadyInitializedError} an organization exists; nothing was changed.
 * @throws {InvalidFieldError}       a name is empty, the address or the project key is invalid.
 */
export function initialize(
  metadata: Metadata,
  input: { organization: string; project: string; email: string; timezone?: string; projectApiKey?: string },
  now = new Date(),
): Initialized {
  return metadata.change((t) => {
    if (isInitialized(t)) throw new AlreadyInitializedError();
    const owner = insertOrganization(t, input.organization, now);
    const person = insertUser(t, { email: input.email, organizationId: owner.id, level: "owner" }, now);
    const first = insertProject(
      t,
      {
        organizationId: owner.id,
        name: input.project,
        timezone: input.timezone,
        projectApiKey: input.projectApiKey,
      },
      person.id,
      now,
    );
    t.update(user).set({ currentProjectId: first.id }).run();
    const { value } = insertKey(t, person, { label: "First key", scopes: ["*"] }, { now });
    bumpRevision(t, "keys");
    return {
      organization: { id: owner.id, name: owner.name },
      project: {
        id: first.id,
        name: first.name,
        api_key: first.apiToken,
        secret_api_key: first.secretToken,
      },
      user: { id: person.id, email: person.email },
      personal_api_key: value,
    };
  });
}
