/** An import does not decide who people are. Source: contract, import 1.1. */

import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { DeviceOwners } from "../../src/import/device-owners.ts";
import { getIdentity, isPlaceholder } from "../../src/import/map/identity.ts";
import { ServerProcess, temporaryFolder } from "../support/server.ts";
import { getLines, SampleProject } from "./samples.ts";

const uuid = () => crypto.randomUUID();
/** A record of each source that names a device and a user; null for one that it lacks. */
const sources = {
  amplitude: (device: string | null, user: string | null, second: number) => ({
    event_type: "e",
    device_id: device,
    user_id: user,
    uuid: uuid(),
    event_time: `2024-05-01 10:00:${String(second).padStart(2, "0")}`,
  }),
  mixpanel: (device: string | null, user: string | null, second: number) => ({
    event: "e",
    properties: {
      time: 1714557600 + second,
      $insert_id: uuid(),
      $user_id: user,
      $device_id: device,
      distinct_id: user ?? `$device:${device}`,
    },
  }),
  segment: (device: string | null, user: string | null, second: number) => ({
    type: "track",
    event: "e",
    userId: user,
    anonymousId: device,
    messageId: uuid(),
    properties: {},
    timestamp: 1714557600 + second,
  }),
  "segment identify": (device: string | null, user: string | null, second: number) => ({
    type: "identify",
    userId: user,
    anonymousId: device,
    messageId: uuid(),
    traits: { of: user },
    timestamp: 1714557600 + second,
  }),
  rudderstack: (device: string | null, user: string | null, second: number) => ({
    type: "track",
    event: "e",
    userId: user,
    anonymousId: device,
    messageId: uuid(),
    rudderId: "r",
    timestamp: 1714557600 + second,
  }),
  ga4: (device: string | null, user: string | null, second: number) => ({
    event_name: "e",
    user_pseudo_id: device,
    user_id: user,
    event_params: [],
    event_timestamp: String((1714557600 + second) * 1e6),
  }),
  umami: (device: string | null, user: string | null, second: number) => ({
    website_id: "w",
    session_id: device,
    distinct_id: user,
    event_id: uuid(),
    url_path: "/",
    created_at: 1714557600 + second,
  }),
  matomo: (device: string | null, user: string | null, second: number) => ({
    idSite: 1,
    idVisit: second,
    visitorId: device,
    userId: user,
    actionDetails: [{ type: "action", url: "http://e/", timestamp: 1714557600 + second }],
  }),
};

