/** Who is in a cohort, found by its conditions or put there, with the real engine behind the routes. */

import { describe, expect, test } from "bun:test";
import { findCohort } from "../../src/cohorts/cohorts.ts";
import { addCohortMembers } from "../../src/persons/cohort-members.ts";
import { applyDeletion } from "../../src/persons/deletion.ts";
import { note } from "../persons/support.ts";
import { ServerWithEngine } from "../support/engine.ts";
import { addPerson, emailContains } from "../support/management-people.ts";
import { flagsPath, type TestServer } from "../support/management-server.ts";

const cohorts = "/api/projects/1/cohorts/";

/** Waits until the members of a cohort were looked for. */
async function settled(server: TestServer, id: number) {
  for (let waited = 0; waited < 200; waited++) {
    const { body } = await server.ask("GET", `${cohorts}${id}/`);
    if (!body.is_calculating) return body;
    await Bun.sleep(5);
  }
  throw new Error(`Cohort ${id} is still calculating.`);
}

const either = (...values: object[]) => ({ properties: { type: "OR", values: [{ type: "AND", values }] } });

describe("the persons of a cohort", () => {
  test("of either kind; with other filters, a name or a search as well", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    for (let n = 0; n < 6; n++) {
      addPerson(server, [`p${n}`], {
        email: `p${n}@${n % 2 ? "odd" : "even"}.com`,
        plan: n < 3 ? "pro" : "free",
      });
    }
    await server.ask("POST", cohorts, { body: { name: "Even", filters: either(emailContains("even")) } });
    await server.ask("POST", cohorts, { body: { name: "List", is_static: true } });
    addCohortMembers(server.deps.people, 1, 2, { distinctIds: ["p1", "p2", "p5"] });
    const list = async (query: string) => {
      const { status, body } = await server.ask("GET", `/api/projects/1/persons/?${query}`);
      expect([query, status]).toEqual([query, 200]);
      return body.results.map((person: { distinct_ids: string[] }) => person.distinct_ids[0]);
    };
    const pro = encodeURIComponent(JSON.stringify([{ key: "plan", value: "pro", operator: "exact" }]));
    expect(await list("cohort=1")).toEqual(["p0", "p2", "p4"]);
    expect(await list("cohort=2")).toEqual(["p1", "p2", "p5"]);
    expect(await list(`cohort=2&properties=${pro}`)).toEqual(["p1", "p2"]);
    expect(await list("cohort=1&search=p4")).toEqual(["p4"]);
    expect(await list("cohort=1&search=odd")).toEqual([]);
    expect(await list("cohort=2&distinct_id=p5")).toEqual(["p5"]);
    expect(await list("cohort=2&distinct_id=p0")).toEqual([]);
    expect(await list("cohort=2&distinct_id=nobody")).toEqual([]);
    expect(await list("cohort=")).toHaveLength(6);
    const page = await server.ask("GET", "/api/projects/1/persons/?cohort=1&limit=2");
    const rest = await server.ask("GET", page.body.next.replace("http://localhost", ""));
    expect([page.body.results.length, rest.body.results.length, rest.body.next]).toEqual([2, 1, null]);
    for (const wrong of ["99", "x"]) {
      expect(await server.ask("GET", `/api/projects/1/persons/?cohort=${wrong}`)).toMatchObject({
        status: 400,
        body: { attr: "cohort" },
      });
    }
  });
});

describe("a cohort by rules", () => {
  test("is counted, listed, and counted again when the rules change", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    for (let n = 0; n < 5; n++)
      addPerson(server, [`p${n}`], { email: `p${n}@${n % 2 ? "odd" : "even"}.com` });
    const created = await server.ask("POST", cohorts, {
      body: { name: "Even", filters: either(emailContains("even")) },
    });
    expect(created).toMatchObject({ status: 201, body: { id: 1, is_static: false, experiment_set: [] } });
    expect(await settled(server, 1)).toMatchObject({ count: 3, errors_calculating: 0 });
    const page = await server.ask("GET", `${cohorts}1/persons/?limit=2`);
    expect(page.body.results.map((person: { name: string }) => person.name)).toEqual([
      "p0@even.com",
      "p2@even.com",
    ]);
    const rest = await server.ask("GET", page.body.next.replace("http://localhost", ""));
    expect(rest.body).toMatchObject({ next: null, results: [{ distinct_ids: ["p4"] }] });
    const second = await server.ask("GET", `${cohorts}1/persons/?limit=1&offset=1`);
    expect(second.body.results).toMatchObject([{ distinct_ids: ["p2"] }]);
    expect(second.body.next).not.toContain("offset");
    const third = await server.ask("GET", second.body.next.replace("http://localhost", ""));
    expect(third.body).toMatchObject({ next: null, results: [{ distinct_ids: ["p4"] }] });
    await server.ask("PATCH", `${cohorts}1/`, { body: { filters: either(emailContains("odd")) } });
    expect((await settled(server, 1)).count).toBe(2);
  });

  test("may use events of persons, also negated and within another cohort", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    addPerson(server, ["kim"], { email: "kim@a.com" });
    await it.addEvent("bought", "kim", server.now);
    addPerson(server, ["lee"], { email: "lee@a.com" });
    const bought = {
      key: "bought",
      type: "behavioral",
      value: "performed_event",
      time_value: 7,
      time_interval: "day",
    };
    const count = async (name: string, ...values: object[]) => {
      const { body } = await server.ask("POST", cohorts, { body: { name, filters: either(...values) } });
      return (await settled(server, body.id)).count;
    };
    expect(await count("Buyers", bought)).toBe(1);
    expect(await count("Others", { ...bought, negation: true }, emailContains("@a.com"))).toBe(1);
    expect(await count("Inside", { key: "id", type: "cohort", value: 1, operator: "in" })).toBe(1);
    expect(await count("Nobody", bought, emailContains("lee"))).toBe(0);
  });

  test("reports when it could not be computed", async () => {
    await using it = await ServerWithEngine.start();
    it.server.deps.cohortFiller.countMembers = async () => {
      throw new Error("no engine");
    };
    await it.server.ask("POST", cohorts, { body: { name: "X", filters: either(emailContains("x")) } });
    expect(await settled(it.server, 1)).toMatchObject({ count: null, errors_calculating: 1 });
    expect(it.server.logged).toMatchObject([{ cohortId: 1, error: "Error: no engine" }]);
  });
});

