/** The stores of a data directory, opened lazily. */

import type { Metadata } from "../../src/accounts/metadata.ts";
import { type IngestionReader, SqliteIngestionReader } from "../../src/persons/ingestion-reader.ts";
import type { PeopleDb } from "../../src/persons/open.ts";
import type { PersonReader } from "../../src/persons/person-reader.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { openPeopleToRead } from "../stores.ts";
import type { CallOptions } from "./server.ts";

export class LocalStores implements Disposable {
  private openedPeople: PeopleDb | undefined;

  constructor(
    readonly metadata: Metadata,
    protected readonly options: CallOptions,
  ) {}

  get people(): PeopleDb {
    this.openedPeople ??= openPeopleToRead(this.options);
    return this.openedPeople;
  }

  get persons(): PersonReader {
    return new SqlitePersonReader(this.people);
  }

  get ingestion(): IngestionReader {
    return new SqliteIngestionReader(this.people);
  }

  [Symbol.dispose](): void {
    this.openedPeople?.$client.close();
  }
}

export type OpenStores = (metadata: Metadata, options: CallOptions) => LocalStores;
