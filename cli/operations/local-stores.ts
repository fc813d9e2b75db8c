/** The stores of a data directory, opened lazily. */

import type { Metadata } from "../../src/accounts/metadata.ts";
import { type IngestionReader, SqliteIngestionReader } from "../../src/persons/ingestion-reader.ts";
import type { PersonsDb } from "../../src/persons/open.ts";
import type { PersonReader } from "../../src/persons/person-reader.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { clusterPersons } from "../cluster-stores.ts";
import { openPersonsToRead } from "../stores.ts";
import type { CallOptions } from "./server.ts";

export class LocalStores implements Disposable {
  private openedPersons: PersonsDb | undefined;

  constructor(
    readonly metadata: Metadata,
    protected readonly options: CallOptions,
  ) {}

  get people(): PersonsDb {
    this.openedPersons ??= openPersonsToRead(this.options);
    return this.openedPersons;
  }

  get persons(): PersonReader {
    return clusterPersons() ?? new SqlitePersonReader(this.people);
  }

  get ingestion(): IngestionReader {
    return new SqliteIngestionReader(this.people);
  }

  [Symbol.dispose](): void {
    this.openedPersons?.$client.close();
  }
}

export type OpenStores = (metadata: Metadata, options: CallOptions) => LocalStores;