describe("a static cohort", () => {
  test("is filled by a file of distinct ids", async () => {
    await using it = await ServerWithEngine.start();
    for (const id of ["a", "b", 'q"uote', "d"]) addPerson(it.server, [id, `${id}-2`]);
    const form = new FormData();
    form.set("name", "From a file");
    form.set("is_static", "true");
    form.set("csv", new File(['\uFEFFdistinct_id,x\r\na,1\n"q""uote",2\nnobody\n\na-2\n'], "x.csv"));
    const created = await it.server.ask("POST", cohorts, { body: form });
    expect(created).toMatchObject({
      status: 201,
      body: { name: "From a file", is_static: true, count: 2, is_calculating: false },
    });
    const more = new FormData();
    more.set("csv", new File(["d"], "y.csv"));
    expect((await it.server.ask("PATCH", `${cohorts}1/`, { body: more })).body.count).toBe(3);
    const { body } = await it.server.ask("GET", `${cohorts}1/persons/`);
    expect(body.results.map((person: { distinct_ids: string[] }) => person.distinct_ids[0])).toEqual([
      "a",
      'q"uote',
      "d",
    ]);
  });

  test("has the same limits and keeps the same digits as JSON if it is sent as a form", async () => {
    await using it = await ServerWithEngine.start();
    const create = async (filters: string) => {
      const form = new FormData();
      form.set("name", "Form");
      form.set("filters", filters);
      return await it.server.ask("POST", cohorts, { body: form });
    };
    const value = "[9007199254740993]";
    const leaf = `{"key":"a","type":"person","operator":"exact","value":${value}}`;
    const created = await create(`{"properties":{"type":"AND","values":[${leaf}]}}`);
    expect(created.status).toBe(201);
    expect(JSON.stringify(findCohort(it.server.deps.metadata.db, 1, 1)!.filters)).toContain(value);
    for (const [filters, detail] of [
      [
        `{"properties":{},"x":${"[".repeat(201)}${"]".repeat(201)}}`,
        "JSON parse error - nested deeper than 200 levels",
      ],
      [
        `{"properties":{},"x":[${"[],".repeat(100_000)}0]}`,
        "JSON parse error - more than 100000 objects and arrays",
      ],
      ["{", "JSON parse error - Expected '}'"],
    ] as const)
      expect(await create(filters)).toMatchObject({ status: 400, body: { attr: "filters", detail } });
  });

  test("reads the column of distinct ids from a table with any separator", async () => {
    await using it = await ServerWithEngine.start();
    for (const id of ["a", "b;c"]) addPerson(it.server, [id]);
    const upload = async (content: string) => {
      const form = new FormData();
      form.set("name", "Table");
      form.set("is_static", "true");
      form.set("csv", new File([content], "x.csv"));
      return await it.server.ask("POST", cohorts, { body: form });
    };
    for (const content of [
      'email,distinct_id,plan\nx@y.com,a,"pro, old"\n"q,r@y.com",b;c\nshort\n',
      'email;"Distinct ID"\nx@y.com;a\n;"b;c"',
      'uuid\tuser_id\n1\ta\n\t"b;c"\n',
      "a\nb;c\nnobody",
    ]) {
      expect([content, await upload(content)]).toMatchObject([content, { status: 201, body: { count: 2 } }]);
    }
  });

  test("is not created from an unusable file, and accepts none unless it is static", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    const rejected = (detail: string) => ({
      status: 400,
      body: { attr: "csv", code: "invalid_input", detail },
    });
    const upload = async (method: string, path: string, fields: Record<string, string>, content: string) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.set(name, value);
      form.set("csv", new File([content], "x.csv"));
      return await server.ask(method, path, { body: form });
    };
    const list = { name: "List", is_static: "true" };
    for (const content of ["", "\n \n", "distinct_id\n", "name,distinct_id\nkim\n"]) {
      const answer = await upload("POST", cohorts, list, content);
      expect([content, answer]).toMatchObject([content, rejected("The file contains no distinct ids.")]);
    }
    const ofPersons = "The file contains person ids. Expected a column `distinct_id`.";
    expect(await upload("POST", cohorts, list, "person_id,name\nx,y\n")).toMatchObject(rejected(ofPersons));
    const onlyStatic = "Only static cohorts accept a file: send `is_static` true with it.";
    expect(await upload("POST", cohorts, { name: "List" }, "a")).toMatchObject(rejected(onlyStatic));
    expect((await server.ask("GET", cohorts)).body.count).toBe(0);
    await server.ask("POST", cohorts, { body: { name: "Rule", filters: either(emailContains("x")) } });
    const path = `${cohorts}1/`;
    expect(await upload("PATCH", path, { name: "Other" }, "a")).toMatchObject(rejected(onlyStatic));
    const turned = { name: "Other", is_static: "true" };
    expect(await upload("PATCH", path, turned, "")).toMatchObject(
      rejected("The file contains no distinct ids."),
    );
    expect((await server.ask("GET", path)).body).toMatchObject({ name: "Rule", is_static: false });
    expect((await upload("PATCH", path, turned, "a")).status).toBe(200);
  });

  test("is recalculated when it becomes dynamic or is restored", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    for (const name of ["kim", "lee"]) addPerson(server, [name], { email: `${name}@a.com` });
    const filters = either(emailContains("a.com"));
    await server.ask("POST", cohorts, { body: { name: "List", is_static: true, filters } });
    expect((await settled(server, 1)).count).toBeNull();
    await server.ask("PATCH", `${cohorts}1/`, { body: { is_static: false } });
    expect((await settled(server, 1)).count).toBe(2);
    await server.ask("PATCH", `${cohorts}1/`, { body: { deleted: true } });
    addPerson(server, ["max"], { email: "max@a.com" });
    await server.ask("PATCH", `${cohorts}1/`, { body: { deleted: false } });
    expect((await settled(server, 1)).count).toBe(3);
  });

  test("counts its members as they are, after deletions of persons too", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    for (const id of ["a", "b", "c"]) addPerson(server, [id]);
    const form = new FormData();
    for (const [name, value] of [["name", "Listed"] as const, ["is_static", "true"] as const])
      form.set(name, value);
    form.set("csv", new File(["a\nb\nc\n"], "x.csv"));
    expect((await server.ask("POST", cohorts, { body: form })).body.count).toBe(3);
    const details = { uuid: "", distinct_id: "b" };
    applyDeletion(server.deps.people.$client, note({ kind: "person_deleted", details }));
    expect((await server.ask("GET", `${cohorts}1/`)).body.count).toBe(2);
    expect((await server.ask("GET", cohorts)).body.results[0].count).toBe(2);
    await server.ask("POST", cohorts, { body: { name: "Empty", is_static: true } });
    expect((await server.ask("GET", `${cohorts}2/`)).body.count).toBeNull();
  });

  test("is created from a flag, and does not follow it", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    for (const name of ["kim", "lee", "max"]) addPerson(server, [name], { email: `${name}@a.com` });
    const filters = {
      groups: [{ properties: [emailContains("kim")] }, { properties: [emailContains("lee")] }],
    };
    await server.ask("POST", flagsPath, { body: { key: "pay", filters } });
    const created = await server.ask("POST", `${flagsPath}1/create_static_cohort_for_flag/`, {
      body: { any: 1 },
    });
    expect(created).toMatchObject({
      status: 201,
      body: {
        cohort: {
          name: "Users with feature flag pay enabled at 2026-03-01 12:00:00",
          is_static: true,
          filters: { properties: {} },
          description: "",
          groups: [],
        },
      },
    });
    const id = created.body.cohort.id;
    expect((await settled(server, id)).count).toBe(2);
    await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
    expect((await server.ask("GET", `${cohorts}${id}/persons/`)).body.results).toHaveLength(2);
    const second = await server.ask("POST", `${flagsPath}1/create_static_cohort_for_flag/`);
    expect(second.body.cohort.id).not.toBe(id);
    expect((await settled(server, second.body.cohort.id)).count).toBe(0);
  });

  test("decides flags", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    addPerson(server, ["kim"]);
    addPerson(server, ["lee"]);
    await server.ask("POST", cohorts, { body: { name: "S", is_static: true } });
    addCohortMembers(server.deps.people, 1, 1, { distinctIds: ["kim"] });
    const filters = { groups: [{ properties: [{ key: "id", type: "cohort", value: 1, operator: "in" }] }] };
    await server.ask("POST", flagsPath, { body: { key: "a", filters } });
    const value = async (id: string) =>
      (await server.ask("GET", `${flagsPath}evaluation_reasons/?distinct_id=${id}`)).body.a.value;
    expect([await value("kim"), await value("lee")]).toEqual([true, false]);
  });
});
