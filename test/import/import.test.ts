import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, TestAppliance, temporaryFolder } from "../support/appliance.ts";

const run = async (dataDir: string, ...args: string[]) => {
  const { stdout, stderr, code } = await flagkeep([...args, "--project", "1", "--data-dir", dataDir]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
};
const summaryOf = (text: string) => {
  const { read, accepted, duplicate, rejected } = JSON.parse(text);
  return { read, accepted, duplicate, rejected };
};

test("an export comes back the same, once, in order", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "events.ndjson");
  await using source = await TestAppliance.start();
  await source.batch(
    Array.from({ length: 50 }, (_, n) => ({
      event: n === 3 ? "$pageview" : `e${n}`,
      distinct_id: `u${n % 7}`,
      timestamp: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(),
      properties: { n, text: "ä\n\"'", nested: { a: [1, null] }, $set: { n } },
    })),
  );
  const before = await source.eventsWhenStored(50);
  await run(source.dataDir, "export", "events", "--format", "ndjson", file);
  await using target = await TestAppliance.start();
  const args = ["import", file, "--format", "ndjson", "--json"];
  const dry = await run(target.dataDir, ...args, "--dry-run");
  expect(summaryOf(dry)).toEqual({ read: 50, accepted: 50, duplicate: 0, rejected: 0 });
  expect(await target.events()).toHaveLength(0);
  expect(summaryOf(await run(target.dataDir, ...args))).toEqual({
    read: 50,
    accepted: 50,
    duplicate: 0,
    rejected: 0,
  });
  const again = await run(target.dataDir, ...args, "--resume");
  expect(summaryOf(again)).toEqual({ read: 50, accepted: 0, duplicate: 50, rejected: 0 });
  const bare = ({ uuid, event, distinct_id, timestamp, properties }: (typeof before)[number]) => ({
    ...{ uuid, event, distinct_id, timestamp, properties },
  });
  const after = await target.eventsWhenStored(50);
  expect(after.map(bare)).toEqual(before.map(bare));
  expect(after.every(({ historical }) => historical)).toBe(true);
}, 60_000);

test("what is wrong goes into the reject file; other formats are mapped; it works without an appliance, too", async () => {
  const folder = temporaryFolder();
  await using appliance = await TestAppliance.start();
  const file = (name: string, text: string | Uint8Array) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const lines = (...records: unknown[]) => records.map((record) => JSON.stringify(record)).join("\n");
  const load = async (path: string, ...args: string[]) =>
    summaryOf(await run(appliance.dataDir, "import", path, "--json", ...args));

  const bad = file(
    "bad.ndjson",
    `{"event":"ok","distinct_id":"a"}\nnot json\n{"event":"x"}\n{"distinct_id":"a"}\n`,
  );
  expect(await load(bad)).toEqual({ read: 4, accepted: 1, duplicate: 0, rejected: 3 });
  const rejects = (await Bun.file(`${bad}.rejected.ndjson`).text()).trim().split("\n");
  expect(rejects.map((text) => JSON.parse(text)).map(({ line, reason }) => [line, reason])).toEqual([
    [2, "not_json"],
    [3, "missing_distinct_id"],
    [4, "missing_event_name"],
  ]);
  const amplitude = lines({
    ...{ event_type: "amp", user_id: "a", event_time: "2024-01-02 03:04:05.123", $insert_id: "i1" },
    ...{ event_properties: { k: 1 }, user_properties: { plan: "pro" } },
  });
  expect(
    (await load(file("amp.gz", Bun.gzipSync(Buffer.from(amplitude))), "--format", "amplitude")).accepted,
  ).toBe(1);
  const mixpanel = lines({
    event: "mix",
    properties: { distinct_id: "m", time: 1704164645, $insert_id: "i2" },
  });
  expect((await load(file("mix.json", mixpanel), "--format", "mixpanel")).accepted).toBe(1);
  const segment = lines(
    { type: "track", event: "seg", userId: "s", messageId: "m1", timestamp: "2024-01-02T03:04:05Z" },
    { type: "identify", userId: "s", anonymousId: "anon", traits: { a: 1 }, messageId: "m2" },
  );
  expect((await load(file("seg.json", segment), "--format", "segment")).accepted).toBe(2);
  const csv =
    'name,user,timestamp,colour\ncsv,u1,2024-01-02T03:04:05Z,red\ncsv,u2,2024-01-02T03:04:06Z,"a,b"\n';
  const maps = ["--map", "name=event", "--map", "user=distinct_id"];
  expect((await load(file("a.csv", csv), "--format", "csv", ...maps)).accepted).toBe(2);
  const parquet = join(folder, "out.parquet");
  await run(appliance.dataDir, "export", "events", "--format", "parquet", parquet);
  expect(await load(parquet, "--format", "parquet")).toEqual({
    read: 7,
    accepted: 0,
    duplicate: 7,
    rejected: 0,
  });

  const events = await appliance.eventsWhenStored(7);
  expect(events.map(({ event }) => event)).toEqual(["ok", "amp", "mix", "seg", "$identify", "csv", "csv"]);
  expect(events[1]).toMatchObject({ timestamp: "2024-01-02T03:04:05.123000Z", properties: { k: 1 } });
  expect(events[2]).toMatchObject({ timestamp: "2024-01-02T03:04:05.000000Z" });
  expect(events[6]!.properties.colour).toBe("a,b");

  await appliance.stop();
  expect((await load(bad)).duplicate).toBe(1);
}, 60_000);
