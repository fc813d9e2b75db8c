/** Persons, groups, and what ingestion tells about a project, over the API. */

import { describe, expect, test } from "bun:test";
import { addGroup, addPerson } from "../support/management-people.ts";
import { TestServer } from "../support/management-server.ts";

describe("persons and groups", () => {
  test("persons are listed, searched, found by id", async () => {
    using server = new TestServer();
    const kim = addPerson(server, ["kim", "anon"], { email: "kim@x.com" });
    addPerson(server, ["lee"]);
    const list = await server.ask("GET", "/api/projects/1/persons/?limit=1");
    expect(list.body).toMatchObject({ previous: null, results: [{ name: "lee", distinct_ids: ["lee"] }] });
    const rest = await server.ask("GET", list.body.next.replace("http://localhost", ""));
    const expected = {
      id: kim,
      uuid: kim,
      name: "kim@x.com",
      distinct_ids: ["kim", "anon"],
      properties: { email: "kim@x.com" },
      is_identified: false,
      created_at: "2026-03-01T12:00:00.000000Z",
      version: 0,
    };
    expect(rest.body).toMatchObject({ next: null, results: [expected] });
    const upper = kim.toUpperCase();
    const bare = kim.replaceAll("-", "");
    for (const query of [
      "distinct_id=anon",
      "search=KIM@",
      ...[upper, bare].flatMap((uuid) => [`uuid=${uuid}`, `search=${uuid}`]),
    ]) {
      expect((await server.ask("GET", `/api/projects/1/persons/?${query}`)).body.results).toEqual([expected]);
    }
    const own = crypto.randomUUID();
    addPerson(server, [own]);
    expect((await server.ask("GET", `/api/projects/1/persons/?search=${own}`)).body.results).toHaveLength(1);
    for (const query of ["distinct_id=", "uuid=", "search=&distinct_id=&uuid=&cohort=&properties="]) {
      const { body } = await server.ask("GET", `/api/projects/1/persons/?${query}`);
      expect([query, body.results.length]).toEqual([query, 3]);
    }
    for (const [operator, value, code] of [
      ["resembles", "x", "invalid_operator"],
      ["regex", "(?=a)", "invalid_input"],
      ["regex", 5, "invalid_value"],
    ] as const) {
      const properties = encodeURIComponent(JSON.stringify([{ key: "email", operator, value }]));
      expect(await server.ask("GET", `/api/projects/1/persons/?properties=${properties}`)).toMatchObject({
        status: 400,
        body: { attr: "properties", code },
      });
    }
    for (const query of ["distinct_id=x", "uuid=x", `uuid=${own}`]) {
      expect((await server.ask("GET", `/api/projects/1/persons/?${query}`)).body.results).toEqual([]);
    }
    for (const uuid of [kim, upper, bare])
      expect((await server.ask("GET", `/api/projects/1/persons/${uuid}/`)).body).toEqual(expected);
    expect((await server.ask("GET", "/api/projects/1/persons/x/")).status).toBe(404);
  });
  test("groups by type, in pages, and by key", async () => {
    using server = new TestServer();
    addGroup(server, 0, "acme", { plan: "pro" }, "company");
    addGroup(server, 0, "beta");
    expect((await server.ask("GET", "/api/projects/1/groups_types/")).body).toMatchObject([
      { group_type: "company", group_type_index: 0 },
    ]);
    const page = await server.ask("GET", "/api/projects/1/groups/?group_type_index=0&limit=1");
    expect(page.body.results).toMatchObject([{ group_key: "beta" }]);
    const next = await server.ask("GET", page.body.next.replace("http://localhost", ""));
    expect(next.body).toMatchObject({
      next: null,
      results: [{ group_key: "acme", group_properties: { plan: "pro" } }],
    });
    const searched = await server.ask("GET", "/api/projects/1/groups/?group_type_index=0&search=%20CME%20");
    expect(searched.body).toMatchObject({ next: null, results: [{ group_key: "acme" }] });
    const found = await server.ask("GET", "/api/projects/1/groups/find?group_type_index=0&group_key=acme");
    expect(found.body.group_key).toBe("acme");
    expect(
      (await server.ask("GET", "/api/projects/1/groups/find?group_type_index=0&group_key=x")).status,
    ).toBe(404);
    expect(await server.ask("GET", "/api/projects/1/groups/")).toMatchObject({
      status: 400,
      body: { code: "required", detail: "This query parameter is required.", attr: "group_type_index" },
    });
    expect((await server.ask("GET", "/api/projects/1/")).body.group_types).toHaveLength(1);
  });
  test("pages of large ones are shorter, and lead on", async () => {
    using server = new TestServer();
    const { $client } = server.deps.people;
    const text = "x".repeat(500_000);
    $client.transaction(() => {
      for (let n = 0; n < 100; n++) {
        addPerson(server, [`p${n}`], { text });
        addGroup(server, 0, `g${n}`, { text }, n === 0 ? "company" : undefined);
      }
    })();
    for (const path of ["persons/?", "persons/?search=p&", "groups/?group_type_index=0&"]) {
      const seen: string[] = [];
      let pages = 0;
      for (let next = `/api/projects/1/${path}limit=1000`; next !== null; pages++) {
        const { body } = await server.ask("GET", next.replace("http://localhost", ""));
        expect(body.results.length).toBeLessThan(40);
        for (const { group_key, distinct_ids } of body.results) seen.push(group_key ?? distinct_ids[0]);
        next = body.next;
      }
      expect([path, seen.length, new Set(seen).size, pages]).toEqual([path, 100, 100, 4]);
    }
  });
  test("pages are no longer than others can wait for, and lead on", async () => {
    using server = new TestServer();
    const { $client } = server.deps.people;
    $client.transaction(() => {
      for (let n = 0; n < 10_001; n++) {
        addPerson(server, [`p${n}`]);
        addGroup(server, 0, `g${n}`, {}, n === 0 ? "company" : undefined);
      }
    })();
    // A search finds no more than 2,000.
    for (const path of ["persons/?", "groups/?group_type_index=0&"]) {
      const page = await server.ask("GET", `/api/projects/1/${path}limit=100000000`);
      expect([path, page.body.results.length]).toEqual([path, 10_000]);
      const rest = await server.ask("GET", page.body.next.replace("http://localhost", ""));
      expect([path, rest.body.results.length, rest.body.next]).toEqual([path, 1, null]);
    }
  });
});

