/** Reads what of a project goes into its document. */

import type { Reading } from "../../accounts/db.ts";
import { deletedCohorts, readCohorts } from "../../cohorts/cohorts.ts";
import { exportedFields, type Flag, storedFields } from "../fields.ts";
import { withHiddenPayloads } from "../rules/types.ts";
import { readFlags } from "../store/flag.ts";
import type { PayloadCipher } from "../store/flag-writes.ts";
import type { ProjectContent, StoredFlag } from "./document.ts";

export interface ContentOptions {
  projectId: number;
  groupTypes: readonly { index: number; name: string }[];
  /** Opens the payloads that are secret; without it a placeholder stands in their place. */
  payloads?: PayloadCipher;
}

/** The flags and cohorts of a project that are not deleted. */
export function readContent(
  db: Reading,
  { projectId, groupTypes, payloads }: ContentOptions,
): ProjectContent {
  return {
    flags: readFlags(db, projectId).map((flag) => storedFlag(flag, payloads)),
    cohorts: readCohorts(db, projectId).map(({ id, name, description, isStatic, filters }) => ({
      ...{ id, name, description, isStatic, filters },
    })),
    deletedCohorts: deletedCohorts(db, projectId),
    groupTypes,
  };
}

/** A flag under the names of the API. */
export function storedFlag(flag: Flag, payloads?: PayloadCipher): StoredFlag {
  const all = { ...storedFields(flag), filters: payloads ? payloads.open(flag) : withHiddenPayloads(flag) };
  const fields = exportedFields.map(({ name }) => [name, all[name as keyof typeof all]]);
  return { id: flag.id, key: flag.key, fields: Object.fromEntries(fields) };
}
