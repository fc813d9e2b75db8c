/** The metadata store with in-memory indexes for what every request reads. */

import { MetadataDb, type MetadataOptions } from "./db.ts";
import { ApiKeyIndex } from "./key-index.ts";
import { ProjectDirectory } from "./project-directory.ts";

export class Metadata extends MetadataDb {
  readonly projects = new ProjectDirectory(this.db, this.changes);
  readonly keyRing = new ApiKeyIndex(this.db, this.changes);
}

/**
 * Opens the store and migrates it to the newest schema.
 *
 * @param path the SQLite file; created when missing.
 * @throws {NewerDataVersionError} the file was written by a newer Flagkeep.
 */
export function openMetadata(path: string, options?: MetadataOptions): Metadata {
  return new Metadata(path, options);
}