describe("reports of ingestion", () => {
  test("warnings, usage and spikes of the project", async () => {
    using server = new TestServer();
    const client = server.deps.people.$client;
    client.run(
      "INSERT INTO usage_day VALUES (1, '2026-03-01', 2, 3, 10, 1, 4), (2, '2026-03-01', 9, 9, 9, 9, 9)",
    );
    client.run(
      "INSERT INTO ingestion_warning VALUES (1, 1, 'odd', 'kim', 5, '{\"x\":1}', 1000000, 2000000, 3), (2, 1, 'odd', 'lee', 5, '{}', 1, 3000001, 1)",
    );
    client.run(
      "INSERT INTO spike VALUES (1, 1, 1000000, NULL, 1000000, 5000, 12.5, '[[\"e\",3]]', '[[\"kim\",2]]')",
    );
    expect((await server.ask("GET", "/api/projects/1/usage/")).body).toEqual({
      results: [
        {
          date: "2026-03-01",
          identified: 2,
          anonymous: 3,
          historical: 10,
          billable: 5,
          duplicates: 1,
          dropped: 4,
        },
      ],
      totals: { identified: 2, anonymous: 3, historical: 10, billable: 5, duplicates: 1, dropped: 4 },
    });
    expect((await server.ask("GET", "/api/projects/1/usage/?date_from=2026-03-02")).body.results).toEqual([]);
    expect((await server.ask("GET", "/api/projects/1/usage/?date_from=x")).body).toMatchObject({
      attr: "date_from",
    });
    expect((await server.ask("GET", "/api/projects/1/ingestion_warnings/")).body.results).toMatchObject([
      {
        type: "odd",
        count: 4,
        last_seen: "1970-01-01T00:00:03.000001Z",
        warnings: [{ count: 1 }, { details: { x: 1 } }],
      },
    ]);
    expect((await server.ask("GET", "/api/projects/1/ingestion_warnings/?type=x")).body.results).toEqual([]);
    expect((await server.ask("GET", "/api/projects/1/spikes/")).body.results).toEqual([
      {
        id: 1,
        started_at: "1970-01-01T00:00:01.000000Z",
        ended_at: null,
        peak_per_minute: 5000,
        usual_per_minute: 12.5,
        events: [{ event: "e", count: 3 }],
        distinct_ids: [{ distinct_id: "kim", count: 2 }],
      },
    ]);
  });
});
