/** Ids of 64 bits, sent as numbers that JavaScript's do not hold: no one becomes another user, and no digit is lost. */

import { describe, expect, test } from "bun:test";
import { server, useServer } from "../support/use-server.ts";

const one = "9007199254746192393";
const other = "9007199254746192394";

useServer();

/** A body whose numbers no JSON.stringify has seen. */
const send = async (path: string, members: string) => {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    body: `{"api_key":"${server.token}",${members}}`,
    headers: { "Content-Type": "application/json" },
  });
  expect(response.status).toBe(200);
  return await response.text();
};
const capture = (event: string, distinctId: string, properties: string) =>
  send("/capture/", `"event":"${event}","distinct_id":${distinctId},"properties":${properties}`);

test("merges by $identify and $create_alias are with the person who has the id", async () => {
  for (const [id, user] of [
    [one, "a"],
    [other, "b"],
  ]) {
    await capture("before", id!, "{}");
    await capture("$identify", `"${user}"`, `{"$anon_distinct_id":${id}}`);
    await capture("$create_alias", `"${user}"`, `{"alias":${id}1}`);
  }
  await server.eventsWhenStored(6);
  const persons = await server.query(
    "SELECT list_sort(distinct_ids)::VARCHAR AS ids FROM persons ORDER BY ids",
  );
  expect(persons.map(({ ids }) => ids)).toEqual([`[${one}, ${one}1, a]`, `[${other}, ${other}1, b]`]);
});

test("an event's name", async () => {
  await send("/capture/", `"event":${one},"distinct_id":"named"`);
  const names = () => server.query(`SELECT event FROM events WHERE distinct_id = 'named'`);
  expect(await waitFor(names)).toEqual([{ event: one }]);
});

describe("groups", () => {
  test("by $group_key and $groups are the ones with these keys", async () => {
    for (const key of [one, other]) {
      await capture(
        "$groupidentify",
        '"g"',
        `{"$group_type":"shop","$group_key":${key},"$group_set":{"ref":${key}}}`,
      );
      await capture("bought", `"in ${key}"`, `{"$groups":{"shop":${key}}}`);
    }
    const bought = () => server.query("SELECT 1 FROM events WHERE event = 'bought'");
    await waitFor(bought, 2);
    const text = await (await server.api("/api/projects/1/groups/?group_type_index=0")).text();
    for (const key of [one, other]) {
      expect(text).toContain(`"group_key":"${key}"`);
      expect(text).toContain(`"ref":${key}`);
      const events = await (await server.api(`/api/projects/1/events/?distinct_id=in ${key}`)).text();
      expect(events).toContain(`"$group_0":"${key}"`);
    }
  });

  test("are found by flags", async () => {
    const filters = {
      aggregation_group_type_index: 0,
      groups: [
        {
          properties: [{ key: "ref", type: "group", group_type_index: 0, value: [one], operator: "exact" }],
          rollout_percentage: 100,
        },
      ],
    };
    await server.api("/api/projects/1/feature_flags/", {
      method: "POST",
      body: { key: "by-shop", filters },
    });
    expect(await flagFor("by-shop", `"distinct_id":"x","groups":{"shop":${one}}`)).toBe(true);
    expect(await flagFor("by-shop", `"distinct_id":"x","groups":{"shop":${other}}`)).toBe(false);
  });
});

describe("a person's property", () => {
  test("is stored and shown with all digits", async () => {
    await capture("told", '"p"', `{"$set":{"account":${one}}}`);
    await capture("told", '"q"', `{"$set":{"account":${other},"list":[${other}]}}`);
    await capture("told", '"q"', `{"$set":{"list":[${one}]}}`);
    await waitFor(() => server.query("SELECT 1 FROM events WHERE event = 'told'"), 3);
    const shown = async (id: string) =>
      await (await server.api(`/api/projects/1/persons/?distinct_id=${id}`)).text();
    expect(await shown("p")).toContain(`"account":${one}`);
    expect(await shown("q")).toContain(`"account":${other},"list":[${one}]`);
    const found = await server.query(
      "SELECT properties->>'account' AS account FROM persons WHERE properties->>'account' IS NOT NULL ORDER BY 1",
    );
    expect(found).toEqual([{ account: one }, { account: other }]);
  });

  test.each([
    ["a text", [one], true],
    ["a text of another", [other], false],
    // A definition's numbers are JavaScript's: as before, equal is what becomes the same one.
    ["a number", [Number(one)], true],
  ])("matches a condition on %s, stored or sent", async (name, value, matches) => {
    const key = `by-account-${name!.replaceAll(" ", "-")}`;
    const condition = { key: "account", type: "person", value, operator: "exact" };
    await server.api("/api/projects/1/feature_flags/", {
      method: "POST",
      body: { key, filters: { groups: [{ properties: [condition], rollout_percentage: 100 }] } },
    });
    expect(await flagFor(key, `"distinct_id":"p"`)).toBe(matches);
    expect(await flagFor(key, `"distinct_id":"new","person_properties":{"account":${one}}`)).toBe(matches);
    expect(await flagFor(key, `"distinct_id":"new","person_properties":{"account":"${one}"}`)).toBe(matches);
  });
});

test("a condition matches the persons and groups with these digits", async () => {
  const blastRadius = async (body: object) =>
    (
      await (
        await server.api("/api/projects/1/feature_flags/user_blast_radius/", { method: "POST", body })
      ).json()
    ).users_affected;
  const condition = (type: string, key: string, value: string[], more = {}) => ({
    properties: [{ key, type, value, operator: "exact", ...more }],
  });
  expect(await blastRadius({ condition: condition("person", "account", [one]) })).toBe(1);
  expect(await blastRadius({ condition: condition("person", "account", ["9007199254746192000"]) })).toBe(0);
  const ofGroup = condition("group", "ref", [other], { group_type_index: 0 });
  expect(await blastRadius({ condition: ofGroup, group_type_index: 0 })).toBe(1);
  const groups = encodeURIComponent(`{"shop":${one}}`);
  const path = `/api/projects/1/feature_flags/evaluation_reasons/?distinct_id=x&groups=${groups}`;
  const reasons = (await (await server.api(path)).json()) as Record<string, { value: unknown }>;
  expect(reasons["by-shop"]!.value).toBe(true);
});

async function flagFor(key: string, members: string): Promise<boolean> {
  const { flags } = JSON.parse(await send("/flags/?v=2", members));
  return flags[key].enabled;
}

async function waitFor(ask: () => Promise<Record<string, unknown>[]>, count = 1) {
  for (;;) {
    const rows = await ask();
    if (rows.length >= count) return rows;
  }
}
