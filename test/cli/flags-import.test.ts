/** `flags import` of files with flags that cannot be kept as they are (contract, import 3: F1 to F6). */

import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory } from "../support/server.ts";

const { dataDir } = await initializedDirectory();
const folder = join(dataDir, "..");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const flags = (...args: string[]) => flagkeep(["flags", ...args, "--data-dir", dataDir]);
async function stored(key: string) {
  const { stdout, code, stderr } = await flags("get", key, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}
function getFile(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}
const property = (key: string, operator: string, value: unknown) => ({
  key,
  type: "person",
  operator,
  value,
});
const set = (...properties: object[]) => ({ properties, rollout_percentage: 100 });
const flag = (key: string, groups: object[], more: object = {}) => ({
  id: key.length,
  key,
  active: true,
  filters: { groups },
  ...more,
});
const lines = (stderr: string) => stderr.split("\n").filter((line) => line.startsWith("Not taken over"));

const file = getFile("posthog.json", {
  count: 5,
  next: null,
  results: [
    flag("exact", [
      set(property("age", "gt", 18), property("email", "icontains", ["@a.com", "@b.com"])),
      set(property("seen", "is_date_after", ["2026-01-01"])),
    ]),
    flag("look-around", [set(property("a", "regex", "(?=x)y")), set(property("b", "exact", "c"))]),
    flag("unheard-of", [
      set(property("a", "sounds_like", "x")),
      set(property("b", "exact", "c")),
      set({ type: "cohort", key: "id", value: 99 }),
    ]),
    flag("secret", [set()], {
      has_encrypted_payloads: true,
      is_remote_configuration: true,
      filters: { groups: [set()], payloads: { true: '"********* (encrypted)"' } },
    }),
    flag("not a key", [set()]),
  ],
});
const omitted = [
  /^Not taken over: flag look-around, rule 1: .*invalid regex pattern/,
  /^Not taken over: flag not a key, the flag: /,
  /^Not taken over: flag secret, payload of true: it is encrypted/,
  /^Not taken over: flag unheard-of, rule 1: .*sounds_like/,
  /^Not taken over: flag unheard-of, rule 3: .*cohort/,
];

describe("a file of PostHog with unsupported flags", () => {
  test("a dry run lists the same lines and changes nothing", async () => {
    const { code, stderr } = await flags("import", file, "--dry-run");
    expect([code, lines(stderr)]).toEqual([0, omitted.map((line) => expect.stringMatching(line))]);
    expect((await flags("list", "--keys")).stdout).toBe("");
  });

  test("each flag is imported independently; incomplete ones are off", async () => {
    const { code, stderr } = await flags("import", file);
    expect([code, lines(stderr)]).toEqual([0, omitted.map((line) => expect.stringMatching(line))]);
    expect((await flags("list", "--keys")).stdout.trim().split("\n").sort()).toEqual([
      "exact",
      "look-around",
      "secret",
      "unheard-of",
    ]);
    const exact = await stored("exact");
    expect([exact.active, exact.filters.groups[0].properties]).toMatchObject([
      true,
      [
        { operator: "gt", value: "18" },
        { operator: "icontains_multi", value: ["@a.com", "@b.com"] },
      ],
    ]);
    expect(exact.filters.groups[1].properties).toMatchObject([{ value: "2026-01-01" }]);
    const partial = await stored("unheard-of");
    expect([partial.active, partial.filters.groups]).toMatchObject([false, [{ properties: [{ key: "b" }] }]]);
    const secret = await stored("secret");
    expect([secret.active, secret.filters.payloads ?? {}]).toEqual([false, {}]);
    expect((await stored("look-around")).active).toBe(false);
  });

  test("a second import changes nothing, and a flag that was turned on stays on", async () => {
    expect((await flags("import", file)).stdout).toContain("No differences.");
    expect((await flags("enable", "unheard-of")).code).toBe(0);
    expect((await flags("import", file)).stdout).toContain("No differences.");
    expect((await stored("unheard-of")).active).toBe(true);
  });
});

test("a document of Flagkeep: unreadable items, a circle and a cohort cost themselves alone", async () => {
  const other = (name: string) => ({ type: "flag", flag: name, operator: "flag_evaluates_to", value: true });
  const document = getFile("own.json", {
    flagkeep_flags: 1,
    cohorts: [
      {
        name: "Odd",
        filters: { properties: { type: "AND", values: [property("a", "sounds_like", "x")] } },
      },
      {
        name: "Fine",
        filters: { properties: { type: "AND", values: [property("a", "gt", 5)] } },
      },
    ],
    flags: [
      { key: "plain", filters: { groups: [set()] } },
      { key: "plain", filters: { groups: [] } },
      { filters: {} },
      { key: "round", filters: { groups: [set(other("trip"))] } },
      { key: "trip", filters: { groups: [set(other("round"))] } },
      { key: "of-odd", filters: { groups: [set({ type: "cohort", cohort: "Odd" })] } },
      { key: "of-fine", filters: { groups: [set({ type: "cohort", cohort: "Fine" })] } },
    ],
  });
  const { code, stderr } = await flags("import", document);
  expect(code).toBe(0);
  expect(lines(stderr).map((line) => line.slice("Not taken over: ".length))).toEqual([
    'Two flags have the key "plain".',
    "Flag 3 has no key.",
    expect.stringMatching(/^cohort "Odd": .*sounds_like/),
    expect.stringMatching(/^flag trip, rule 1: .*flag "round"/),
    expect.stringMatching(/^flag round, rule 1: .*flag trip, which is imported turned off/),
    expect.stringMatching(/^flag of-odd, rule 1: .*cohort "Odd"/),
  ]);
  expect([(await stored("plain")).active, (await stored("of-odd")).active]).toEqual([true, false]);
  expect((await stored("of-fine")).filters.groups).toHaveLength(1);
}, 30_000);

test("a file of which nothing can be imported ends with 1", async () => {
  const none = getFile("none.json", { results: [flag("not a key", [set()])] });
  expect((await flags("import", none)).code).toBe(1);
});

test("a cohort of the project does not replace one of the same name that cannot be imported", async () => {
  const cohort = (operator: string) => ({
    name: "Named",
    filters: { properties: { type: "AND", values: [property("a", operator, "x")] } },
  });
  const user = {
    name: "Around",
    filters: { properties: { type: "AND", values: [{ type: "cohort", cohort: "Named", negation: false }] } },
  };
  const uses = (name: string) => ({
    key: `of-${name.toLowerCase()}`,
    filters: { groups: [set(property("b", "exact", "c")), set({ type: "cohort", cohort: name })] },
  });
  const document = (operator: string) => ({
    flagkeep_flags: 1,
    cohorts: [cohort(operator), user],
    flags: [uses("Named"), uses("Around")],
  });
  const before = await flags("import", getFile("cohorts.json", document("exact")));
  expect([before.code, lines(before.stderr)]).toEqual([0, []]);
  const { code, stderr } = await flags(
    "import",
    getFile("cohorts.json", document("sounds_like")),
    "--dry-run",
  );
  expect(code).toBe(0);
  expect(lines(stderr).map((line) => line.slice("Not taken over: ".length))).toEqual([
    expect.stringMatching(/^cohort "Named": .*sounds_like/),
    'cohort "Around": it uses the cohort "Named", which is not imported',
    'flag of-named, rule 2: it uses the cohort "Named", which is not imported.',
    'flag of-around, rule 2: it uses the cohort "Around", which is not imported.',
  ]);
}, 30_000);

test("flags of other products without a key, with a key twice, and with a key that is another one's here", async () => {
  const boolean = (key: unknown) => ({ key, type: "BOOLEAN_FLAG_TYPE", enabled: true });
  const file = getFile("keys.json", {
    namespace: "default",
    flags: [boolean("a b"), boolean("a-b"), boolean("a-b"), boolean(undefined), boolean({}), 5],
  });
  const { code, stderr, stdout } = await flags("import", file, "--dry-run");
  expect(code).toBe(0);
  expect(lines(stderr).map((line) => line.slice("Not taken over: flag ".length))).toEqual([
    'a-b-2, its key: was "a b": use the new key in your code.',
    "a-b, the flag: is in the file twice; the first is imported.",
    "4 of the file, the flag: has no key.",
    "5 of the file, the flag: has no key.",
    "6 of the file, the flag: is not an object.",
  ]);
  expect(stdout).toContain("2 would be created");
}, 30_000);

test("filters whose condition sets are not a list are reported, and the flag is off", async () => {
  const file = getFile("sets.json", { results: [flag("sets", [], { filters: { groups: "x" } })] });
  const { code, stderr } = await flags("import", file);
  expect([code, lines(stderr)]).toEqual([
    0,
    [expect.stringMatching(/^Not taken over: flag sets, its filters: /)],
  ]);
  expect((await stored("sets")).active).toBe(false);
}, 30_000);

test("flags of a static cohort are off until the cohort has members", async () => {
  const listed = { type: "cohort", cohort: "Listed" };
  const around = { properties: { type: "AND", values: [{ ...listed, negation: true }] } };
  const uses = (key: string, ...rules: object[]) => ({ key, filters: { groups: rules } });
  const document = getFile("static.json", {
    flagkeep_flags: 1,
    cohorts: [
      { name: "All but listed", filters: around },
      { name: "Listed", is_static: true },
    ],
    flags: [
      uses("listed-in", set(property("a", "exact", "b")), set(listed)),
      uses("listed-out", set({ ...listed, operator: "not_in" })),
      uses("listed-not", set({ type: "cohort", cohort: "All but listed" })),
      uses("listed-none", set(property("a", "exact", "b"))),
    ],
  });
  const members = 'the static cohort "Listed", whose members are not in the file.';
  const obstacles = [
    `listed-in, rule 2: it uses ${members}`,
    `listed-out, rule 1: it uses ${members}`,
    `listed-not, rule 1: it uses the cohort "All but listed", which depends on ${members}`,
  ];
  const keys = ["listed-in", "listed-out", "listed-not", "listed-none"];
  const states = () => Promise.all(keys.map(async (key) => (await stored(key)).active));
  for (const args of [["--dry-run"], [], []]) {
    const { code, stderr } = await flags("import", document, ...args);
    expect([code, lines(stderr)]).toEqual([0, obstacles.map((line) => `Not taken over: flag ${line}`)]);
    if (args.length === 0) expect(await states()).toEqual([false, false, false, true]);
  }
  expect((await flags("import", document)).stdout).toContain("No differences.");
  expect((await flags("enable", "listed-out")).code).toBe(0);
  expect((await flags("import", document)).stdout).toContain("No differences.");
  expect(await states()).toEqual([false, true, false, true]);

  const people = new Database(join(dataDir, "people.sqlite"));
  const metadata = new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true });
  const { id } = metadata.query("SELECT id FROM cohort WHERE name = 'Listed'").get() as { id: number };
  people.run("INSERT INTO cohort_member (cohort_id, person_id) VALUES (?, 1)", [id]);
  for (const database of [people, metadata]) database.close();
  const { code, stderr } = await flags("import", document);
  expect([code, lines(stderr)]).toEqual([0, []]);
  expect(await states()).toEqual([true, true, true, true]);
}, 60_000);