describe("a device belongs to its first user", () => {
  for (const [name, device, count] of [
    ["amplitude", "backend-1", 4],
    ["ga4", "1.2", 3],
    ["matomo", "dev", 3],
    ["mixpanel", "tablet", 3],
    ["segment", "tablet", 3],
  ] as const)
    test(`sample: ${name}`, async () => {
      const project = await SampleProject.create();
      const file = `01-shared-device-${name}.json`;
      const wanted = { read: count, accepted: count, made: 1, shared_devices: 1, placeholder_ids: 0 };
      expect(await project.sample(file, "--dry-run")).toMatchObject(wanted);
      expect(await project.sample(file)).toMatchObject(wanted);
      const users = Array.from({ length: count }, (_, n) => [`user${n + 1}`]);
      expect(await project.persons()).toEqual([[device, "user1"].sort(), ...users.slice(1)].sort());
      // It makes and tells the same again.
      expect(await project.sample(file)).toMatchObject({ ...wanted, accepted: 0, duplicate: count, made: 0 });
    }, 60_000);

  for (const [name, record] of Object.entries(sources))
    test(`${name}: several devices, records without a user, a second user before and after`, async () => {
      const project = await SampleProject.create();
      const first = [
        record("d1", null, 1),
        record("d1", "u1", 2),
        record("d2", "u1", 3),
        record("d1", "u2", 4),
      ];
      expect(await project.records(first)).toMatchObject({ accepted: 4, shared_devices: 1 });
      const persons = [["d1", "d2", "u1"], ["u2"]];
      expect(await project.persons()).toEqual(persons);
      // Another file and another import: the device stays with its user, and so do events without one.
      const later = [
        record("d1", "u3", 5),
        record("d1", null, 6),
        record("d3", "u3", 7),
        record("d1", "u1", 8),
      ];
      expect(await project.records(later)).toMatchObject({ accepted: 4, shared_devices: 1 });
      expect(await project.persons()).toEqual([...persons, ["d3", "u3"]].sort());
    }, 60_000);

  for (const [name, record] of Object.entries(sources))
    test(`${name}: an id that is a user anywhere is no device of another user, in any order`, async () => {
      const project = await SampleProject.create();
      Bun.spawnSync(["mkdir", join(project.folder, "files")]);
      project.write("files/1.json", getLines([record("u1", "u2", 1), record("d", "u2", 2)]));
      project.write("files/2.json", JSON.stringify(record(null, "u1", 3)));
      const summary = await project.file(join(project.folder, "files"));
      // Segment's `identify` is a link itself.
      const created = name === "segment identify" ? 0 : 1;
      expect(summary).toMatchObject({ made: created, rejected: 0, shared_devices: 1 });
      expect(await project.persons()).toEqual([["d", "u2"], ["u1"]]);
      // A later import knows it as well.
      expect(await project.records([record("u1", "u3", 4)])).toMatchObject({ made: 0, shared_devices: 1 });
    }, 60_000);

  test("the order of reading counts, across the files of a folder, and not the time", async () => {
    const project = await SampleProject.create();
    const { segment } = sources;
    const folder = join(project.folder, "files");
    Bun.spawnSync(["mkdir", folder]);
    const { dataDir } = project;
    project.write("files/1.json", JSON.stringify(segment("d", "late", 50)));
    project.write("files/2.json", JSON.stringify(segment("d", "early", 1)));
    expect(await project.file(folder)).toMatchObject({ accepted: 2, made: 1, shared_devices: 1 });
    expect(await project.persons()).toEqual([["d", "late"], ["early"]]);
    expect(readdirSync(join(dataDir, "import-state"))).toEqual(["identities"]);
  }, 60_000);

  test("links of devices by events are recorded in their properties, those of rejected events are not", async () => {
    const project = await SampleProject.create();
    const identify = sources["segment identify"];
    await project.records([identify("d", "u1", 1), identify("d", "u2", 2), identify("d", "u1", 3)]);
    const rows = await project.query(
      "SELECT distinct_id, properties->>'$anon_distinct_id' AS device FROM events ORDER BY timestamp",
    );
    expect(rows.map(({ distinct_id, device }) => [distinct_id, device])).toEqual([
      ["u1", "d"],
      ["u2", null],
      ["u1", "d"],
    ]);
    const of = await project.query("SELECT properties->>'of' AS u FROM persons ORDER BY u");
    expect(of).toEqual([{ u: "u1" }, { u: "u2" }]);
  }, 60_000);

  test("Mixpanel's $identify passes the gate, $merge does not", async () => {
    const project = await SampleProject.create();
    const record = (event: string, properties: object, n: number) => ({
      event,
      properties: { time: 1714557600 + n, $insert_id: `i${n}`, ...properties },
    });
    const login = (user: string, n: number) =>
      record("$identify", { distinct_id: user, $identified_id: user, $anon_id: "$device:d" }, n);
    expect(await project.records([login("u1", 1), login("u2", 2)])).toMatchObject({ shared_devices: 1 });
    expect(await project.persons()).toEqual([["d", "u1"], ["u2"]]);
    await project.records([record("$merge", { $distinct_ids: ["u1", "u2"], distinct_id: "u1" }, 3)]);
    expect(await project.persons()).toEqual([["d", "u1", "u2"]]);
  }, 60_000);

  test("--no-link-identities links nothing, and reports shared devices", async () => {
    const project = await SampleProject.create();
    const { segment, "segment identify": identify } = sources;
    const records = [
      segment("d", "u1", 1),
      identify("d", "u1", 2),
      segment("d", "u2", 3),
      segment("d", null, 4),
    ];
    const summary = await project.records(records, "--no-link-identities");
    expect(summary).toMatchObject({ accepted: 4, made: 0, shared_devices: 1 });
    expect(await project.persons()).toEqual([["d"], ["u1"], ["u2"]]);
  }, 60_000);
});

