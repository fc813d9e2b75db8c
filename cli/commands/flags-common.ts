/** What the commands about flags share: options, the flag that a key names, values of options. */

import { readFileSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { type Command, InvalidArgumentError } from "commander";
import type { Flag } from "../../src/flags/fields.ts";
import { groupsOf } from "../../src/flags/rules/types.ts";
import { findFlagByKey } from "../../src/flags/store/flag.ts";
import { AppError } from "../../src/lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../src/lib/json.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger } from "../output.ts";
import { withSettings } from "../settings.ts";
import type { ProjectStores } from "../stores.ts";

/** The project has no flag with this key. */
export class NoSuchFlag extends AppError {
  readonly code = "no_such_flag";
  constructor(
    key: string,
    what = "flag",
    override readonly hint = "`flagkeep flags list` shows all keys.",
  ) {
    super(`There is no ${what} ${key}.`);
  }
}

export interface CommonOptions {
  project?: number;
  json?: true;
}

/** Adds the options that all these commands have. */
export const withProjectAndJson = (command: Command, shape: TSchema): Command =>
  withJson(withSettings(command, ["data-dir"]), shape).option(
    "--project <id>",
    "project id; optional if there is one project",
    positiveInteger,
  );

/** Help of the option that applies changes of protected flags. */
export const confirmWords = "apply changes that need approval without a change request";
export const withConfirm = (command: Command): Command => command.option("--confirm", confirmWords);

/** @throws {NoSuchFlag} */
export function flagOf({ metadata, project }: ProjectStores, key: string): Flag {
  const flag = findFlagByKey(metadata.db, project.id, key);
  if (flag === undefined) throw new NoSuchFlag(key);
  return flag;
}

/** `12.5` or `12.5%` */
export function percentage(text: string): number {
  const value = Number(text.replace(/%$/, ""));
  if (text.trim() === "" || !(value >= 0 && value <= 100)) {
    throw new InvalidArgumentError("It must be a number from 0 to 100.");
  }
  return value;
}

/**
 * The fields that change the rollout of a flag's only condition set, or create one. Fractions are possible in filters only,
 * and there a number has an effect even if it is the stored one rounded (contract, decision 10).
 */
export function rolloutFields(stored: JsonObject, rollout: number): JsonObject {
  const groups = groupsOf(stored);
  const [only = { properties: [] }, ...others] = groups;
  // Refused by the rules, which name the other way.
  if (others.length > 0) return { rollout_percentage: Math.round(rollout) };
  return {
    filters: { groups: [{ ...only, rollout_percentage: rollout }] },
    ...(Number.isInteger(rollout) ? { rollout_percentage: rollout } : {}),
  };
}

/** What to do about a flag that matches no user; empty where it has a condition set. */
export function nobodyHint({ filters }: Flag): string {
  return groupsOf(filters).length === 0 ? "it matches nobody yet: add --rollout" : "";
}

/** `control=50` */
export function variant(text: string): { key: string; rollout_percentage: number } {
  const equals = text.lastIndexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be such as control=50.");
  return { key: text.slice(0, equals), rollout_percentage: percentage(text.slice(equals + 1)) };
}

/** `{"a":1}` or `control={"a":1}`; the text of the JSON is kept as it is. */
export function payload(text: string): [name: string, json: string] {
  const [, name = "", json = text] = /^([A-Za-z0-9_-]+)=(.*)$/s.exec(text) ?? [];
  try {
    JSON.parse(json);
  } catch {
    throw new InvalidArgumentError("It must be JSON, or such as control=JSON.");
  }
  return [name, json];
}

/** JSON, or `@` and a file of it. */
export function filtersOf(text: string): JsonObject {
  let filters: unknown;
  try {
    filters = JSON.parse(text.startsWith("@") ? readFileSync(text.slice(1), "utf8") : text);
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON, or @ and a file of JSON (${(error as Error).message}).`);
  }
  if (!isJsonObject(filters)) throw new InvalidArgumentError("It must be a JSON object.");
  return filters;
}
