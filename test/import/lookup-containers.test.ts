/** Lookup files are joined in folders and archives of every kind, whatever their order and form. Source: contract, import 2. */

import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { zipSync } from "fflate";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { writeParquet } from "../support/parquet.ts";
import { temporaryFolder } from "../support/server.ts";
import { SampleProject } from "./samples.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

type Row = Record<string, string | number>;
type Tables = Record<string, readonly Row[]>;

const uuid = "0190a000-0000-4000-8000-000000000001";
const at = "2024-05-01 10:00:00";
const umami = {
  events: {
    website_event: [
      {
        event_id: uuid,
        website_id: "w",
        session_id: "s1",
        created_at: at,
        url_path: "/a",
        event_name: "buy",
      },
      { event_id: "", website_id: "w", session_id: "s2", created_at: at, url_path: "/b", event_name: "" },
    ],
  },
  lookups: {
    event_data: [
      {
        event_id: uuid,
        data_key: "plan",
        string_value: "pro",
        number_value: "",
        date_value: "",
        data_type: 1,
      },
      {
        event_id: uuid,
        data_key: "seats",
        string_value: "",
        number_value: "5.0000",
        date_value: "",
        data_type: 2,
      },
      {
        event_id: uuid,
        data_key: "long",
        string_value: "",
        number_value: "12345678901234567.5",
        date_value: "",
        data_type: 2,
      },
      {
        event_id: uuid,
        data_key: "trial",
        string_value: "true",
        number_value: "",
        date_value: "",
        data_type: 3,
      },
      {
        event_id: uuid,
        data_key: "due",
        string_value: "",
        number_value: "",
        date_value: "2024-06-01 00:00:00",
        data_type: 4,
      },
      {
        event_id: uuid,
        data_key: "tags",
        string_value: '["a","b"]',
        number_value: "",
        date_value: "",
        data_type: 5,
      },
      { event_id: "other", data_key: "x", string_value: "x", number_value: "", date_value: "", data_type: 1 },
    ],
    session: [
      {
        session_id: "s1",
        website_id: "w",
        browser: "firefox",
        screen: "800x600",
        country: "DE",
        distinct_id: "u1",
      },
      { session_id: "s2", website_id: "w", browser: "chrome", screen: "", country: "", distinct_id: "" },
    ],
    session_data: [{ session_id: "s1", data_key: "tier", string_value: "gold", data_type: 1 }],
    revenue: [{ website_id: "w", event_id: uuid, event_name: "buy", currency: "EUR", revenue: "19.5" }],
  },
};
const heap = {
  events: {
    pageviews: [
      { event_id: 1, user_id: 7, session_id: 2, time: at, domain: "x.example", path: "/a" },
      { event_id: 2, user_id: 8, session_id: 3, time: at, domain: "x.example", path: "/b" },
    ],
    sessions: [{ user_id: 7, session_id: 2, time: at, landing_page: "https://x.example/l" }],
  },
  lookups: {
    users: [
      { user_id: 7, identity: "anna", joindate: at, plan: "pro" },
      { user_id: 8, identity: "", joindate: at, plan: "free" },
    ],
    user_migrations: [{ from_user_id: 8, to_user_id: 7, time: at }],
  },
};

const forms = {
  csv: [",", (text: string) => `"${text.replaceAll('"', '""')}"`],
  tsv: ["\t", (text: string) => text],
} as const;
type Form = keyof typeof forms | "parquet";

async function written(rows: readonly Row[], form: Form, isUpper: boolean): Promise<string | Uint8Array> {
  if (form === "parquet") {
    const path = join(folder, "table.parquet");
    const named = (name: string) => (isUpper ? name.toUpperCase() : name);
    const typed = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [named(name), value === "" ? null : value]),
      ),
    );
    await writeParquet(path, typed);
    return readFileSync(path);
  }
  const [delimiter, quoted] = forms[form];
  const columns = Object.keys(rows[0]!);
  const header = columns.map((name) => (isUpper ? name.toUpperCase() : name));
  const lines = rows.map((row) => columns.map((name) => (row[name] === "" ? "" : quoted(`${row[name]}`))));
  return `${[header, ...lines].map((cells) => cells.join(delimiter)).join("\n")}\n`;
}

type Files = Record<string, string | Uint8Array>;
const containers = {
  folder: (path: string, files: Files) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
    }
    return path;
  },
  zip: (path: string, files: Files) => {
    const bytes = Object.fromEntries(
      Object.entries(files).map(([name, content]) => [name, Buffer.from(content as string)]),
    );
    writeFileSync(`${path}.zip`, zipSync(bytes));
    return `${path}.zip`;
  },
  "tar.gz": (path: string, files: Files) => {
    containers.folder(path, files);
    Bun.spawnSync(["tar", "-czf", `${path}.tar.gz`, "-C", path, ...Object.keys(files)]);
    rmSync(path, { recursive: true });
    return `${path}.tar.gz`;
  },
};

let cases = 0;
async function pack(
  container: keyof typeof containers,
  { events, lookups }: { events: Tables; lookups: Tables },
  form: Form,
  isLookupFirst: boolean,
  isUpper = false,
): Promise<string> {
  const files: [string, string | Uint8Array][] = [];
  const add = async (tables: Tables, place: string) => {
    for (const [name, rows] of Object.entries(tables))
      files.push([`${place}/${name}.${form}`, await written(rows, form, isUpper)]);
  };
  const parts = [() => add(lookups, isLookupFirst ? "a" : "z"), () => add(events, "m")];
  for (const part of isLookupFirst ? parts : parts.reverse()) await part();
  return containers[container](join(folder, `set${++cases}`), Object.fromEntries(files));
}

