/** The address of a ClickHouse, and what is sent to one with a cluster, which cannot be run here. */

import { describe, expect, test } from "bun:test";
import { readSetting } from "../../../src/config/read.ts";
import { eventsAddress } from "../../../src/config/secrets.ts";
import { schemaStatements } from "../../../src/events/clickhouse/schema.ts";
import { InvalidSettingError } from "../../../src/lib/setting-types.ts";
import { clickHouseUrl, parseClickHouseUrl, redactUrl } from "../../../src/lib/store-urls.ts";

describe("addresses", () => {
  test("are read whole, and shown without the password", () => {
    const address = parseClickHouseUrl("clickhouse://me:p%40ss%2F@ch:9000/db?cluster=all&quorum=2&secure=1")!;
    expect(address).toEqual({
      url: "https://ch:9000",
      user: "me",
      password: "p@ss/",
      database: "db",
      cluster: "all",
      quorum: 2,
    });
    expect(redactUrl(address)).toBe("https://me@ch:9000/db");
    expect(parseClickHouseUrl("clickhouse://ch/db")).toMatchObject({
      url: "http://ch:8123",
      user: "default",
      quorum: null,
    });
  });

  test.each([
    "clickhouse://me:p%40ss%2F@ch:9000/db?cluster=all&quorum=2&secure=1",
    "clickhouse://ch/db",
    "clickhouse://me@[::1]:8123/db?quorum=auto",
  ])("%s is written as it was read", (url) => {
    const address = parseClickHouseUrl(url)!;
    expect(parseClickHouseUrl(clickHouseUrl(address))).toEqual(address);
  });

  for (const wrong of [
    "http://ch/db",
    "clickhouse://ch",
    "clickhouse://ch/db;drop",
    "clickhouse://ch/db?cluster=a'b",
    "clickhouse://ch/db?quorum=0",
    "clickhouse://ch/db?quorum=many",
    "clickhouse://ch/db?secure=yes",
    "clickhouse://ch/db?password=x",
    "clickhouse://me:%zz@ch/db",
    "clickhouse:///db",
  ])
    test(`not ${wrong}`, () => expect(parseClickHouseUrl(wrong)).toBeUndefined());

  test("a wrong one is rejected without its password", () => {
    const read = () => readSetting("events-url", { "events-url": "clickhouse://me:secret@ch" }, {});
    expect(read).toThrow(InvalidSettingError);
    expect(read).not.toThrow("secret");
  });

  test("the password can be read from other sources", () => {
    const config = {
      "events-url": parseClickHouseUrl("clickhouse://me:a@ch/db")!,
      "events-password-file": "",
    };
    expect(eventsAddress(config, {})?.password).toBe("a");
    expect(eventsAddress(config, { FLAGKEEP_EVENTS_PASSWORD: "b" })?.password).toBe("b");
    expect(() => eventsAddress({ ...config, "events-password-file": "/nowhere" }, {})).toThrow(
      InvalidSettingError,
    );
    expect(eventsAddress({ ...config, "events-url": null }, {})).toBeNull();
  });
});

test("on a cluster every table is created on all nodes and replicated, events by shard, persons everywhere", () => {
  const statements = schemaStatements({ database: "db", cluster: "all" });
  for (const statement of statements) expect(statement).toContain("ON CLUSTER `all`");
  const statementOf = (table: string) =>
    statements.find((each) => each.startsWith(`CREATE TABLE IF NOT EXISTS ${table} `))!;
  expect(statementOf("events_shard")).toContain(
    "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/db/events', '{replica}')",
  );
  expect(statementOf("events_shard")).toContain("replicated_deduplication_window = 1000");
  expect(statementOf("events")).toContain(
    "Distributed('all', 'db', 'events_shard', cityHash64(project_id, distinct_id))",
  );
  expect(statementOf("persons")).toContain(
    "ReplicatedReplacingMergeTree('/clickhouse/tables/all/db/persons', '{shard}-{replica}', version, is_deleted)",
  );
  expect(schemaStatements({ database: "db", cluster: null }).join("\n")).not.toMatch(
    /CLUSTER|Replicated|Distributed/,
  );
});
