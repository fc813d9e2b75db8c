/** What webhooks send for each event, and in which format. */

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatBody, getFormat } from "../../../src/operate/webhooks/format.ts";
import {
  dueSummaries,
  hasNewBackupFailure,
  queueBackupFailure,
  queueSpike,
  queueSummaries,
  queueWarnings,
  recentWarnings,
  summaryWeek,
  type WeeklyWeb,
  weeklyFigures,
} from "../../../src/operate/webhooks/sources.ts";
import { ingestionWarning } from "../../../src/persons/schema.ts";
import { flagsPath } from "../../support/management-server.ts";
import { SenderSetup } from "./support.ts";

const content = {
  id: "0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c",
  event: "flag_changed" as const,
  created_at: "2026-03-04T16:00:01.007000Z",
  project: { id: 1, name: "Shop" },
  text: "<!channel> & @everyone *turned on* <http://x|y>",
  url: "https://flags.example.com/console/flags/1",
  data: {},
};

describe("formats", () => {
  test("json is the event itself", () =>
    expect(JSON.parse(formatBody(content, "json", null))).toEqual(content));

  test("Slack gets no markup from names", () =>
    expect(JSON.parse(formatBody(content, "slack", null))).toEqual({
      text: `&lt;!channel&gt; &amp; @everyone *turned on* &lt;http://x|y&gt;\n${content.url}`,
    }));

  test("Discord gets no markup and no mentions", () =>
    expect(JSON.parse(formatBody(content, "discord", null))).toEqual({
      content: `\\<!channel\\> & \\@everyone \\*turned on\\* \\<http://x\\|y\\>\n${content.url}`,
      allowed_mentions: { parse: [] },
    }));

  test("a template fills its strings, at any depth, and nothing else", () => {
    const template = {
      a: ["{{text}}", 1, null, { b: "{{ event }} {{project}} {{project_id}} {{id}}" }],
      "{{text}}": true,
    };
    expect(JSON.parse(formatBody({ ...content, text: 'a "quote" {{url}}' }, "custom", template))).toEqual({
      a: ['a "quote" {{url}}', 1, null, { b: `flag_changed Shop 1 ${content.id}` }],
      "{{text}}": true,
    });
  });

  test("messages are cut to what chat services accept", () => {
    for (const format of ["slack", "discord"] as const) {
      const body = JSON.parse(formatBody({ ...content, text: "*".repeat(50_000) }, format, null));
      expect((body.text ?? body.content).length).toBeLessThan(2_000);
    }
  });

  test.each([
    ["https://hooks.slack.com/services/T0/B0/x", "slack"],
    ["https://discord.com/api/webhooks/1/x", "discord"],
    ["https://ptb.discord.com/api/webhooks/1/x", "discord"],
    ["https://discordapp.com/api/webhooks/1/x", "discord"],
    ["https://discord.com/other", "json"],
    ["https://hooks.slack.com.evil.example/services/", "json"],
    ["https://example.com/", "json"],
  ] as const)("%s: %s", (url, format) => expect(getFormat(url)).toBe(format));
});

