/** Which survey an item of a document stands for. Source: contract, import 1.10. */

import { expect, test } from "bun:test";
import { importProject } from "../../src/flag-objects/import-project.ts";
import { FlagInput, flagFields } from "../../src/flags/fields.ts";
import { parseFields } from "../../src/http/fields.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { listSurveys } from "../../src/surveys/surveys.ts";
import { company, now, TwoProjects } from "../flags/import-export/two-projects.ts";

const by = { job_type: "command_line", job_id: "ann", payload: {} };
const toFields = (item: JsonObject) => flagFields(parseFields(FlagInput, item));
const noObjects = { holdouts: [], saved_metrics: [], experiments: [], early_access_features: [] };
const older = "019a0000-0000-7000-8000-000000000001";
const newer = "019a0000-0000-7000-8000-000000000002";

/** @returns what changed. */
function importSurveys(projects: TwoProjects, ...surveys: JsonObject[]) {
  const common = { type: "popover", questions: [{ id: "why", type: "open", question: "Why?" }] };
  const document = { ...projects.document(2), flags: [], cohorts: [] };
  const request = { projectId: 2, document, groupTypes: company, isDryRun: false, now, by, toFields };
  const objects = { ...noObjects, surveys: surveys.map((survey) => ({ ...common, ...survey })) };
  return importProject(projects.writing, request, objects).differences.map(({ change, members }) => ({
    change,
    members: members.map(({ path }) => path),
  }));
}

const stored = (projects: TwoProjects) =>
  Object.fromEntries(
    listSurveys(projects.metadata.db, 2).map(({ id, name, description }) => [id, [name, description]]),
  );

test("a survey with the ID is renamed, and the other one with its former name is still found", () => {
  using projects = new TwoProjects();
  importSurveys(projects, { id: older, name: "a" });
  importSurveys(projects, { id: newer, name: "b" });
  importSurveys(projects, { id: newer, name: "a" });
  const document: JsonObject[] = [
    { id: newer, name: "b" },
    { name: "a", description: "of the older" },
  ];
  expect(importSurveys(projects, ...document)).toEqual([
    { change: "updated", members: ["name"] },
    { change: "updated", members: ["description"] },
  ]);
  expect(stored(projects)).toEqual({ [older]: ["a", "of the older"], [newer]: ["b", ""] });
  expect(importSurveys(projects, ...document)).toEqual([]);
});

test("of two with the same name the newer one is found, also after the older was renamed", () => {
  using projects = new TwoProjects();
  importSurveys(projects, { id: older, name: "a" });
  importSurveys(projects, { id: newer, name: "b" });
  const document: JsonObject[] = [
    { id: older, name: "b" },
    { name: "b", description: "of the newer" },
  ];
  expect(importSurveys(projects, ...document)).toHaveLength(2);
  expect(stored(projects)).toEqual({ [older]: ["b", ""], [newer]: ["b", "of the newer"] });
  expect(importSurveys(projects, ...document)).toEqual([]);
});
