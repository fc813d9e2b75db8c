/** Commands that change flags that are there: `set`, `enable`, `disable`, `delete`, `restore`. */

import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { FlagEditInput } from "../../src/flags/api/flag-shapes.ts";
import { type Flag, flagFields } from "../../src/flags/fields.ts";
import { findFlag, readDeletedFlags } from "../../src/flags/store/flag.ts";
import { updateFlag } from "../../src/flags/store/flag-writes.ts";
import { ApprovalRequired, protectedBy } from "../../src/flags/store/protected-flags.ts";
import { parseFields } from "../../src/http/fields.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../src/lib/json.ts";
import { FlagRecord, flagRecords } from "../flag-record.ts";
import { collect, print, printJson, run } from "../output.ts";
import { type ProjectStores, withProject } from "../stores.ts";
import {
  type CommonOptions,
  flagOf,
  NoSuchFlag,
  nobodyHint,
  payload,
  percentage,
  rolloutFields,
  variant,
  withConfirm,
  withProjectAndJson,
} from "./flags-common.ts";

interface SetOptions extends CommonOptions {
  on?: true;
  off?: true;
  rollout?: number;
  variant?: { key: string; rollout_percentage: number }[];
  payload?: [name: string, json: string][];
  name?: string;
  tag?: string[];
  note?: string;
  confirm?: true;
}

export const set = withConfirm(withProjectAndJson(new Command("set"), FlagRecord))
  .description("Update a flag: state, rollout, variants, payloads, in one change.")
  .argument("<key>", "flag key")
  .option("--on", "turn the flag on")
  .option("--off", "turn the flag off")
  .option("--rollout <percent>", "rollout percentage of the flag's only condition set", percentage)
  .option(
    "--variant <key=percent>",
    "variant and its percentage; repeatable, replaces all variants",
    collect(variant),
  )
  .option("--payload <json>", "payload, or <variant>=<json>; other payloads are kept", collect(payload))
  .option("--name <text>", "description")
  .option("--tag <name>", "tag; repeatable, replaces all tags", collect(String))
  .option("--note <text>", "reason for the change, stored in the activity log")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep flags set new-checkout --on --rollout 25\n" +
      "  flagkeep flags set button --variant blue=70 --variant green=30\n" +
      '  flagkeep flags set button --payload \'green={"hex":"#0a0"}\'',
  )
  .action(
    run((key: string, options: SetOptions) =>
      withProject(options, (stores) => {
        const flag = flagOf(stores, key);
        const sent = changesOf(stores, flag, options);
        const [after] = edited(stores, [flag], () => sent, options);
        if (options.json) return printJson(flagRecords(stores)(after!));
        const hint = after!.active ? nobodyHint(after!) : "";
        const state = `${after!.active ? "on" : "off"}, version ${after!.version}`;
        print(`Flag ${after!.key} is changed; it is ${state}${hint && `; ${hint}`}.`);
      }),
    ),
  );

/** The body that would be sent to the API. @throws {InvalidField} nothing is to be changed, or both of two opposites */
function changesOf({ writing }: ProjectStores, flag: Flag, options: SetOptions): JsonObject {
  const { rollout, variant: variants, payload: payloads, name, tag: tags, on, off } = options;
  if (on && off) throw new InvalidField(null, "invalid_input", "--on and --off contradict each other.");
  const sent: JsonObject = {
    ...(on || off ? { active: on === true } : {}),
    ...(name === undefined ? {} : { name }),
    ...(tags === undefined ? {} : { tags }),
    ...(rollout === undefined ? {} : rolloutFields(flag.filters, rollout)),
  };
  if (variants !== undefined || payloads !== undefined) {
    const opened = writing.payloads.open(flag);
    const known = isJsonObject(opened.payloads) ? opened.payloads : {};
    const named = (payloads ?? []).map(([variantKey, json]) => [
      variantKey === "" ? "true" : variantKey,
      json,
    ]);
    const multivariate = isJsonObject(opened.multivariate) ? opened.multivariate : {};
    sent.filters = {
      ...opened,
      ...(sent.filters as JsonObject | undefined),
      ...(variants === undefined ? {} : { multivariate: { ...multivariate, variants } }),
      payloads: { ...known, ...Object.fromEntries(named) },
    };
  }
  if (Object.keys(sent).length > 0) return sent;
  throw new InvalidField(
    null,
    "invalid_input",
    "Say what to change: --on, --off, --rollout, --variant, --payload, --name or --tag.",
  );
}

export const enable = switching("enable", "Turn flags on.", true);
export const disable = switching("disable", "Turn flags off.", false);