describe("flags", () => {
  async function texts(it: SenderSetup): Promise<string[]> {
    const sender = it.sender();
    for (let count = -1; count !== it.receiver.received.length; ) {
      count = it.receiver.received.length;
      await it.send(sender);
    }
    return it.receiver.received.map(({ body }) => body.text);
  }

  test("each kind of change has a sentence", async () => {
    using it = new SenderSetup();
    it.hook();
    const { id } = (await it.server.ask("POST", flagsPath, { body: { key: "one" } })).body;
    const patch = (body: object) => it.server.ask("PATCH", `${flagsPath}${id}/`, { body });
    await patch({ active: false, note: "too slow" });
    await patch({ active: true });
    await patch({ name: "First", filters: { groups: [{ properties: [], rollout_percentage: 10 }] } });
    await patch({ deleted: true });
    await patch({ deleted: false });
    expect(await texts(it)).toEqual([
      "ann created one in Shop.",
      "ann turned off one in Shop. Reason: too slow",
      "ann turned on one in Shop.",
      "ann changed name, filters of one in Shop.",
      "ann deleted one in Shop.",
      "ann restored one in Shop.",
    ]);
  });

  test("a payload that was encrypted before the delivery is not sent", async () => {
    using it = new SenderSetup();
    it.hook();
    const filters = {
      groups: [{ properties: [], rollout_percentage: 100 }],
      payloads: { true: '"top-secret"' },
    };
    const created = await it.server.ask("POST", flagsPath, {
      body: { key: "keys", is_remote_configuration: true, filters },
    });
    await it.server.ask("PATCH", `${flagsPath}${created.body.id}/`, {
      body: { filters: { payloads: { true: '"top-secret-2"' } } },
    });
    const encrypted = await it.server.ask("PATCH", `${flagsPath}${created.body.id}/`, {
      body: { has_encrypted_payloads: true },
    });
    expect(encrypted.status).toBe(200);
    expect((await texts(it)).length).toBe(3);
    expect(JSON.stringify(it.receiver.received)).not.toContain("top-secret");
    const { payloads } = it.server.metadata.db.$client
      .query<{ payloads: string }, []>("SELECT group_concat(subject) AS payloads FROM webhook_delivery")
      .get()!;
    expect(payloads).not.toContain("top-secret");
  });

  test("change requests: opened, then decided", async () => {
    using it = new SenderSetup();
    it.hook({ events: ["change_request_opened", "change_request_decided"] });
    const { id } = (await it.server.ask("POST", flagsPath, { body: { key: "one" } })).body;
    await it.server.ask("PATCH", "/api/projects/1/", { body: { approvals: "all" } });
    const requests = "/api/projects/1/change_requests/";
    const opened = await it.server.ask("POST", requests, {
      body: { flag_id: id, changes: { active: false }, note: "later" },
    });
    expect(opened.status).toBe(201);
    await it.server.ask("POST", `${requests}${opened.body.id}/reject/`);
    expect(await texts(it)).toEqual([
      "ann proposed a change of one in Shop. Reason: later",
      "ann withdrew the change of one in Shop that ann proposed.",
    ]);
    const [first, second] = it.receiver.received.map(({ body }) => body);
    expect(first).toMatchObject({
      event: "change_request_opened",
      data: {
        change_request: {
          id: opened.body.id,
          state: "pending",
          decided_at: null,
          changes: { active: false },
        },
      },
    });
    expect(second).toMatchObject({
      event: "change_request_decided",
      data: { change_request: { state: "withdrawn" } },
    });
  });
});

test("spikes", async () => {
  using it = new SenderSetup();
  it.hook();
  const spike = {
    id: 3,
    projectId: 1,
    startedMicros: 1_772_366_400_000_000,
    endedMicros: null,
    peakPerMinute: 9_000,
    baselinePerMinute: 40,
    kind: "began" as const,
    events: [{ event: "$pageview", count: 8_000 }],
    distinctIds: [{ distinctId: "bot", count: 7_000 }],
  };
  queueSpike(it.server.metadata, spike, it.server.now);
  queueSpike(it.server.metadata, { ...spike, projectId: 2 }, it.server.now);
  await it.send(it.sender());
  expect(it.receiver.received.map(({ body }) => body)).toMatchObject([
    {
      event: "spike",
      text: "A spike of events started in Shop: up to 9000 per minute, usually 40.",
      data: {
        kind: "began",
        spike: { id: 3, ended_at: null, distinct_ids: [{ distinct_id: "bot", count: 7_000 }] },
      },
    },
  ]);
});

test("a failed backup is reported once, in projects of the first organization", async () => {
  using it = new SenderSetup();
  it.hook({ events: ["backup_failed"] });
  const { metadata, directory, now } = it.server;
  const fail = (failed_at: string) =>
    writeFileSync(
      join(directory, "last-backup.json"),
      JSON.stringify({ failed_at, error: "No space left." }),
    );
  expect(hasNewBackupFailure(metadata, directory)).toBe(false);
  fail("2026-03-01T03:00:00.000Z");
  expect(hasNewBackupFailure(metadata, directory)).toBe(true);
  for (let again = 0; again < 2; again++) queueBackupFailure(metadata, directory, now);
  expect(hasNewBackupFailure(metadata, directory)).toBe(false);
  fail("2026-03-02T03:00:00.000Z");
  queueBackupFailure(metadata, directory, now);
  const sender = it.sender();
  for (let again = 0; again < 3; again++) await it.send(sender);
  expect(it.receiver.received.map(({ body }) => [body.text, body.data.failed_at])).toEqual([
    ["A backup failed: No space left.", "2026-03-01T03:00:00.000Z"],
    ["A backup failed: No space left.", "2026-03-02T03:00:00.000Z"],
  ]);
});

