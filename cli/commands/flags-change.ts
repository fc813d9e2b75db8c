/** Commands that change existing flags: `set`, `enable`, `disable`, `delete`, `restore`. */

import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { FlagBody } from "../../src/flags/api/flag-schemas.ts";
import type { FlagAnswer } from "../../src/flags/fields.ts";
import { keyOfReplaced } from "../../src/flags/rules/key.ts";
import { withoutDisplayNames } from "../../src/flags/store/flag-conflicts.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../src/lib/json/value.ts";
import { FlagNotFoundError } from "../../src/operations/flag-argument.ts";
import { listAllFlags, updateOneFlag } from "../../src/operations/flags.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { collect, print, printJson, run } from "../output.ts";
import {
  type CommonOptions,
  flagByKey,
  payload,
  percentage,
  rolloutFields,
  unmatchedHint,
  variant,
  withConfirm,
  withFlagOptions,
  withFlags,
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
}

export const set = withConfirm(withFlagOptions(new Command("set"), FlagBody))
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
      withFlags(options, async (caller) => {
        const flag = await flagByKey(caller, key);
        const [after] = await edited(caller, [flag], () => getChanges(flag, options), options);
        if (options.json) return printJson(after);
        const hint = after!.active ? unmatchedHint(after!) : "";
        const state = `${after!.active ? "on" : "off"}, version ${after!.version}`;
        print(`Flag ${after!.key} is changed; it is ${state}${hint && `; ${hint}`}.`);
      }),
    ),
  );

/** Body of the equivalent API request. @throws {InvalidFieldError} no change is given, or two contradict each other */
function getChanges(flag: FlagAnswer, options: SetOptions): JsonObject {
  const filters = withoutDisplayNames(flag.filters) as JsonObject;
  const { rollout, variant: variants, payload: payloads, name, tag: tags, on, off } = options;
  if (on && off) throw new InvalidFieldError(null, "invalid_input", "--on and --off contradict each other.");
  const sent: JsonObject = {
    ...(on || off ? { active: on === true } : {}),
    ...(name === undefined ? {} : { name }),
    ...(tags === undefined ? {} : { tags }),
    ...(rollout === undefined ? {} : rolloutFields(filters, rollout)),
  };
  if (variants !== undefined || payloads !== undefined) {
    // Secret payloads are redacted here; sent back as read, they are unchanged.
    const known = isJsonObject(filters.payloads) ? filters.payloads : {};
    const named = (payloads ?? []).map(([variantKey, json]) => [
      variantKey === "" ? "true" : variantKey,
      json,
    ]);
    const multivariate = isJsonObject(filters.multivariate) ? filters.multivariate : {};
    sent.filters = {
      ...filters,
      ...(sent.filters as JsonObject | undefined),
      ...(variants === undefined ? {} : { multivariate: { ...multivariate, variants } }),
      payloads: { ...known, ...Object.fromEntries(named) },
    };
  }
  if (Object.keys(sent).length > 0) return sent;
  throw new InvalidFieldError(
    null,
    "invalid_input",
    "Nothing to change: use --on, --off, --rollout, --variant, --payload, --name or --tag.",
  );
}

export const enable = switching("enable", "Turn flags on.", true);
export const disable = switching("disable", "Turn flags off.", false);

function switching(name: string, description: string, active: boolean): Command {
  return withConfirm(withFlagOptions(new Command(name), Type.Array(FlagBody)))
    .description(description)
    .argument("<key...>", "flag keys")
    .option("--note <text>", "reason for the change, stored in the activity log")
    .addHelpText("after", `\nExample:\n  flagkeep flags ${name} new-checkout`)
    .action(
      run((keys: string[], options: CommonOptions & Pick<SetOptions, "note">) =>
        withFlags(options, async (caller) => {
          const before = await flagsByKey(caller, keys);
          const change = (flag: FlagAnswer) => (flag.active === active ? undefined : { active });
          const after = await edited(caller, before, change, options);
          if (options.json) return printJson(after);
          for (const [index, flag] of after.entries()) {
            const was = before[index]!.active === active ? " already" : "";
            print(`Flag ${flag.key} is${was} switched ${active ? "on" : "off"}.`);
          }
        }),
      ),
    );
}

export const deleteFlags = withConfirm(withFlagOptions(new Command("delete"), Type.Array(FlagBody)))
  .description("Delete flags; undo with `flags restore`.")
  .argument("<key...>", "flag keys")
  .addHelpText("after", "\nExample:\n  flagkeep flags delete old-checkout")
  .action(
    run((keys: string[], options: CommonOptions) =>
      withFlags(options, async (caller) => {
        const before = await flagsByKey(caller, keys);
        const after = await edited(caller, before, () => ({ deleted: true }), options);
        if (options.json) return printJson(after);
        for (const { key } of before)
          print(`Flag ${key} is deleted; \`flagkeep flags restore ${key}\` restores it.`);
      }),
    ),
  );

export const restore = withConfirm(withFlagOptions(new Command("restore"), FlagBody))
  .description("Restore a deleted flag; under a new key if its own is in use.")
  .argument("<key>", "flag key or id")
  .addHelpText("after", "\nExample:\n  flagkeep flags restore old-checkout")
  .action(
    run((key: string, options: CommonOptions) =>
      withFlags(options, async (caller) => {
        const flag = await deletedFlag(caller, key);
        const [after] = await edited(caller, [flag], () => ({ deleted: false }), options);
        if (options.json) return printJson(after);
        print(`Flag ${after!.key} is restored; it is ${after!.active ? "on" : "off"}.`);
      }),
    ),
  );

async function flagsByKey(caller: Caller, keys: readonly string[]): Promise<FlagAnswer[]> {
  const found: FlagAnswer[] = [];
  for (const key of keys) found.push(await flagByKey(caller, key));
  return found;
}

/** The most recently deleted flag with the key. @throws {FlagNotFoundError} */
async function deletedFlag(caller: Caller, key: string): Promise<FlagAnswer> {
  const deleted = (await caller.list(listAllFlags, { deleted: true, order: "-updated_at" })) as FlagAnswer[];
  const found = deleted.find(
    (flag) => flag.key === key || flag.key === keyOfReplaced(key, flag.id) || String(flag.id) === key,
  );
  if (found !== undefined) return found;
  throw new FlagNotFoundError(
    key,
    "deleted flag",
    "`flagkeep flags list --deleted` shows all that can be restored.",
  );
}

/**
 * Changes flags. In a data directory this is atomic, because later ones may be rejected: other flags depend on them.
 *
 * @param change the body for a flag; undefined leaves it unchanged.
 * @throws {ApprovalRequiredError} protected flags would change, and the command was not confirmed; nothing was changed.
 */
async function edited(
  caller: Caller,
  before: readonly FlagAnswer[],
  change: (flag: FlagAnswer) => JsonObject | undefined,
  { note }: CommonOptions & Pick<SetOptions, "note">,
): Promise<FlagAnswer[]> {
  const inputs = before.flatMap((flag) => {
    const sent = change(flag);
    return sent === undefined ? [] : [{ id: flag.id, body: note === undefined ? sent : { ...sent, note } }];
  });
  const changed = (await caller.callAll(updateOneFlag, inputs)) as FlagAnswer[];
  const byId = new Map(changed.map((flag) => [flag.id, flag]));
  return before.map((flag) => byId.get(flag.id) ?? flag);
}
