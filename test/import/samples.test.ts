/** Small files of other products, and exactly what each becomes (contract, import). */

import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { ImportSummary } from "../../src/import/summary.ts";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const samples = join(import.meta.dir, "../fixtures/import-samples");

useServer();
afterAll(() => {});

type Row = Record<string, unknown>;

/** A project of its own for each test. */
class Project {
  constructor(readonly id: string) {}

  static async create(): Promise<Project> {
    const project = await run("projects", "create", "Sample");
    return new Project(String(project.id));
  }

  async load(name: string, ...args: string[]): Promise<ImportSummary> {
    return await run("import", join(samples, name), "--project", this.id, ...args);
  }

  async rows(sql: string): Promise<Row[]> {
    return (await run("query", sql, "--project", this.id)).rows;
  }

  /** Events in the order in which they were loaded. */
  async events(where = "true"): Promise<(Row & { properties: Row })[]> {
    const columns = "event, distinct_id, timestamp, properties, elements_chain, person_id";
    return (await this.rows(`SELECT ${columns} FROM events WHERE ${where} ORDER BY seq`)) as never;
  }

  /** Persons with their ids, sorted. */
  async persons(): Promise<{ ids: string[]; properties: Row }[]> {
    const rows = await this.rows("SELECT distinct_ids, properties FROM persons");
    return rows
      .map(({ distinct_ids, properties }) => ({
        ids: [...(distinct_ids as string[])].sort(),
        properties: properties as Row,
      }))
      .sort((one, other) => (one.ids[0]! < other.ids[0]! ? -1 : 1));
  }
}

