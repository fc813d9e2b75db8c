/** The first organisation, project, user and key of an empty data directory. */

import { sql } from "drizzle-orm";
import { AlreadyInitialised } from "./errors.ts";
import { bumpRevision, type Metadata, type Reading } from "./metadata.ts";
import { insertOrganization } from "./organizations.ts";
import { insertKey } from "./personal-keys.ts";
import { insertProject } from "./projects.ts";
import { organization, user } from "./schema.ts";
import { insertUser } from "./users.ts";

/** What is printed once; the clear keys are not kept, except those of the project. */
export interface Initialised {
  organization: { id: string; name: string };
  project: { id: number; name: string; api_key: string; secret_api_key: string };
  user: { id: number; email: string };
  personal_api_key: string;
}

/** Whether `initialise` was done. */
export function isInitialised(db: Reading): boolean {
  return (db.select({ count: sql<number>`count(*)` }).from(organization).get()?.count ?? 0) > 0;
}

/**
 * Makes the first organisation, its project, its owner and a key that may do everything.
 *
 * @param input.projectApiKey a `phc_` key that clients use already.
 * @throws {AlreadyInitialised} there is an organisation; nothing was changed.
 * @throws {InvalidField}       a name is empty, the address is not one, the key is not a project key.
 */
export function initialise(
  metadata: Metadata,
  input: { organization: string; project: string; email: string; timezone?: string; projectApiKey?: string },
  now = new Date(),
): Initialised {
  return metadata.change((t) => {
    if (isInitialised(t)) throw new AlreadyInitialised();
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
