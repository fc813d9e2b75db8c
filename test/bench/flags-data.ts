/** The flags and persons that flag requests are measured with. */

import { type ServerProcess, until } from "../support/server.ts";

const flagCount = 100;
export const personCount = 5_000;

/** Every kind of flag that people have: shares, properties, variants, payloads, versions, several conditions. */
export async function createFlags(server: ServerProcess): Promise<void> {
  const property = (key: string, operator: string, value: unknown) => ({
    type: "person",
    key,
    operator,
    value,
  });
  for (let i = 0; i < flagCount; i++) {
    const conditions = [
      { properties: [], rollout_percentage: i },
      { properties: [property("plan", "exact", ["pro", "enterprise"])], rollout_percentage: 100 },
      {
        properties: [property("email", "icontains", `@company${i % 10}.`), property("logins", "gt", "5")],
        rollout_percentage: 50,
      },
      { properties: [property("$app_version", "semver_gte", `1.${i % 7}.0`)], rollout_percentage: 30 },
    ];
    const variants = ["control", "one", "two", "three"].map((key) => ({ key, rollout_percentage: 25 }));
    const filters = {
      groups: [conditions[i % 4]!, conditions[(i + 1) % 4]!],
      ...(i % 3 === 0 ? { multivariate: { variants }, payloads: { one: '{"color":"red","size":12}' } } : {}),
    };
    const response = await server.api("/api/projects/1/feature_flags/", {
      method: "POST",
      body: { key: `flag-${i}`, name: `Flag number ${i}`, filters, _should_create_usage_dashboard: false },
    });
    if (response.status !== 201) throw new Error(await response.text());
  }
}

export async function createPersons(server: ServerProcess): Promise<void> {
  for (let from = 0; from < personCount; from += 500) {
    const batch = Array.from({ length: 500 }, (_, index) => {
      const number = from + index;
      const $set = {
        plan: ["free", "pro", "trial"][number % 3],
        email: `user${number}@company${number % 20}.example.com`,
        logins: number % 12,
        $app_version: `1.${number % 9}.${number % 4}`,
        country: "DE",
        language: "de-DE",
        company_size: number % 500,
        referrer: "https://www.example.com/some/page/somewhere",
      };
      return { event: "$set", distinct_id: `user-0-${number}@shop.example`, properties: { $set } };
    });
    const response = await server.batch(batch);
    if (response.status !== 200) throw new Error(await response.text());
  }
  await until(async () => {
    const answer = await server.api(
      `/api/projects/1/persons/?distinct_id=user-0-${personCount - 1}@shop.example`,
    );
    return ((await answer.json()) as { results: unknown[] }).results.length === 1;
  }, "the persons are stored");
}