async function run(...args: string[]) {
  const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", server.dataDir, "--json"]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

test("02: a cell without a value is not the text \\N; a row without an id is rejected", async () => {
  const table = await Project.create();
  const summary = await table.load("02-null-marker-table.csv", "--dry-run");
  expect(summary.rejections).toEqual({ missing_distinct_id: 1 });
  expect(await table.load("02-null-marker-table.csv")).toMatchObject({ read: 2, accepted: 1, rejected: 1 });
  const [only, ...others] = await table.events();
  expect(others).toEqual([]);
  expect(only).toMatchObject({ event: "x", distinct_id: "u1" });
  expect(Object.keys(only!.properties)).not.toContain("plan");
  const tabs = await Project.create();
  expect(await tabs.load("02-null-marker-clickhouse.tsv")).toMatchObject({ accepted: 2, rejected: 0 });
  const [first, second] = await tabs.events();
  expect(first).toMatchObject({ event: "x", distinct_id: "u1" });
  expect(Object.keys(first!.properties)).not.toContain("plan");
  expect(second).toMatchObject({ event: "y", distinct_id: "u\t2", properties: { plan: "pro" } });
});

test("03: a customer's own properties take precedence; campaigns and page calls of Segment", async () => {
  const project = await Project.create();
  await project.load("03-segment-own-properties-and-campaign.json");
  const [video, page] = await project.events();
  expect(video).toMatchObject({ event: "Video Played", distinct_id: "u1" });
  expect(video!.properties).toMatchObject({
    title: "Dune",
    $current_url: "app://own",
    utm_source: "news",
    utm_medium: "email",
    utm_campaign: "may",
    // Nothing is lost: what the page said stays under its own name.
    context_page_title: "My page",
    context_page_url: "https://x.example/",
  });
  expect(page).toMatchObject({ event: "$pageview", distinct_id: "a2" });
  expect(page!.properties).toMatchObject({
    $current_url: "https://x.example/pricing",
    $pathname: "/pricing",
    $host: "x.example",
    name: "Pricing",
    category: "Marketing",
  });
});

test("04: Matomo's local times become UTC", async () => {
  const project = await Project.create();
  await project.load("04-matomo-local-timestamps.json");
  const events = await project.events();
  expect(events.map(({ event, timestamp }) => [event, timestamp])).toEqual([
    ["$pageview", "2024-05-01T10:00:00.000000Z"],
    ["$pageview", "2024-05-01T10:00:05.000000Z"],
  ]);
});

test("05: deleted and superseded rows of persons", async () => {
  const project = await Project.create();
  const summary = await project.load("05-posthog-persons-deleted.jsonl");
  expect(summary).toMatchObject({
    read: 5,
    accepted: 2,
    duplicate: 0,
    rejected: 0,
    left_out: { superseded: 2, "deleted in the source": 1 },
  });
  const persons = await project.persons();
  expect(persons).toMatchObject([{ ids: ["pd1", "pd2"], properties: { v: 2 } }]);
  expect(JSON.stringify(persons)).not.toContain("gone");
  expect(await project.load("05-posthog-persons-deleted.jsonl")).toMatchObject({
    read: 5,
    accepted: 0,
    duplicate: 2,
    made: 0,
  });
});

test("06: the highest version of a person applies, wherever it is", async () => {
  const project = await Project.create();
  const summary = await project.load("06-posthog-persons-version-order.jsonl");
  expect(summary).toMatchObject({ read: 2, accepted: 1, left_out: { superseded: 1 } });
  expect(await project.persons()).toMatchObject([{ ids: ["ov"], properties: { v: 2, new: 1 } }]);
});

const chain = 'a.btn:attr__href="/x"nth-child="1"nth-of-type="1"text="Go"';

test("07: elements and person properties of PostHog's exports", async () => {
  const bigquery = await Project.create();
  await bigquery.load("07-posthog-bigquery-elements.jsonl");
  expect(await bigquery.events()).toMatchObject([
    { elements_chain: chain, timestamp: "2024-05-01T10:00:00.123000Z", properties: { $ip: "203.0.113.3" } },
  ]);
  expect(await bigquery.persons()).toMatchObject([{ properties: { plan: "pro", first: "x" } }]);
  const plugin = await Project.create();
  await plugin.load("07-posthog-plugin-elements.jsonl");
  expect(await plugin.events()).toMatchObject([{ elements_chain: chain }]);
  const redshift = await Project.create();
  const summary = await redshift.load("07-posthog-redshift-people-set.jsonl");
  expect(summary.not_taken).toEqual({ team_id: 1 });
  const [event] = await redshift.events();
  expect(Object.keys(event!.properties).filter((name) => !name.startsWith("$"))).toEqual(["a"]);
  expect(await redshift.persons()).toMatchObject([{ properties: { plan: "pro" } }]);
});

test("08: Plausible's lists in a table of ClickHouse", async () => {
  const project = await Project.create();
  expect(await project.load("08-plausible-csv-arrays.csv")).toMatchObject({ accepted: 1, rejected: 0 });
  expect(await project.events()).toMatchObject([
    { event: "Signup", properties: { plan: "pro", who: "it's, me" } },
  ]);
});

test("09: GA4's campaign of the event, and the first one of the person", async () => {
  const project = await Project.create();
  await project.load("09-ga4-traffic-source.json");
  const [event] = await project.events();
  expect(event!.properties).toMatchObject({
    utm_source: "news",
    utm_medium: "email",
    utm_campaign: "may",
    gclid: "G1",
  });
  const [person] = await project.persons();
  expect(person!.properties).toMatchObject({
    $initial_utm_source: "google",
    $initial_utm_medium: "cpc",
    $initial_utm_campaign: "brand",
  });
});

test("11: Amplitude's web events", async () => {
  const project = await Project.create();
  const summary = await project.load("11-amplitude-web.json");
  expect(summary.not_taken).toMatchObject({ app: expect.any(Number), client_event_time: expect.any(Number) });
  const [view] = await project.events("event = '$pageview'");
  expect(view!.properties).toMatchObject({
    $current_url: "https://x.example/p?a=1",
    $pathname: "/p",
    $host: "x.example",
    title: "P",
    $browser: "Chrome",
    $browser_version: "124",
    $os: "Windows",
    $device_type: "Desktop",
    $referrer: "https://r.example/",
    utm_source: "news",
    "[Amplitude] Page Path": "/p",
  });
  const all = JSON.stringify([await project.events(), await project.persons()]);
  expect(all).not.toContain("EMPTY");
  // The second user of the device is another person.
  expect((await project.persons()).map(({ ids }) => ids)).toEqual([["dev-A", "u1"], ["u2"]]);
  for (const { properties } of await project.persons())
    for (const name of ["$add", "$append", "$unset"]) expect(Object.keys(properties)).not.toContain(name);
});

test("11: Mixpanel's web events", async () => {
  const project = await Project.create();
  const summary = await project.load("11-mixpanel-web.json");
  expect(summary.left_out).toEqual({ "deleted in the source": 1 });
  expect(summary.not_taken).toMatchObject({ $mp_api_endpoint: 1, mp_processing_time_ms: 1 });
  const [view] = await project.events("event = '$pageview'");
  expect(view!.properties).toMatchObject({
    $geoip_subdivision_1_name: "Land Berlin",
    title: "T",
    utm_source: "g",
    mp_lib: "web",
  });
  expect(await project.events("event = 'deleted'")).toEqual([]);
  expect(await project.events("event = 'orig'")).toMatchObject([{ distinct_id: "9f2-abc" }]);
  expect(await project.events("event = 'float time'")).toMatchObject([
    { timestamp: "2024-05-01T10:03:21.500000Z" },
  ]);
});

test("12: Matomo's dimensions, campaigns and items", async () => {
  const project = await Project.create();
  await project.load("12-matomo-dimensions-campaign-items.json");
  const events = await project.events();
  for (const { properties } of events) {
    expect(properties).toMatchObject({
      dimension1: "premium",
      utm_campaign: "spring",
      utm_source: "goog",
      utm_term: "kw",
      resolution: "1024x768",
      $screen_width: 1024,
      customVariables: expect.any(Object),
    });
  }
  const propertiesOf = (name: string) => events.find(({ event }) => event === name)!.properties;
  expect(propertiesOf("$pageview")).toMatchObject({ dimension2: "blog", title: "t" });
  expect(propertiesOf("order")).toMatchObject({ itemDetails: [{ itemSKU: "s", price: 9 }], order_id: "o1" });
  expect(propertiesOf("content")).toMatchObject({ contentName: "ad" });
  expect(propertiesOf("form")).toMatchObject({ formName: "contact" });
});

test("12: Umami's click ids and addresses", async () => {
  const project = await Project.create();
  await project.load("12-umami-click-ids.csv");
  const [view] = await project.events();
  expect(view).toMatchObject({ event: "$pageview", distinct_id: "s1" });
  expect(view!.properties).toMatchObject({
    gclid: "G1",
    fbclid: "F1",
    $referrer: "https://google.com?term=x",
    $current_url: "https://x.example/a?q=1",
    $session_id: "v1",
    $device_id: "s1",
  });
});

test("13: Mixpanel's profiles need no time of their own", async () => {
  const project = await Project.create();
  const summary = await project.load("13-mixpanel-people-without-last-seen.json");
  expect(summary).toMatchObject({ read: 2, accepted: 2, rejected: 0 });
  const persons = await project.persons();
  expect(persons).toMatchObject([
    { ids: ["u1"], properties: { email: "a@example.com", name: "N", plan: "pro" } },
    { ids: ["u2"], properties: { email: "b@example.com" } },
  ]);
});
