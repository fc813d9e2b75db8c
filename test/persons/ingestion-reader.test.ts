import { SqliteIngestionReader } from "../../src/persons/ingestion-reader.ts";
import { ingestionReaderConformance } from "./ingestion-reader-conformance.ts";

ingestionReaderConformance("SqliteIngestionReader", async (people) => ({
  reader: new SqliteIngestionReader(people.db),
  close: async () => {},
}));
