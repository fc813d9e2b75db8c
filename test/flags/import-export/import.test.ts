/** From one project to another and back: documents, differences, rejections. */

import { describe, expect, test } from "bun:test";
import { activity } from "../../../src/accounts/schema.ts";
import { readCohorts, updateCohort } from "../../../src/cohorts/cohorts.ts";
import { differenceLines } from "../../../src/flags/import-export/difference.ts";
import { type FlagDocument, writeDocument } from "../../../src/flags/import-export/document.ts";
import { readDocument, serializeDocument } from "../../../src/flags/import-export/read-document.ts";
import { findFlagByKey, readFlags } from "../../../src/flags/store/flag.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";
import { company, now, TwoProjects } from "./two-projects.ts";

test("contexts are in the document once, under the name in use", () => {
  using projects = new TwoProjects();
  projects.fill();
  const names = (key: string) => {
    const item = projects.document(1).flags.find((flag) => flag.key === key)!;
    return [item.evaluation_tags, item.evaluation_contexts];
  };
  expect(names("variants")).toEqual([["web"], undefined]);
  expect(names("in-apps")).toEqual([undefined, ["a", "ios"]]);
  // Servers of other versions know one of the names only.
  for (const name of ["evaluation_tags", "evaluation_contexts"]) {
    const fields = { tags: ["a"], [name]: ["a", "ios"] };
    const [item] = writeDocument({ flags: [{ id: 1, key: "f", fields }], cohorts: [], groupTypes: [] }).flags;
    expect(item!.evaluation_contexts).toEqual(["a", "ios"]);
  }
  projects.import(projects.document(1, company, true));
  projects.change(2, "in-apps", { evaluationContexts: ["old"] });
  projects.import(projects.document(1, company, true));
  expect(findFlagByKey(projects.metadata.db, 2, "in-apps")!.evaluationTags).toEqual(["a", "ios"]);
  projects.change(1, "in-apps", { evaluationContexts: [] });
  projects.import(projects.document(1, company, true));
  expect(findFlagByKey(projects.metadata.db, 2, "in-apps")!.evaluationTags).toEqual([]);
});

const withoutFirst = (document: FlagDocument) => ({
  ...document,
  flags: document.flags.filter(({ key }) => key !== "first-in-two"),
});