function switching(name: string, description: string, active: boolean): Command {
  return withConfirm(withProjectAndJson(new Command(name), Type.Array(FlagRecord)))
    .description(description)
    .argument("<key...>", "flag keys")
    .option("--note <text>", "reason for the change, stored in the activity log")
    .addHelpText("after", `\nExample:\n  flagkeep flags ${name} new-checkout`)
    .action(
      run((keys: string[], options: CommonOptions & Pick<SetOptions, "note" | "confirm">) =>
        withProject(options, (stores) => {
          const before = keys.map((key) => flagOf(stores, key));
          const change = (flag: Flag) => (flag.active === active ? undefined : { active });
          const after = edited(stores, before, change, options);
          if (options.json) return printJson(after.map(flagRecords(stores)));
          for (const [index, flag] of after.entries()) {
            const was = before[index]!.active === active ? " already" : "";
            print(`Flag ${flag.key} is${was} switched ${active ? "on" : "off"}.`);
          }
        }),
      ),
    );
}

export const deleteFlags = withConfirm(withProjectAndJson(new Command("delete"), Type.Array(FlagRecord)))
  .description("Delete flags; undo with `flags restore`.")
  .argument("<key...>", "flag keys")
  .addHelpText("after", "\nExample:\n  flagkeep flags delete old-checkout")
  .action(
    run((keys: string[], options: CommonOptions & Pick<SetOptions, "confirm">) =>
      withProject(options, (stores) => {
        const before = keys.map((key) => flagOf(stores, key));
        const after = edited(stores, before, () => ({ deleted: true }), options);
        if (options.json) return printJson(after.map(flagRecords(stores)));
        for (const { key } of before)
          print(`Flag ${key} is deleted; \`flagkeep flags restore ${key}\` brings it back.`);
      }),
    ),
  );

export const restore = withConfirm(withProjectAndJson(new Command("restore"), FlagRecord))
  .description("Restore a deleted flag; under a new key if its own is in use.")
  .argument("<key>", "flag key or id")
  .addHelpText("after", "\nExample:\n  flagkeep flags restore old-checkout")
  .action(
    run((key: string, options: CommonOptions & Pick<SetOptions, "confirm">) =>
      withProject(options, (stores) => {
        const [after] = edited(stores, [deletedFlag(stores, key)], () => ({ deleted: false }), options);
        if (options.json) return printJson(flagRecords(stores)(after!));
        print(`Flag ${after!.key} is back; it is ${after!.active ? "on" : "off"}.`);
      }),
    ),
  );

/** The flag that was deleted last of those that had the key. @throws {NoSuchFlag} */
function deletedFlag({ metadata, project }: ProjectStores, key: string): Flag {
  const had = (flag: Flag) =>
    flag.key === key || flag.key === `${key}:deleted:${flag.id}` || String(flag.id) === key;
  const found = readDeletedFlags(metadata.db, project.id)
    .filter(had)
    .sort((a, b) => b.updatedAt.getTime() - a.updatedAt.getTime() || b.id - a.id);
  if (found[0] !== undefined) return found[0];
  throw new NoSuchFlag(
    key,
    "deleted flag",
    "`flagkeep flags list --deleted` shows all that can be restored.",
  );
}

/**
 * Changes flags as the API would, all of them or none: later ones may be refused because other flags depend on them.
 *
 * @param change the body for a flag; undefined leaves it as it is.
 * @throws {ApprovalRequired} protected flags would change, and the command was not confirmed; nothing was changed.
 */
function edited(
  { writing, project, by }: ProjectStores,
  before: readonly Flag[],
  change: (flag: Flag) => JsonObject | undefined,
  { note, confirm }: Pick<SetOptions, "note" | "confirm">,
): Flag[] {
  return writing.metadata.change((t) => {
    const inside = { ...writing, metadata: joining(writing.metadata, t) };
    const edits = before.map((flag) => {
      const sent = change(flag);
      if (sent === undefined) return { flag };
      const input = parseFields(FlagEditInput, note === undefined ? sent : { ...sent, note }, {
        partial: true,
      });
      return { flag, edit: { note: input.note, fields: flagFields(input), sent } };
    });
    const affected = edits.flatMap(({ flag: { id }, edit }) =>
      edit === undefined ? [] : protectedBy(inside, findFlag(t, project.id, id)!, edit.fields),
    );
    if (affected.length > 0 && !confirm) {
      throw new ApprovalRequired([...new Set(affected.map(({ key }) => key))].sort());
    }
    return edits.map(({ flag, edit }) => {
      if (edit === undefined) return flag;
      return updateFlag(inside, { by, projectId: project.id, id: flag.id, now: new Date(), ...edit });
    });
  });
}

/** A view of the metadata whose changes take part in a transaction that runs already. */
function joining(metadata: Metadata, t: Parameters<Parameters<Metadata["change"]>[0]>[0]): Metadata {
  return Object.create(metadata, { change: { value: (work: (inner: typeof t) => unknown) => work(t) } });
}
