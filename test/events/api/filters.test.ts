/** Times and filters in the address of the event list, at the edges of what events can have. */

import { beforeAll, expect, test } from "bun:test";
import { server, useServer } from "../../support/use-server.ts";

useServer();
beforeAll(async () => {
  await server.batch([
    { event: "first", distinct_id: "a", timestamp: "0000-01-01T00:00:00Z", properties: { n: 5 } },
    { event: "second", distinct_id: "a", timestamp: "0001-01-01T00:00:00Z", properties: { n: 50 } },
  ]);
  await server.eventsWhenStored(2);
});

const list = (query: string) => server.api(`/api/projects/1/events/?${query}`);

test("a time that no event can have is rejected", async () => {
  for (const name of ["after", "before"])
    for (const time of [
      "99999999999999999999",
      "-99999999999999999999",
      "9223372036855000",
      "1e19",
      "soon",
      "-62167219201",
    ]) {
      const answer = await list(`${name}=${time}`);
      expect([time, answer.status, await answer.json()]).toMatchObject([time, 400, { attr: name }]);
    }
  for (const time of ["0000-01-01", "9999-12-31T23:59:59Z", "1700000000"])
    expect((await list(`after=${time}`)).status).toBe(200);
});

test("an empty filter is ignored", async () => {
  for (const name of [
    "event",
    "distinct_id",
    "person_id",
    "uuid",
    "after",
    "before",
    "historical",
    "order",
    "limit",
    "cursor",
    "offset",
    "properties",
  ]) {
    const answer = await list(`${name}=`);
    expect([name, answer.status]).toEqual([name, 200]);
    expect([name, ((await answer.json()) as Page).results.length]).toEqual([name, 2]);
  }
});

test("pages continue after events of every year", async () => {
  for (const [order, names] of [
    ["timestamp", ["first", "second"]],
    ["-timestamp", ["second", "first"]],
  ] as const) {
    const page = (await (await list(`order=${order}&limit=1`)).json()) as Page;
    const rest = (await (await server.api(page.next!)).json()) as Page;
    expect([...page.results, ...rest.results].map(({ event }) => event)).toEqual([...names]);
  }
});

test("numbers between two others are found, as among persons", async () => {
  const named = async (operator: string) => {
    const properties = encodeURIComponent(JSON.stringify([{ key: "n", operator, value: [1, 10] }]));
    return ((await (await list(`properties=${properties}`)).json()) as Page).results.map(
      ({ event }) => event,
    );
  };
  expect([await named("between"), await named("not_between")]).toEqual([["first"], ["second"]]);
});

test("HEAD does not report an empty list", async () => {
  const answer = await server.api("/api/projects/1/events/", { method: "HEAD" });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
  expect(answer.headers.get("content-length")).toBeNull();
  expect(await answer.text()).toBe("");
  const known = await server.api("/api/projects/1/feature_flags/", { method: "HEAD" });
  const full = await server.api("/api/projects/1/feature_flags/");
  expect(Number(known.headers.get("content-length"))).toBe((await full.text()).length);
});

interface Page {
  next: string | null;
  results: { event: string }[];
}