describe("a whole project", () => {
  for (const format of ["yaml", "json"] as const) {
    test(`is copied to another one as ${format}, and the second import changes nothing`, () => {
      using projects = new TwoProjects();
      projects.fill();
      const document = projects.document(1, company, true);
      const text = serializeDocument(document, format);
      expect(text).not.toMatch(/"?cohort_name/);
      const read = readDocument(text);
      expect(read).toEqual(document);
      const { differences, remarks } = projects.import(read);
      expect(differences.map(({ kind, name, change }) => `${change} ${kind} ${name}`)).toEqual([
        "created cohort Everybody listed",
        "created cohort Good visitors",
        "created cohort Visitors",
        "created flag above",
        "created flag by-company",
        "created flag in-apps",
        "created flag off",
        "created flag secret",
        "created flag variants",
        "created flag z-base",
      ]);
      expect(remarks).toEqual([expect.stringContaining("Everybody listed")]);
      expect(withoutFirst(projects.document(2, company, true))).toEqual(document);
      const versions = () =>
        readFlags(projects.metadata.db, 2).map(({ key, version }) => `${key} ${version}`);
      const before = versions();
      const entries = projects.metadata.db.select().from(activity).all().length;
      expect(projects.import(read)).toEqual({
        differences: [],
        remarks: [],
        omitted: [],
        turnedOff: [],
        isNothingImported: false,
        needsApproval: [],
      });
      expect(versions()).toEqual(before);
      expect(projects.metadata.db.select().from(activity).all()).toHaveLength(entries);
      expect(projects.document(2).flags.map(({ key }) => key)).toContain("first-in-two");
    });
  }

  test("ids are those of the target project", () => {
    using projects = new TwoProjects();
    projects.fill();
    projects.import(projects.document(1, company, true));
    const { db } = projects.metadata;
    const base = findFlagByKey(db, 2, "z-base")!;
    const above = findFlagByKey(db, 2, "above")!;
    const cohorts = new Map(readCohorts(db, 2).map(({ id, name }) => [name, id]));
    expect(JSON.stringify(above.filters)).toContain(`"key":"${base.id}"`);
    expect(JSON.stringify(base.filters)).toContain(`"value":${cohorts.get("Good visitors")}`);
    expect(base.filters.groups).toMatchObject([{ rollout_percentage: 40.5 }]);
    expect(base.tags).toEqual(["a", "b"]);
  });

  test("a deleted cohort is exported by name, so that its id is not mistaken for another one's", () => {
    using projects = new TwoProjects();
    const deleted = projects.cohort(1, "Gone", {
      properties: { type: "AND", values: [person("a", "exact", "b")] },
    });
    projects.flag(1, "refers", { filters: when([inCohort(deleted)]), active: false });
    updateCohort(projects.metadata, { projectId: 1, id: deleted, by: 1 }, { deleted: true }, now);
    const document = projects.document(1);
    expect(document).toMatchObject({
      cohorts: [],
      flags: [{ filters: { groups: [{ properties: [{ type: "cohort", cohort: "Gone (deleted)" }] }] } }],
    });
    expect(() => projects.import(document)).toThrow(
      'Flag "refers" refers to a cohort "Gone (deleted)", which is neither in the file nor in the project.',
    );
  });

  test("keeps and reports conditions that match nothing, and reads PostHog's lists of one flag value", () => {
    using projects = new TwoProjects();
    const depends = { type: "flag", flag: "base", operator: "flag_evaluates_to", value: ["true"] };
    const { remarks } = projects.import({
      flagkeep_flags: 1,
      group_types: {},
      cohorts: [],
      flags: [
        { key: "base", filters: when([]) },
        { key: "dep", filters: when([depends]) },
        { key: "odd", filters: when([person("age", "gt", "abc")]) },
      ],
    });
    expect(remarks).toEqual(['Flag "odd": a condition matches nothing. Invalid value for operator gt: abc']);
    const stored = projects.document(2).flags.filter(({ key }) => key === "dep" || key === "odd");
    expect(stored).toMatchObject([
      { filters: { groups: [{ properties: [{ value: true }] }] } },
      { filters: { groups: [{ properties: [{ operator: "gt", value: "abc" }] }] } },
    ]);
  });

  test("is logged with author and trigger", () => {
    using projects = new TwoProjects();
    projects.import({
      flagkeep_flags: 1,
      group_types: {},
      cohorts: [],
      flags: [{ key: "n", filters: when([]) }],
    });
    const entry = projects.metadata.db.select().from(activity).all().at(-1)!;
    expect(entry).toMatchObject({
      userId: null,
      isSystem: true,
      activity: "created",
      scope: "FeatureFlag",
      detail: { name: "n", trigger: { job_type: "command_line", job_id: "ann", payload: {} } },
    });
  });
});

describe("a change", () => {
  test("is reported by a dry run, which changes nothing, then done", () => {
    using projects = new TwoProjects();
    projects.fill();
    projects.import(projects.document(1, company, true));
    projects.change(1, "z-base", { name: "New words", filters: when([], 7) });
    projects.change(1, "variants", {
      filters: { ...when([]), multivariate: null, payloads: null as never },
      active: false,
    });
    const document = projects.document(1);
    const before = projects.document(2);
    const dry = projects.import(document, { isDryRun: true });
    expect(projects.document(2)).toEqual(before);
    const lines = differenceLines(dry.differences);
    expect(lines).toContain("~ flag z-base");
    expect(lines).toContain('    name: (none) -> "New words"');
    expect(lines).toContain("    filters.groups[0].rollout_percentage: 40.5 -> 7");
    expect(lines).toContain("~ flag variants");
    expect(lines).toContain("    active: true -> false");
    expect(lines.join("\n")).not.toContain("off");
    expect(projects.import(document).differences).toEqual(dry.differences);
    expect(projects.document(2).flags.find(({ key }) => key === "z-base")).toEqual(
      document.flags.find(({ key }) => key === "z-base")!,
    );
    expect(projects.import(document).differences).toEqual([]);
  });

  test("of a flag alone shows no cohort, even if two have one name", () => {
    using projects = new TwoProjects();
    const filters = { properties: { type: "AND", values: [person("plan", "exact", "x")] } };
    for (const each of [filters, undefined, filters]) projects.cohort(2, "Same", each);
    const document = readDocument("flagkeep_flags: 1\nflags: [{ key: alone }]");
    expect(projects.import(document).differences.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
      "flag alone",
    ]);
  });

  test("members that the file omits get their default", () => {
    using projects = new TwoProjects();
    projects.flag(2, "full", {
      name: "x",
      tags: ["t"],
      evaluationRuntime: "server",
      filters: { ...when([], 5), payloads: { true: "1" }, early_exit: true },
    });
    const item = { key: "full", filters: { groups: [{ properties: [], rollout_percentage: 5 }] } };
    projects.import({ flagkeep_flags: 1, group_types: {}, cohorts: [], flags: [item] });
    expect(projects.document(2).flags.find(({ key }) => key === "full")).toEqual({
      key: "full",
      active: true,
      filters: item.filters,
    });
    expect(findFlagByKey(projects.metadata.db, 2, "full")).toMatchObject({
      name: "",
      tags: [],
      evaluationRuntime: "all",
    });
    projects.import({ flagkeep_flags: 1, group_types: {}, cohorts: [], flags: [item] });
    expect(findFlagByKey(projects.metadata.db, 2, "full")!.version).toBe(2);
  });

  test("a flag without filters is off for everyone when it is new, and keeps those it has", () => {
    using projects = new TwoProjects();
    projects.flag(2, "known", { filters: when([], 40), name: "old words" });
    const flags = ["new", "known"].map((key) => ({ key, active: true }));
    const settings = { key: "settings", is_remote_configuration: true };
    const file = { flagkeep_flags: 1, group_types: {}, cohorts: [], flags: [...flags, settings] };
    projects.import(readDocument(JSON.stringify(file)));
    const getFilters = (key: string) => findFlagByKey(projects.metadata.db, 2, key)!.filters;
    expect(getFilters("new")).toEqual({ groups: [] });
    expect(getFilters("settings")).toEqual(when([], 100));
    expect(findFlagByKey(projects.metadata.db, 2, "known")).toMatchObject({
      filters: when([], 40),
      name: "",
    });
    expect(projects.import(readDocument(JSON.stringify(file))).differences).toEqual([]);
  });

  test("flags that depend on each other are switched off and on in the right order", () => {
    using projects = new TwoProjects();
    const base = projects.flag(2, "base", {});
    projects.flag(2, "above", { filters: when([dependsOn(String(base))]) });
    const document = projects.document(2);
    const all = (active: boolean) => ({
      ...document,
      flags: document.flags.map((flag) => ({ ...flag, active })),
    });
    projects.import(all(false));
    expect(readFlags(projects.metadata.db, 2).every(({ active }) => !active)).toBe(true);
    projects.import(all(true));
    expect(readFlags(projects.metadata.db, 2).every(({ active }) => active)).toBe(true);
  });

  test("group types are found by name", () => {
    using projects = new TwoProjects();
    projects.fill();
    const document = projects.document(1, company, true);
    const others = [
      { index: 0, name: "team" },
      { index: 1, name: "company" },
    ];
    projects.import(document, { groupTypes: others });
    const flag = findFlagByKey(projects.metadata.db, 2, "by-company")!;
    expect(flag.filters.aggregation_group_type_index).toBe(1);
    expect(JSON.stringify(flag.filters)).toContain('"group_type_index":1');
    expect(projects.import(document, { groupTypes: others }).differences).toEqual([]);
    const used = [{ index: 0, name: "team" }];
    expect(() => projects.import(document, { groupTypes: used })).toThrow('the group type "company"');
    using fresh = new TwoProjects();
    expect(fresh.import(document, { groupTypes: [] }).remarks.join()).toContain('no group type "company"');
  });
});

