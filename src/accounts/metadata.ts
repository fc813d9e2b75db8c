/** The metadata store with what every request asks of it, in memory. */

import type { OpenOptions } from "../lib/sqlite/open.ts";
import { MetadataDb } from "./db.ts";
import { KeyRing } from "./key-ring.ts";
import { ProjectDirectory } from "./project-directory.ts";

export class Metadata extends MetadataDb {
  /** The projects by id and by key. */
  readonly projects = new ProjectDirectory(this.db, this.changes);
  /** The keys in use. */
  readonly keyRing = new KeyRing(this.db, this.changes);
}

/**
 * Opens the store and brings it to the newest schema.
 *
 * @param path the SQLite file; created when missing.
 * @throws {DataFromNewerVersion} the file was written by a newer Flagkeep.
 */
export function openMetadata(path: string, options?: Pick<OpenOptions, "synchronous">): Metadata {
  return new Metadata(path, options);
}