const variants = {
  umami: [
    ["folder", "csv", true],
    ["zip", "tsv", false],
    ["tar.gz", "csv", false],
    ["folder", "csv", false, true],
    ["folder", "parquet", false],
    ["zip", "parquet", true, true],
  ],
  heap: [
    ["folder", "tsv", false],
    ["zip", "csv", true],
    ["tar.gz", "tsv", true],
    ["zip", "csv", false, true],
    ["folder", "parquet", true],
    ["tar.gz", "parquet", false, true],
  ],
} as const;

describe("Umami", () => {
  for (const [container, form, isFirst, isUpper = false] of variants.umami)
    test(`${container}, ${form}, lookups ${isFirst ? "first" : "last"}${isUpper ? ", in capitals" : ""}`, async () => {
      const project = await SampleProject.create();
      const path = await pack(container, umami, form, isFirst, isUpper);
      const wanted = {
        read: 13,
        accepted: 2,
        rejected: 0,
        made: 1,
        left_out: { "joined lookup row": 10, "lookup row without an event": 1 },
      };
      expect(await project.file(path, "--dry-run")).toMatchObject(wanted);
      expect(await project.file(path)).toMatchObject(wanted);
      const [buy] = await project.query("SELECT distinct_id, properties FROM events WHERE event = 'buy'");
      expect(buy!.distinct_id).toBe("u1");
      expect(buy!.properties).toMatchObject({
        plan: "pro",
        seats: 5,
        trial: true,
        due: "2024-06-01 00:00:00",
        tags: ["a", "b"],
        revenue: 19.5,
        currency: "EUR",
        $browser: "firefox",
        $screen_width: 800,
        $geoip_country_code: "DE",
        $geoip_country_name: "Germany",
        $set: { tier: "gold" },
      });
      const [text] = await project.query("SELECT properties::VARCHAR AS t FROM events WHERE event = 'buy'");
      expect(String(text!.t)).toContain("12345678901234567.5");
      const [view] = await project.query("SELECT properties FROM events WHERE event = '$pageview'");
      expect((view!.properties as JsonObject).$browser).toBe("chrome");
      expect(await project.file(path)).toMatchObject({ accepted: 0, duplicate: 2, made: 0 });
    }, 60_000);
});

describe("Heap", () => {
  for (const [container, form, isFirst, isUpper = false] of variants.heap)
    test(`${container}, ${form}, lookups ${isFirst ? "first" : "last"}${isUpper ? ", in capitals" : ""}`, async () => {
      const project = await SampleProject.create();
      const path = await pack(container, heap, form, isFirst, isUpper);
      const wanted = { read: 6, accepted: 3, rejected: 0, made: 1, left_out: { "joined lookup row": 3 } };
      expect(await project.file(path, "--dry-run")).toMatchObject(wanted);
      expect(await project.file(path)).toMatchObject(wanted);
      expect(await project.persons()).toEqual([["anna", "heap:8"]]);
      const [person] = await project.query("SELECT properties FROM persons");
      expect(person!.properties).toMatchObject({ joindate: at });
      expect(await project.file(path)).toMatchObject({ accepted: 0, duplicate: 3, made: 0 });
    }, 60_000);
});

describe("an interrupted import is resumed", () => {
  const badTime = { created_at: "never", time: "never", event_time: "never" };
  const withBroken = (rows: readonly Row[]): Row[] => {
    const [first, ...others] = rows as [Row, ...Row[]];
    const time = Object.keys(badTime).find((name) => name in first) as keyof typeof badTime;
    return [
      first,
      { ...first, [time]: badTime[time], event_id: "0190a000-0000-4000-8000-0000000000ff" },
      ...others,
    ];
  };
  const amplitude = {
    events: {
      events: [
        { event_type: "a", device_id: "d1", user_id: "u1", amplitude_id: 1, event_time: at, event_id: "1" },
        { event_type: "b", device_id: "d2", user_id: "", amplitude_id: 2, event_time: at, event_id: "2" },
      ],
    },
    lookups: { merges: [{ amplitude_id: 2, merged_amplitude_id: 1, merge_event_time: 1714557600000 }] },
  };
  const heapViews = { events: { pageviews: heap.events.pageviews }, lookups: heap.lookups };
  for (const [name, tables, persons, left] of [
    ["Umami", umami, [["s1", "u1"], ["s2"]], { "joined lookup row": 10, "lookup row without an event": 1 }],
    ["Heap", heapViews, [["anna", "heap:8"]], { "joined lookup row": 3 }],
    ["Amplitude", amplitude, [["d1", "d2", "u1"]], { "joined lookup row": 1 }],
  ] as const)
    for (const form of ["csv", "parquet"] as const)
      test(`${name}, ${form}`, async () => {
        const project = await SampleProject.create();
        const [[table, rows]] = Object.entries(tables.events) as [[string, readonly Row[]]];
        const path = await pack(
          "folder",
          { events: { [table]: withBroken(rows) }, lookups: tables.lookups },
          form,
          false,
        );
        const cut = await project.file(path, "--max-rejects", "0");
        expect(cut).toMatchObject({ complete: false, accepted: 1 });
        const whole = await project.file(path, "--resume");
        expect(whole).toMatchObject({ complete: true, accepted: 2, rejected: 1, left_out: left });
        expect(await project.persons()).toEqual(persons as unknown as string[][]);
        expect(await project.file(path)).toMatchObject({
          accepted: 0,
          duplicate: 2,
          made: 0,
          left_out: left,
        });
      }, 60_000);
});