describe("secret payloads", () => {
  test("are not in a document by default; a flag that has them keeps them", () => {
    using projects = new TwoProjects();
    projects.fill();
    const hidden = projects.document(1);
    expect(serializeDocument(hidden, "yaml")).not.toContain("s3cret");
    expect(() => projects.import(hidden)).toThrow("--with-secrets");
    const clear = projects.document(1, company, true);
    expect(serializeDocument(clear, "yaml")).toContain("s3cret");
    projects.import(clear);
    expect(projects.import(hidden).differences).toEqual([]);
    expect(withoutFirst(projects.document(2, company, true))).toEqual(clear);
    expect(JSON.stringify(readFlags(projects.metadata.db, 2))).not.toContain("s3cret");
  });

  test("a changed one is a difference that does not show it", () => {
    using projects = new TwoProjects();
    projects.fill();
    projects.import(projects.document(1, company, true));
    projects.change(1, "secret", { filters: { payloads: { true: '"n3w"' } } });
    const { differences } = projects.import(projects.document(1, company, true));
    expect(differences).toMatchObject([{ kind: "flag", name: "secret", change: "updated" }]);
    expect(JSON.stringify(differences)).not.toMatch(/s3cret|n3w/);
  });

  test("that become secret are removed from the activity; a message says where they may remain", () => {
    using projects = new TwoProjects();
    projects.flag(2, "plain", {
      isRemoteConfiguration: true,
      filters: { ...when([]), payloads: { true: '"pl4in-text"' } },
    });
    projects.change(2, "plain", { filters: { payloads: { true: '"pl4in-later"' } } });
    const document = projects.document(2);
    const flags = document.flags.map((flag) =>
      flag.key === "plain" ? { ...flag, has_encrypted_payloads: true } : flag,
    );
    const log = () => JSON.stringify(projects.metadata.db.select().from(activity).all());
    expect(log()).toContain("pl4in-text");
    for (const isDryRun of [true, false]) {
      const { remarks, differences } = projects.import({ ...document, flags }, { isDryRun });
      expect(remarks).toEqual([expect.stringMatching(/^Flag "plain": .*Backups/)]);
      expect(JSON.stringify(differences)).not.toContain("pl4in");
      expect(log().includes("pl4in")).toBe(isDryRun);
    }
    expect(projects.import({ ...document, flags }).remarks).toEqual([]);
  });
});

