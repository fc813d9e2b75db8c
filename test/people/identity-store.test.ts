import { eq } from "drizzle-orm";
import { usageDay } from "../../src/people/schema.ts";
import { type IdentityStoreUnderTest, identityStoreConformance } from "./identity-store-conformance.ts";
import { TestPeople } from "./support.ts";

function underTest(people: TestPeople): IdentityStoreUnderTest {
  return {
    store: people.store,
    persons: async (projectId) => people.persons(projectId),
    counted: async (projectId) => {
      const days = people.db.select().from(usageDay).where(eq(usageDay.projectId, projectId)).all();
      return days.reduce(
        (sum, { identified, anonymous, historical }) => sum + identified + anonymous + historical,
        0,
      );
    },
    reopen: async () => {
      people.reopen();
      return underTest(people);
    },
    close: async () => people[Symbol.dispose](),
  };
}

identityStoreConformance("SQLite", async () => underTest(new TestPeople()));