test("each kind of ingestion warning is reported once a day, also across restarts", async () => {
  using it = new SenderSetup();
  it.hook({ events: ["ingestion_warning"] });
  it.hook({ events: ["spike"] });
  const { deps } = it.server;
  const warn = (type: string, projectId = 1) =>
    deps.people
      .insert(ingestionWarning)
      .values({
        projectId,
        type,
        subject: String(Math.random()),
        hour: 0,
        details: {},
        count: 3,
        firstMicros: it.server.now.getTime() * 1_000,
        lastMicros: it.server.now.getTime() * 1_000,
      })
      .run();
  const listed = async () => {
    const counts = await recentWarnings(deps, it.server.now);
    queueWarnings(deps.metadata, counts, it.server.now);
    queueWarnings(deps.metadata, counts, it.server.now);
    return (await it.deliveries()).map(({ item }: { item: string }) => item).sort();
  };
  expect(await listed()).toEqual([]);
  warn("a");
  warn("b", 2);
  expect(await listed()).toEqual(["a"]);
  warn("a");
  warn("c");
  expect(await listed()).toEqual(["a", "c"]);
  it.pass(86_400);
  expect(await listed()).toEqual(["a", "a", "c", "c"]);
  it.pass(86_401);
  expect(await listed()).toHaveLength(4);
  warn("a");
  expect(await listed()).toHaveLength(5);
  await it.send(it.sender());
  expect(it.receiver.received).toEqual([]);
  it.pass(-86_401);
  await it.send(it.sender());
  expect(await it.deliveries(2)).toEqual([]);
  await it.server.ask("DELETE", "/api/projects/1/webhooks/1/");
  expect(it.server.metadata.db.$client.query("SELECT * FROM webhook_reported").all()).toEqual([]);
});

describe("weekly summaries", () => {
  test.each([
    // 2026-03-02 is a Monday; the summary is due at 8:00 of the project's time zone.
    ["UTC", null, "2026-03-02T07:59:59Z", "2026-02-23"],
    ["UTC", null, "2026-03-02T08:00:00Z", "2026-03-02"],
    ["UTC", 0, "2026-03-01T08:00:00Z", "2026-03-01"],
    ["UTC", 0, "2026-03-01T07:00:00Z", "2026-02-22"],
    ["Asia/Tokyo", 1, "2026-03-01T23:00:00Z", "2026-03-02"],
    ["America/New_York", 1, "2026-03-02T12:59:00Z", "2026-02-23"],
  ] as const)("in %s, week from %p, %s: %s", (timezone, weekStartDay, at, week) =>
    expect(summaryWeek({ timezone, weekStartDay }, new Date(at))).toBe(week),
  );

  test("are sent once a week, from the week after the subscription", async () => {
    using it = new SenderSetup();
    it.hook({ events: ["weekly_summary"] });
    const { deps } = it.server;
    let web: WeeklyWeb | undefined;
    const check = async () => {
      const weeks = await weeklyFigures(dueSummaries(deps.metadata, it.server.now), {
        ingestion: deps.ingestion,
        readWeb: async () => web,
      });
      queueSummaries(deps.metadata, weeks, it.server.now);
    };
    await check();
    expect(await it.deliveries()).toEqual([]);
    await it.server.ask("POST", flagsPath, { body: { key: "one" } });
    deps.people.$client.run(
      "INSERT INTO usage_day (project_id, day, identified, anonymous, historical, duplicates, dropped) VALUES " +
        "(1, '2026-02-16', 5, 0, 0, 0, 0), (1, '2026-02-23', 7, 2, 1, 9, 9), (1, '2026-03-01', 3, 0, 0, 0, 0), (1, '2026-03-02', 100, 0, 0, 0, 0)",
    );
    it.server.now = new Date("2026-03-02T08:00:00Z");
    await check();
    await check();
    await it.send(it.sender());
    expect(it.receiver.received.map(({ body }) => body)).toMatchObject([
      {
        event: "weekly_summary",
        text: "Shop from 2026-02-23 to 2026-03-01: 13 events (5 the week before), 1 flag changed: one.",
        data: { from: "2026-02-23", to: "2026-03-01", events: 13, events_previous: 5, flags_changed: 1 },
      },
    ]);
    web = { visitors: { current: 1_234, previous: 1 }, pageViews: { current: 1, previous: 0 } };
    it.server.now = new Date("2026-03-04T08:00:00Z");
    for (let number = 0; number < 12; number++)
      await it.server.ask("POST", flagsPath, { body: { key: `flag-${number}` } });
    it.server.now = new Date("2026-03-09T08:00:00Z");
    await check();
    await it.send(it.sender());
    const { text, data } = it.receiver.received[1]!.body;
    expect(text).toMatch(
      /^Shop from 2026-03-02 to 2026-03-08: 1,234 visitors \(1 the week before\), 1 page view \(0 the week before\), 100 events \(13 the week before\), 12 flags changed: (flag-\d+, ){10}…\.$/,
    );
    expect(data).toMatchObject({ visitors: 1_234, page_views: 1, page_views_previous: 0, flags_changed: 12 });
    expect(data.flag_keys).toHaveLength(10);
  });
});