describe("a document that cannot be imported changes nothing", () => {
  const head = "flagkeep_flags: 1\n";
  const unreadable: [name: string, text: string, says: string][] = [
    ["no YAML", "a: [", "not valid YAML or JSON"],
    ["another file", "version: 3\n", "not a flag export"],
    ["a list", "[]", "not a flag export"],
    ["nothing", "", "not a flag export"],
    ["a newer format", "flagkeep_flags: 2\n", "format 2"],
    ["flags that are no list", `${head}flags: {a: 1}`, "`flags` must be a list"],
    ["a flag that is no map", `${head}flags: [x]`, "Flag 1"],
    ["a flag without a key", `${head}flags: [{name: x}]`, "Flag 1 has no key"],
    ["a misspelled member", `${head}flags: [{key: a, actve: true}]`, "unknown member `actve`"],
    ["a misspelled list", `${head}flag: [{key: a}]`, "The file has the unknown member `flag`"],
    ["one key twice", `${head}flags: [{key: a}, {key: a}]`, 'Two flags have the key "a"'],
    ["one cohort twice", `${head}cohorts: [{name: a}, {name: a}]`, 'Two cohorts are called "a"'],
    ["a cohort without a name", `${head}cohorts: [{}]`, "Cohort 1 has no name"],
    ["group types that are none", `${head}group_types: {x: a}`, "group_types"],
    ["a text made of repetitions", `a: &a [1]\n${"x: [*a,*a,*a]\n".replace("x", "b")}`, "not a flag export"],
  ];
  for (const [name, text, says] of unreadable) {
    test(name, () => expect(() => readDocument(text)).toThrow(says));
  }

  const rejected: [name: string, flags: JsonObject[], says: string][] = [
    [
      "an unknown cohort",
      [{ key: "a", filters: when([{ type: "cohort", operator: "in", cohort: "Nobody" }]) }],
      'a cohort "Nobody"',
    ],
    [
      "an unknown flag",
      [
        {
          key: "a",
          filters: when([{ type: "flag", operator: "flag_evaluates_to", value: true, flag: "b" }]),
        },
      ],
      'a flag "b"',
    ],
    [
      "a cohort by its number",
      [{ key: "a", filters: when([{ key: "id", type: "cohort", operator: "in", value: 1 }]) }],
      'Flag "a" references a cohort by the ID 1',
    ],
    [
      "a flag by its number",
      [
        {
          key: "a",
          filters: when([{ type: "flag", operator: "flag_evaluates_to", value: true, key: "1" }]),
        },
      ],
      'Flag "a" references a flag by the ID 1',
    ],
    ["a rollout over 100", [{ key: "a", filters: when([], 101) }], 'Flag "a": '],
    ["a key with a space", [{ key: "a b", filters: when([]) }], 'Flag "a b": '],
    ["a wrong type", [{ key: "a", active: "perhaps", filters: when([]) }], 'Flag "a": '],
    [
      "flags in a circle",
      ["a", "b"].map((key) => ({
        key,
        filters: when([
          { type: "flag", operator: "flag_evaluates_to", value: true, flag: key === "a" ? "b" : "a" },
        ]),
      })),
      "has a circular reference",
    ],
  ];
  for (const [name, flags, says] of rejected) {
    test(name, () => {
      using projects = new TwoProjects();
      const before = projects.document(2);
      const good = { key: "good", filters: when([]) };
      const document = { flagkeep_flags: 1, group_types: {}, cohorts: [], flags: [good, ...flags] };
      expect(() => projects.import(document as FlagDocument)).toThrow(says);
      expect(projects.document(2)).toEqual(before);
    });
  }

  test("a cohort that cannot be used is named", () => {
    using projects = new TwoProjects();
    const behavior = { type: "behavioral", key: "paid", value: "performed_event", time_value: 1e12 };
    const cohorts = [{ name: "Buyers", filters: { properties: { type: "OR", values: [behavior] } } }];
    const document = { flagkeep_flags: 1, group_types: {}, cohorts, flags: [] };
    expect(() => projects.import(document as unknown as FlagDocument)).toThrow('Cohort "Buyers": ');
  });
});
