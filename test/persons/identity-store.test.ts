import { type IdentityStoreUnderTest, identityStoreConformance } from "./identity-store-conformance.ts";
import { countedEvents, TestPersons } from "./support.ts";

function underTest(people: TestPersons): IdentityStoreUnderTest {
  return {
    store: people.store,
    persons: async (projectId) => people.persons(projectId),
    counted: async (projectId) => countedEvents(people.db, projectId),
    reopen: async () => {
      people.reopen();
      return underTest(people);
    },
    close: async () => people[Symbol.dispose](),
  };
}

identityStoreConformance("SQLite", async () => underTest(new TestPersons()));