describe("with people who are there already", () => {
  test("a device of another identified person is not linked; one of the user or without an owner is", async () => {
    await using server = await ServerProcess.start();
    const identify = (user: string, device: string) => ({
      event: "$identify",
      distinct_id: user,
      properties: { $anon_distinct_id: device },
    });
    await server.batch([
      identify("live", "taken"),
      identify("u1", "own"),
      { event: "seen", distinct_id: "anonymous-device", properties: {} },
    ]);
    const project = await SampleProject.create(server.dataDir);
    const { segment } = sources;
    const records = [
      segment("taken", "u1", 1),
      segment("own", "u1", 2),
      segment("anonymous-device", "u2", 3),
    ];
    // The last events of the live server count, though no one waited for them.
    expect(await project.records(records, "--dry-run")).toMatchObject({ shared_devices: 1, made: 2 });
    expect(await project.records(records)).toMatchObject({ accepted: 3, shared_devices: 1, made: 2 });
    expect(await project.persons()).toEqual([
      ["anonymous-device", "u2"],
      ["live", "taken"],
      ["own", "u1"],
    ]);
    expect(await project.records([segment("taken", "live", 4)])).toMatchObject({ shared_devices: 0 });
  }, 60_000);
});

describe("placeholder ids", () => {
  const placeholders = [
    "\\N",
    "\\n",
    "(null)",
    "<null>",
    "NIL",
    "n/a",
    "NA",
    "-",
    "Unknown",
    "ANONYMOUS",
    "guest",
    "NaN",
    "none",
    "[object Object]",
    "null",
    "NULL",
    "undefined",
    "0",
    "-1",
    "00000000-0000-0000-0000-000000000000",
    "000",
    "",
    "  ",
    " unknown ",
    '"null"',
    "'None'",
    "distinct_id",
    "email",
    "true",
    "False",
    "not_authenticated",
  ];
  for (const id of placeholders)
    test(JSON.stringify(id), () => {
      expect(isPlaceholder(id)).toBe(true);
      expect(getIdentity("d", id)).toEqual({ distinctId: "d", hasPlaceholder: true });
      expect(getIdentity(id, "u")).toEqual({ distinctId: "u", hasPlaceholder: true });
      expect(getIdentity(id, undefined)).toEqual({ distinctId: id, hasPlaceholder: true });
      expect(getIdentity(id, id, "7")).toEqual({ distinctId: "7", hasPlaceholder: true });
    });
  for (const id of [
    "1",
    "01",
    "u-0",
    "nullable",
    "user",
    "anonymous-7",
    "N",
    "00000000-0000-4000-8000-00000000000a",
  ])
    test(`not ${JSON.stringify(id)}`, () => expect(isPlaceholder(id)).toBe(false));

  test("a table of ClickHouse or MySQL: a NULL marker is no value", async () => {
    const project = await SampleProject.create();
    const summary = await project.sample("02-null-marker-umami.csv");
    expect(summary).toMatchObject({ accepted: 3, made: 0, placeholder_ids: 0, shared_devices: 0 });
    expect(await project.persons()).toEqual([["sess1"], ["sess2"], ["sess3"]]);
  }, 60_000);

  test("are joined by no command: Mixpanel's $merge and $create_alias, Segment's alias", async () => {
    const project = await SampleProject.create();
    const mixpanel = (event: string, properties: object, n: number) => ({
      event,
      properties: { time: 1714557600 + n, $insert_id: `i${n}`, ...properties },
    });
    const alias = (previousId: string, userId: string, n: number) => ({
      type: "alias",
      previousId,
      userId,
      messageId: `m${n}`,
      timestamp: 1714557600 + n,
    });
    const merges = [
      mixpanel("$merge", { $distinct_ids: ["(null)", "a", "b"] }, 1),
      mixpanel("$merge", { $distinct_ids: ["c", "unknown"] }, 2),
      mixpanel("$merge", { $distinct_ids: ["-1", "d"] }, 3),
      mixpanel("$create_alias", { distinct_id: "e", alias: "N/A" }, 4),
      mixpanel("$create_alias", { distinct_id: "nil", alias: "f" }, 5),
      mixpanel("$create_alias", { distinct_id: "g", alias: "h" }, 6),
    ];
    expect(await project.records(merges)).toMatchObject({ accepted: 7, rejected: 0, placeholder_ids: 5 });
    const aliases = [alias("(null)", "i", 1), alias("j", "(null)", 2), alias("k", "l", 3)];
    expect(await project.records(aliases)).toMatchObject({ accepted: 3, rejected: 0, placeholder_ids: 2 });
    const alone = ["c", "d", "e", "f", "i", "j"].map((id) => [id]);
    expect(await project.persons()).toEqual([["a", "b"], ["g", "h"], ["k", "l"], ...alone].sort());
  }, 60_000);

  test("are joined by no row of persons", async () => {
    const project = await SampleProject.create();
    const person = (id: string, ...distinct_ids: string[]) => ({
      id,
      distinct_ids,
      properties: { of: id },
      created_at: "2024-05-01T00:00:00Z",
    });
    const rows = [person("1", "(null)", "a", "a2"), person("2", "b", "unknown"), person("3", "-1")];
    expect(await project.records(rows)).toMatchObject({ accepted: 4, placeholder_ids: 3 });
    expect(await project.persons()).toEqual([["-1"], ["a", "a2"], ["b"]]);
  }, 60_000);

  test("100 users of the device unknown, 100 devices of the user (null), and events with neither", async () => {
    const project = await SampleProject.create();
    const { amplitude } = sources;
    const users = Array.from({ length: 100 }, (_, n) => amplitude("unknown", `u${n}`, n % 60));
    const devices = Array.from({ length: 100 }, (_, n) => amplitude(`d${n}`, "(null)", n % 60));
    const summary = await project.records([...users, ...devices, amplitude("0", "(null)", 1)]);
    expect(summary).toMatchObject({ accepted: 201, made: 0, placeholder_ids: 201, shared_devices: 0 });
    expect(await project.persons()).toHaveLength(201);
  }, 60_000);
});

