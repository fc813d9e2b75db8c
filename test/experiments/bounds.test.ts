/** Values at and beyond the limits of experiments. Source: contract, experiments 1.2, 1.3 and 1.7. */

import { expect, test } from "bun:test";
import { useServer } from "../support/use-server.ts";
import { api } from "./support.ts";

useServer();

let created = 0;
const create = (body: object = {}) =>
  api("/experiments/", { method: "POST", body: { name: `Bounds ${++created}`, ...body } });
const change = (id: number, body: object) => api(`/experiments/${id}/`, { method: "PATCH", body });

const source = { kind: "EventsNode", event: "order paid" };
const mean = { kind: "ExperimentMetric", metric_type: "mean", source };
const retention = { metric_type: "retention", start_event: source, completion_event: source };
const window = { retention_window_start: 0, retention_window_end: 3 };

test.each([
  { ...mean, conversion_window: 1e308 },
  { ...mean, conversion_window: 3_651 },
  { ...mean, conversion_window: 1, conversion_window_unit: "constructor" },
  { ...mean, conversion_window: 1, conversion_window_unit: "__proto__" },
  { ...mean, conversion_window_unit: "toString" },
  { ...retention, ...window, retention_window_end: 1e308 },
  { ...retention, ...window, retention_window_unit: "valueOf" },
  { ...mean, name: 5 },
  { ...mean, name: "n".repeat(401) },
  { ...mean, uuid: { a: 1 } },
])("a metric beyond its limits is rejected: %j", async (metric) => {
  const { status, body } = await create({ metrics: [metric] });
  expect({ status, attr: body.attr }).toEqual({ status: 400, attr: "metrics" });
});

test("a window of ten years is accepted", async () => {
  expect((await create({ metrics: [{ ...mean, conversion_window: 3_650 }] })).status).toBe(201);
});

test("names of object members are no orders", async () => {
  await create();
  await create();
  for (const order of ["__proto__", "constructor", "-__defineGetter__", "toString"])
    expect((await api(`/experiments/?order=${order}`)).status).toBe(200);
});

test.each([
  ["0001-01-01T00:00:00Z", null],
  ["1970-01-01T00:00:00Z", null],
  ["2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"],
])(
  "the daily results from %s to %s are those of at most 90 days until now",
  async (start, end) => {
    const { body: of } = await create({ metrics: [mean] });
    expect((await change(of.id, { start_date: start, end_date: end })).status).toBe(200);
    const { status, body } = await api(
      `/experiments/${of.id}/timeseries_results/?metric_uuid=${of.metrics[0].uuid}`,
    );
    const days = Object.keys(body.timeseries);
    expect({ status, count: days.length <= 90 && days.length > 0 }).toEqual({ status: 200, count: true });
    expect(days.at(-1)! <= new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)).toBeTrue();
  },
  20_000,
);

test("experiments lose a saved metric that is deleted, and what was read can be sent back", async () => {
  const { body: saved } = await api("/experiment_saved_metrics/", {
    method: "POST",
    body: { name: "Orders", query: mean },
  });
  const { body: of } = await create({ saved_metrics_ids: [{ id: saved.id }] });
  expect(of.saved_metrics).toHaveLength(1);
  await api(`/experiment_saved_metrics/${saved.id}/`, { method: "DELETE" });
  const { body: read } = await api(`/experiments/${of.id}/`);
  expect(read.saved_metrics_ids).toEqual([]);
  expect((await change(of.id, read)).status).toBe(200);
});

test("an experiment has at most 60 saved metrics", async () => {
  const { status, body } = await create({
    saved_metrics_ids: Array.from({ length: 40_000 }, (_, id) => ({ id })),
  });
  expect({ status, attr: body.attr }).toEqual({ status: 400, attr: "saved_metrics_ids" });
});

test("an archived experiment whose end is removed leaves the archive", async () => {
  const { body: of } = await create();
  await api(`/experiments/${of.id}/launch/`, { method: "POST", body: {} });
  await api(`/experiments/${of.id}/end/`, { method: "POST", body: {} });
  await api(`/experiments/${of.id}/archive/`, { method: "POST", body: {} });
  const { body } = await change(of.id, { start_date: null, end_date: null });
  expect({ status: body.status, archived: body.archived }).toEqual({ status: "draft", archived: false });
});

test("an end without a start is rejected", async () => {
  const { status, body } = await create({ end_date: "2026-01-01T00:00:00Z" });
  expect({ status, attr: body.attr }).toEqual({ status: 400, attr: "end_date" });
});

test("a list by event has the experiments whose metrics count it, saved ones included", async () => {
  const counts = (event: string) => ({ ...mean, source: { ...source, event } });
  const saved = { name: "Signups", query: counts("signed up") };
  const { id } = (await api("/experiment_saved_metrics/", { method: "POST", body: saved })).body;
  const links = [{ id, metadata: { type: "primary" } }];
  await create({ name: "One", metrics: [counts("paid")] });
  await create({ name: "Two", metrics_secondary: [counts("paid")], saved_metrics_ids: links });
  const names = async (event: string) =>
    (await api(`/experiments/?order=name&event=${event}`)).body.results.map(
      ({ name }: { name: string }) => name,
    );
  expect(await names("paid")).toEqual(["One", "Two"]);
  expect(await names("signed+up")).toEqual(["Two"]);
  expect(await names("pai")).toEqual([]);
});
