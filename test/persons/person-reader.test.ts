import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { personReaderConformance } from "./person-reader-conformance.ts";

personReaderConformance("SqlitePersonReader", async (people) => ({
  reader: new SqlitePersonReader(people.db),
  close: async () => {},
}));
