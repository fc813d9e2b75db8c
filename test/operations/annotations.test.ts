/** Annotations, as PostHog's clients use them. */

import { expect, test } from "bun:test";
import { TestServer } from "../support/management-server.ts";

const path = "/api/projects/1/annotations/";

test("are created, listed, filtered, changed, deleted and restored", async () => {
  using server = new TestServer();
  const ask = async (method: string, rest = "", body?: object) =>
    await server.ask(method, path + rest, { body });
  const created = await ask("POST", "", {
    content: " New checkout ",
    date_marker: "2026-02-20T10:00:00+02:00",
  });
  expect(created).toMatchObject({
    status: 201,
    body: {
      content: "New checkout",
      date_marker: "2026-02-20T08:00:00.000000Z",
      scope: "project",
      creation_type: "USR",
      dashboard_item: null,
      deleted: false,
      created_by: { email: "ann@example.com" },
    },
  });
  const { id } = created.body;
  const board = (await server.ask("POST", "/api/projects/1/dashboards/", { body: { name: "Orders" } })).body;
  const onBoard = (await ask("POST", "", { content: "Sale", scope: "dashboard", dashboard_id: board.id }))
    .body;
  expect(onBoard).toMatchObject({ date_marker: "2026-03-01T12:00:00.000000Z", dashboard_name: "Orders" });
  const ids = async (query = "") =>
    (await ask("GET", query)).body.results.map((one: { id: number }) => one.id);
  expect(await ids()).toEqual([onBoard.id, id]);
  expect(await ids("?search=CHECK")).toEqual([id]);
  expect(await ids("?scope=dashboard")).toEqual([onBoard.id]);
  expect(await ids(`?dashboard_id=${board.id}`)).toEqual([onBoard.id, id]);
  expect(await ids("?dashboard_id=99")).toEqual([id]);
  expect(await ids("?date_from=2026-02-20T08:00:00Z&date_to=2026-03-01T12:00:00Z")).toEqual([id]);
  expect((await server.ask("GET", `/api/environments/1/annotations/${id}/`)).body).toEqual(created.body);
  // A client sends back what it read.
  expect((await ask("PATCH", `${id}/`, created.body)).body).toEqual(created.body);
  expect((await ask("PATCH", `${id}/`, { content: "Checkout, 50%" })).body.content).toBe("Checkout, 50%");
  expect((await ask("DELETE", `${id}/`)).status).toBe(204);
  expect(await ids()).toEqual([onBoard.id]);
  expect((await ask("PATCH", `${id}/`, { content: "x" })).status).toBe(404);
  expect((await ask("PATCH", `${id}/`, { deleted: false })).body.deleted).toBe(false);
  expect((await ask("PATCH", `${id}/`, { deleted: true })).body.deleted).toBe(true);
  expect((await ask("GET", "99/")).status).toBe(404);
  const { body: log } = await server.ask("GET", "/api/projects/1/activity_log/?scope=Annotation");
  expect(log.results.map(({ activity }: { activity: string }) => activity)).toEqual([
    "deleted",
    "restored",
    "deleted",
    "updated",
    "created",
    "created",
  ]);
});

test.each([
  [{}, "content"],
  [{ content: "  " }, "content"],
  [{ content: "x".repeat(401) }, "content"],
  [{ content: "x", date_marker: "soon" }, "date_marker"],
  [{ content: "x", scope: "organization" }, "scope"],
  [{ content: "x", scope: "dashboard" }, "dashboard_id"],
  [{ content: "x", scope: "dashboard", dashboard_id: 99 }, "dashboard_id"],
  [{ content: "x", scope: "dashboard_item", dashboard_item: 99 }, "dashboard_item"],
])("%j is rejected", async (body, attr) => {
  using server = new TestServer();
  const answer = await server.ask("POST", path, { body });
  expect([answer.status, answer.body.attr]).toEqual([400, attr]);
  for (const query of ["scope=all", "dashboard_id=x", "date_from=soon"])
    expect([query, (await server.ask("GET", `${path}?${query}`)).status]).toEqual([query, 400]);
});