describe("the map of devices", () => {
  test("no order of pairs joins two users through devices, in one run or in many", () => {
    const id = fc.constantFrom("a", "b", "c", "d", "e");
    const pairs = fc.array(fc.tuple(id, id).filter(([device, user]) => device !== user));
    fc.assert(
      fc.property(fc.array(pairs, { maxLength: 4 }), (batches) => {
        const folder = temporaryFolder();
        const owner = new Map<string, string>();
        for (const batch of batches) {
          using owners = new DeviceOwners(folder, 1, "x", false);
          const decided = owners.decide(batch, new Map());
          batch.forEach(([device, user], at) => {
            if (!decided[at]) return;
            expect(owner.get(device) ?? user).toBe(user);
            owner.set(device, user);
          });
          // The same pairs are decided alike again.
          expect(owners.decide(batch, new Map())).toEqual(decided);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("a user's id is no device of another user", () => {
    using owners = new DeviceOwners(temporaryFolder(), 1, "x", false);
    const pairs = [
      ["d", "u1"],
      ["u1", "u2"],
      ["e", "u2"],
    ] as const;
    expect(owners.decide(pairs, new Map())).toEqual([true, false, true]);
  });

  test("a dry run reads the stored data and leaves it unchanged", () => {
    const folder = temporaryFolder();
    const decide = (device: string, user: string, isDryRun: boolean) => {
      using owners = new DeviceOwners(folder, 1, "x", isDryRun);
      return owners.decide([[device, user]], new Map());
    };
    expect(decide("d", "u1", true)).toEqual([true]);
    expect(readdirSync(folder)).toEqual([]);
    expect(decide("d", "u2", false)).toEqual([true]);
    expect(decide("d", "u1", true)).toEqual([false]);
    expect(decide("e", "u1", true)).toEqual([true]);
    expect(decide("e", "u2", false)).toEqual([true]);
  });
});

test("a rejected record does not take its pair along: the next record of the pair links it", async () => {
  const project = await SampleProject.create();
  const record = (event: string | null, user: string) => ({
    event_type: event,
    user_id: user,
    device_id: `${user}-device`,
    event_time: "2024-05-01 10:00:00",
    groups: { company: user },
    group_properties: { company: { size: 3 } },
  });
  const records = [record(null, "u1"), record("a", "u1"), record("b", "u1"), record(null, "u2")];
  const dry = await project.records(records, "--dry-run");
  const summary = await project.records([...records, record("late", "u3")]);
  expect(dry).toMatchObject({ accepted: 2, rejected: 2, made: 2 });
  expect(summary).toMatchObject({ accepted: 3, rejected: 2, made: 4 });
  expect(await project.persons()).toEqual([
    ["u1", "u1-device"],
    ["u3", "u3-device"],
  ]);
  expect(await project.records(records)).toMatchObject({ accepted: 0, duplicate: 2, made: 0 });
}, 60_000);
